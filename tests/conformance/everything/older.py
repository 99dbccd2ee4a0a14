"""Tools of the 2025 scenarios, which ask in the middle of a call: here they ask as all tools do."""

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import BaseModel, Field

from app.toolkit import Accepted, Answer, Context, tool


class User(BaseModel):
    username: Annotated[str, Field(description="User's response")]
    email: Annotated[str, Field(description="User's email address")]


class Defaults(BaseModel):
    """SEP-1034: a default for every primitive type."""

    name: str = "John Doe"
    age: int = 30
    score: float = 95.5
    status: Literal["active", "inactive", "pending"] = "active"
    verified: bool = True


class Option(StrEnum):
    FIRST_OPTION = "value1"
    SECOND_OPTION = "value2"
    THIRD_OPTION = "value3"


class Choices(BaseModel):
    """SEP-1330: every kind of choice but the deprecated `enumNames`."""

    untitledSingle: Literal["option1", "option2", "option3"]  # noqa: N815 -- the suite's name
    titledSingle: Option  # noqa: N815
    untitledMulti: list[Literal["option1", "option2", "option3"]]  # noqa: N815
    titledMulti: list[Option]  # noqa: N815


@tool(read_only=True)
def test_sampling(prompt: str, ctx: Context) -> str:
    """Ask the client's model."""
    return f"LLM response: {ctx.sample('prompt', [prompt], max_tokens=100).text}"


@tool(read_only=True)
def test_elicitation(message: str, ctx: Context) -> str:
    """Ask the user."""
    return _completed(ctx.ask("user", message, User))


@tool(read_only=True)
def test_elicitation_sep1034_defaults(ctx: Context) -> str:
    """Ask with defaults."""
    return _completed(ctx.ask("defaults", "Please review and update the form fields with defaults", Defaults))


@tool(read_only=True)
def test_elicitation_sep1330_enums(ctx: Context) -> str:
    """Ask for choices."""
    return _completed(ctx.ask("choices", "Please select options from the enum fields", Choices))


@tool(read_only=True)
def test_reconnection() -> str:
    """Answer at once: there is no stream that could be closed and opened again."""
    return "Reconnection test completed"


def _completed(answer: Answer[BaseModel]) -> str:
    content = answer.value.model_dump_json() if isinstance(answer, Accepted) else "{}"
    return f"Elicitation completed: action={type(answer).__name__.lower()}, content={content}"


OLDER = (
    test_sampling,
    test_elicitation,
    test_elicitation_sep1034_defaults,
    test_elicitation_sep1330_enums,
    test_reconnection,
)
