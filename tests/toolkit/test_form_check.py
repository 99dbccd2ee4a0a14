"""What is no form is found when the tool's module is imported, wherever the question stands."""

import functools
import importlib.util
import logging
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from app.errors import ConfigurationError
from app.testing import Server
from app.toolkit import Accepted, Context, InputRequired, Question, tool
from app.toolkit.form_check import form_problems


class Nested(BaseModel):
    inner: dict[str, int]


class Password(BaseModel):
    password: str


class Fine(BaseModel):
    ok: bool


class Report(BaseModel):
    """A result: it may be nested, for nobody fills it in."""

    lines: list[Fine]


class Forms:
    Nested = Nested


this_module = sys.modules[__name__]


def positional(ctx: Context) -> None:
    ctx.ask("key", "Sure?", Nested)


def by_name(ctx: Context) -> None:
    ctx.ask("key", message="Sure?", model=Nested)


def with_a_choice_in_the_message(urgent: bool, ctx: Context) -> None:
    ctx.ask("key", "Now?" if urgent else "Sure?", Nested)


def through_a_module(ctx: Context) -> None:
    ctx.ask("key", "Sure?", this_module.Nested)


def through_a_class(ctx: Context) -> None:
    ctx.ask("key", "Sure?", Forms.Nested)


def in_ask_all(ctx: Context) -> None:
    ctx.ask_all({"fine": Question("Sure?", Fine), "key": Question("Sure?", Nested)})


def in_a_comprehension(ctx: Context) -> None:
    ctx.ask_all({key: Question(key, Nested) for key in ("a", "b")})


def in_an_inner_function(ctx: Context) -> None:
    def inner() -> None:
        ctx.ask("key", "Sure?", Nested)

    inner()


def in_a_match(ctx: Context) -> None:
    match ctx.ask("key", "Sure?", Nested):
        case Accepted(Nested()):
            return


def explicit(ctx: Context) -> InputRequired:
    return InputRequired({"key": Question(model=Nested, message="Sure?")})


def reading(ctx: Context) -> None:
    ctx.responses.get("key", Nested)


def _confirm(ctx: Context, what: str) -> None:
    ctx.ask("key", f"{what}?", Nested)


def through_a_helper(ctx: Context) -> None:
    _confirm(ctx, "Sure")


def recursive(ctx: Context) -> None:
    recursive(ctx)
    _confirm(ctx, "Sure")


async def asynchronous(ctx: Context) -> None:
    ctx.ask("key", "Sure?", Nested)


@functools.lru_cache
@functools.wraps(positional)
def decorated(*args: Any, **kwargs: Any) -> None:
    positional(*args, **kwargs)


def of_a_closure() -> Callable[..., Any]:
    class Local(BaseModel):
        inner: Fine

    def closure(ctx: Context) -> None:
        ctx.ask("key", "Sure?", Local)

    return closure


@pytest.mark.parametrize(
    "function",
    [
        *(
            positional,
            by_name,
            with_a_choice_in_the_message,
            through_a_module,
            through_a_class,
            in_ask_all,
            in_a_comprehension,
        ),
        *(in_an_inner_function, in_a_match, explicit, reading, through_a_helper, recursive, asynchronous, decorated),
        of_a_closure(),
    ],
    ids=lambda function: function.__name__,
)
def test_a_model_that_is_no_form_is_found(function: Callable[..., Any]) -> None:
    """DESIGN section 3: refused when the server starts, with the remedy."""
    (problem,) = form_problems(function)
    assert problem.endswith("move its fields up, or ask a second question.")


def returns_nested() -> Report:
    return Report(lines=[Fine(ok=True)])


def asks_and_returns_nested(ctx: Context) -> Report:
    match ctx.ask("key", "Sure?", Fine):
        case Accepted(Fine(ok=True)):
            return Report(lines=[])
        case _:
            return ctx.stop(f"{Report(lines=[])}")


def looks_like_one(values: dict[str, Any], ctx: Context) -> None:
    values.get("key", Nested)
    isinstance(values, Nested)


def asks_with_what_it_was_given(model: type[Fine], ctx: Context) -> None:
    ctx.ask("key", "Sure?", model)
    ctx.ask("key", "Sure?")  # type: ignore[call-arg]


@pytest.mark.parametrize(
    "function",
    [returns_nested, asks_and_returns_nested, looks_like_one, asks_with_what_it_was_given, len, print],
    ids=lambda function: function.__name__,
)
def test_a_model_that_nobody_asks_with_may_be_anything(function: Callable[..., Any]) -> None:
    assert form_problems(function) == []


MODULE = '''
"""A tool module as somebody writes it."""

from pydantic import BaseModel, SecretStr

from app.toolkit import Context, tool


class Account(BaseModel):
    {field}


@tool
def sign_in(ctx: Context) -> str:
    """Sign in somewhere."""
    ctx.ask("account", "Your account?", Account)
    return "done"
'''


@pytest.mark.parametrize(
    ("field", "remedy"),
    [
        ("password: str", "Ask for it on your own page with ctx.secret, or rename the field if it is none."),
        ("token: SecretStr", "ask for it on your own page with ctx.secret."),
        ("roles: list[str]", "use list[Literal[...]] or list[AnEnum]."),
        ("profile: dict[str, str]", "move its fields up, or ask a second question."),
        ("pass", "add one, such as `confirm: bool`."),
    ],
)
def test_the_import_of_a_tool_module_fails_with_the_remedy(field: str, remedy: str, tmp_path: Path) -> None:
    """client/elicitation, Security: not at the first call, when a user is there to be asked for a password."""
    path = tmp_path / "sign_in.py"
    path.write_text(MODULE.format(field=field))
    spec = importlib.util.spec_from_file_location("sign_in_under_test", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    with pytest.raises(ConfigurationError) as refused:
        spec.loader.exec_module(module)
    assert str(refused.value).endswith(remedy)
    sys.modules.pop("sign_in_under_test", None)


def test_without_the_source_the_first_question_is_refused_instead(caplog: pytest.LogCaptureFixture) -> None:
    """A deployment of bytecode alone still never asks for a password."""
    scope: dict[str, Any] = {"Password": Password, "tool": tool, "Context": Context}
    exec('def ask(ctx: Context) -> str:\n    """Ask."""\n    ctx.ask("key", "Sure?", Password)\n    return ""', scope)  # noqa: S102
    made = tool(scope["ask"])
    with caplog.at_level(logging.ERROR, "roundtrip.tools"):
        failed = Server([made]).client().call("ask")
    assert failed.is_error
    assert "ctx.secret" in caplog.text
