"""Finds at import what would only fail at the first call: a tool that asks with a model that is no form."""

import ast
import inspect
import linecache
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from types import CodeType, FunctionType, ModuleType
from typing import Any

from pydantic import BaseModel

from app.errors import ConfigurationError
from app.protocol.elicitation import form_of


def form_problems(function: Callable[..., Any]) -> list[str]:
    """Why a model that this function, or one of its module that it calls, asks with cannot be a form.

    Where there is no source it finds nothing: the first call will.
    """
    problems: list[str] = []
    reached = list(_reached(inspect.unwrap(function), set()))
    # A result may be no form either: what the model is for is in the source alone, which is slow to read.
    if any(_problems(model) for each in reached for model in _models_named_in(each)):
        for model in (model for each in reached for model in _models_asked_in(each)):
            problems += [each for each in _problems(model) if each not in problems]
    return problems


def _problems(model: type[BaseModel]) -> tuple[str, ...]:
    try:
        form_of(model)
    except ConfigurationError as error:
        return error.problems
    return ()


def _reached(function: Callable[..., Any], seen: set[FunctionType]) -> Iterator[FunctionType]:
    """A function, and the functions of the same module that it names."""
    if not isinstance(function, FunctionType) or function in seen:
        return
    seen.add(function)
    yield function
    scope = _scope(function)
    for named in map(scope.get, _names(function.__code__)):
        if isinstance(named, FunctionType) and named.__module__ == function.__module__:
            yield from _reached(named, seen)


def _scope(function: FunctionType) -> Mapping[str, Any]:
    held: dict[str, Any] = {}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        with suppress(ValueError):  # not bound yet
            held[name] = cell.cell_contents
    return function.__globals__ | held


def _names(code: CodeType) -> Iterator[str]:
    yield from (*code.co_names, *code.co_freevars)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):  # a comprehension or an inner function
            yield from _names(constant)


def _models_named_in(function: FunctionType) -> Iterator[type[BaseModel]]:
    scope, names = _scope(function), set(_names(function.__code__))
    for named in map(scope.get, names):
        yield from _if_model(named)
        if isinstance(named, ModuleType | type):
            for name in names:
                yield from _if_model(getattr(named, name, None))


def _models_asked_in(function: FunctionType) -> Iterator[type[BaseModel]]:
    scope = _scope(function)
    for node in ast.walk(_source(function)):
        if isinstance(node, ast.Call):
            for expression in _models_of_call(node):
                yield from _if_model(_value(expression, scope))


def _if_model(value: object) -> Iterator[type[BaseModel]]:
    if isinstance(value, type) and issubclass(value, BaseModel):
        yield value


def _models_of_call(call: ast.Call) -> Iterator[ast.expr]:
    """The model of `x.ask(key, message, Model)`, `Question(message, Model)` and `x.responses.get(key, Model)`."""
    match call.func:
        case ast.Attribute(attr="ask"):
            position = 2
        case ast.Name(id="Question") | ast.Attribute(attr="Question"):
            position = 1
        case ast.Attribute(attr="get", value=ast.Attribute(attr="responses")):
            position = 1
        case _:
            return
    yield from call.args[position : position + 1]
    yield from (each.value for each in call.keywords if each.arg == "model")


def _value(expression: ast.expr, scope: Mapping[str, Any]) -> Any:
    match expression:
        case ast.Name(id=name):
            return scope.get(name)
        case ast.Attribute(value=owner, attr=name):
            return getattr(_value(owner, scope), name, None)
        case _:
            return None


def _source(function: FunctionType) -> ast.AST:
    code = function.__code__
    try:
        module = ast.parse("".join(linecache.getlines(code.co_filename, function.__globals__)))
    except SyntaxError:
        return ast.Module([], [])
    for node in ast.walk(module):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == code.co_name:
            first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
            if first == code.co_firstlineno:
                return node
    return ast.Module([], [])
