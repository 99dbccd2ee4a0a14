"""Finds at start what would only fail at the first call: a tool that asks with a model that is no form."""

import dis
import inspect
from collections.abc import Callable
from typing import Any

from pydantic import BaseModel

from app.errors import ConfigurationError
from app.protocol.elicitation import form_of


def form_problems(function: Callable[..., Any]) -> list[str]:
    """Why a model that this function asks with cannot be a form: found at start, not at the first call."""
    problems: list[str] = []
    for name, model in _models_named_in(function).items():
        try:
            form_of(model)
        except ConfigurationError as error:
            # A model that the tool returns may be anything; only one that it asks with must be a form.
            if _asks_with(function, name):
                problems += error.problems
    return problems


def _models_named_in(function: Callable[..., Any]) -> dict[str, type[BaseModel]]:
    scope = {**function.__globals__, **inspect.getclosurevars(function).nonlocals}
    return {
        name: scope[name]
        for name in (*function.__code__.co_names, *function.__code__.co_freevars)
        if isinstance(scope.get(name), type) and issubclass(scope[name], BaseModel)
    }


def _asks_with(function: Callable[..., Any], name: str) -> bool:
    asking = False
    for instruction in dis.get_instructions(function):
        if instruction.opname in ("LOAD_ATTR", "LOAD_METHOD"):
            asking = asking or instruction.argval in ("ask", "ask_all", "Question")
        elif instruction.opname in ("LOAD_GLOBAL", "LOAD_DEREF") and asking and instruction.argval == name:
            return True
        elif instruction.opname.startswith(("STORE", "RETURN", "POP")):
            asking = False
    return False
