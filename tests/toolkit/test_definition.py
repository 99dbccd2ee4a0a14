"""From a function to a tool: name, schemas, arguments, results, and what is refused at import."""

import functools
import json
import math
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from enum import StrEnum
from typing import Annotated, Any, Literal, NamedTuple, NoReturn, NotRequired, Optional
from uuid import UUID

import pytest
from jsonschema import Draft202012Validator
from mcp_types._v2026_07_28 import Tool as WireTool
from pydantic import BaseModel, ConfigDict, Field
from typing_extensions import TypedDict

from app.errors import ConfigurationError
from app.protocol.features import Tool
from app.strict_json import JsonObject
from app.testing import Reply, Server
from app.toolkit import Context, InputRequired, tool


class Colour(StrEnum):
    RED = "red"


class Inner(BaseModel):
    a: int


def call(function: Tool, **arguments: Any) -> Reply:
    return Server([function]).client().call(function.name, arguments)


def listed(function: Tool) -> JsonObject:
    """The tool as tools/list shows it, after the official type has judged it."""
    (shown,) = Server([function]).client().request("tools/list").result["tools"]
    parsed = WireTool.model_validate_json(json.dumps(shown), strict=True, by_name=False)
    assert parsed.model_dump(mode="json", by_alias=True, exclude_unset=True) == shown
    Draft202012Validator.check_schema(shown["inputSchema"])
    Draft202012Validator.check_schema(shown.get("outputSchema", {}))
    assert isinstance(shown, dict)
    return shown


def test_name_description_and_arguments_come_from_the_function() -> None:
    """server/tools, Tool."""

    @tool(title="Close a ticket", destructive=True, idempotent=False)
    def close_ticket(
        id: Annotated[str, Field(description="Ticket id, like T-1", pattern="^T-")],
        ctx: Context,
        copies: Annotated[int, Field(ge=0, title="Copies to send")] = 1,
    ) -> None:
        """Close a ticket.

        And say goodbye.
        """

    assert listed(close_ticket) == {
        "name": "close_ticket",
        "title": "Close a ticket",
        "description": "Close a ticket.\n\nAnd say goodbye.",
        "inputSchema": {
            "type": "object",
            "properties": {
                "id": {"type": "string", "description": "Ticket id, like T-1", "pattern": "^T-"},
                "copies": {"type": "integer", "minimum": 0, "title": "Copies to send", "default": 1},
            },
            "required": ["id"],
        },
        "annotations": {"destructiveHint": True, "idempotentHint": False},
    }


def test_hints_that_were_not_given_are_not_sent() -> None:
    @tool(read_only=True, open_world=False)
    def look() -> None:
        """Look."""

    @tool
    def plain() -> None:
        """Do."""

    assert listed(look)["annotations"] == {"readOnlyHint": True, "openWorldHint": False}
    assert "annotations" not in listed(plain)
    assert listed(plain)["inputSchema"] == {"type": "object", "properties": {}}


def test_a_tool_may_have_another_name_than_its_function() -> None:
    @tool(name="tickets.close-1")
    def anything() -> str:
        """Do."""
        return "done"

    assert listed(anything)["name"] == "tickets.close-1"
    assert call(anything).text == "done"


def test_defaults_are_in_the_input_schema_as_json() -> None:
    @tool
    def defaults(
        flag: bool = False,
        count: int = 0,
        text: str = "",
        colour: Colour = Colour.RED,
        day: date = date(2026, 12, 24),
        amount: Decimal = Decimal("1.50"),
        items: list[str] = [],  # noqa: B006
        inner: Inner = Inner(a=1),  # noqa: B008
        nothing: str | None = None,
        limit: float = math.inf,
    ) -> str:
        """Do."""
        return f"{flag} {count} {text!r} {colour} {day} {amount} {items} {inner} {nothing} {limit}"

    properties = listed(defaults)["inputSchema"]["properties"]
    assert {name: schema["default"] for name, schema in properties.items() if "default" in schema} == {
        "flag": False,
        "count": 0,
        "text": "",
        "colour": "red",
        "day": "2026-12-24",
        "amount": "1.50",
        "items": [],
        "inner": {"a": 1},
    }
    assert "required" not in listed(defaults)["inputSchema"]
    assert call(defaults).text == "False 0 '' red 2026-12-24 1.50 [] a=1 None inf"


def test_any_name_that_python_takes_can_be_an_argument() -> None:
    """Names of pydantic's own methods, of the tool's and of Python's are nothing special."""

    @tool
    def named(
        schema: str, copy: int, json: bool, self: str, params: str, cls: str, name: str, arguments: str, function: str
    ) -> str:
        """Do."""
        return f"{schema} {copy} {json} {self} {params} {cls} {name} {arguments} {function}"

    names = ("schema", "copy", "json", "self", "params", "cls", "name", "arguments", "function")
    assert listed(named)["inputSchema"]["required"] == list(names)
    given: JsonObject = dict.fromkeys(names, "x") | {"copy": 1, "json": True}
    alice = Server([named]).client()
    assert alice.call("named", given).text == "x 1 True x x x x x x"


@pytest.mark.parametrize("annotation", [Context, Optional[Context], Annotated[Context, "mine"]], ids=str)  # noqa: UP045
def test_the_context_is_no_argument_however_it_is_annotated(annotation: Any) -> None:
    def whoami(c: Any) -> str:
        """Say who calls."""
        return str(c.principal.subject)

    whoami.__annotations__["c"] = annotation
    mine = tool(whoami)
    assert listed(mine)["inputSchema"]["properties"] == {}
    assert call(mine, c="forged").text == "alice"


def test_keyword_only_parameters_are_arguments() -> None:
    @tool
    def add(*, left: int, right: int = 2) -> int:
        """Add."""
        return left + right

    assert call(add, left=1).text == "3"


@tool
def strict(
    n: int,
    flag: bool = False,
    day: date | None = None,
    colour: Colour | None = None,
    inner: Inner | None = None,
    numbers: list[int] | None = None,
    ratio: float = 1.0,
    amount: Decimal | None = None,
    key: UUID | None = None,
    choice: Literal["a", "b"] = "a",
    bounded: Annotated[int, Field(gt=0)] = 1,
) -> str:
    """Take arguments of every kind."""
    return repr((n, flag, day, colour, inner, numbers, ratio, amount, key, choice, bounded))


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        ("n", 1.0),
        ("n", 2**62 + 1),
        ("day", "2026-12-24"),
        ("colour", "red"),
        ("inner", {"a": 1}),
        ("numbers", [1, 2]),
        ("ratio", 1),
        ("amount", "1.50"),
        ("key", "12345678-1234-5678-1234-567812345678"),
        ("choice", "b"),
        ("day", None),
        ("unknown", "ignored"),
    ],
)
def test_an_argument_that_fits_reaches_the_function_as_its_type(argument: str, value: Any) -> None:
    expected: JsonObject = {
        "n": f"({value}," if isinstance(value, int) else "(1,",
        "day": "datetime.date(2026, 12, 24)" if value else "False, None",
        "colour": "<Colour.RED: 'red'>",
        "inner": "Inner(a=1)",
        "numbers": "[1, 2]",
        "ratio": "1.0",
        "amount": "Decimal('1.50')",
        "key": "UUID('12345678-1234-5678-1234-567812345678')",
        "choice": "'b'",
        "unknown": "(1, False",
    }
    reply = call(strict, **{"n": 1, argument: value})
    assert not reply.is_error
    assert expected[argument] in reply.text


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({}, "n: Field required"),
        ({"n": "1"}, "n: Input should be a valid integer"),
        ({"n": 1.5}, "n: Input should be a valid integer"),
        ({"n": True}, "n: Input should be a valid integer"),
        ({"n": None}, "n: Input should be a valid integer"),
        ({"n": 1, "flag": "true"}, "flag: Input should be a valid boolean"),
        ({"n": 1, "flag": 1}, "flag: Input should be a valid boolean"),
        ({"n": 1, "day": "tomorrow"}, "day: Input should be a valid date"),
        ({"n": 1, "day": 1790000000}, "day: Input should be a valid date"),
        ({"n": 1, "colour": "blue"}, "colour: Input should be 'red'"),
        ({"n": 1, "inner": {}}, "inner.a: Field required"),
        ({"n": 1, "numbers": ["x"]}, "numbers.0: Input should be a valid integer"),
        ({"n": 1, "ratio": "1"}, "ratio: Input should be a valid number"),
        ({"n": 1, "key": "x"}, "key: Input should be a valid UUID"),
        ({"n": 1, "choice": "c"}, "choice: Input should be 'a' or 'b'"),
        ({"n": 1, "bounded": 0}, "bounded: Input should be greater than 0"),
        ({"n": "hunter2", "flag": "hunter2"}, "n: Input should be a valid integer; flag: Input should be"),
    ],
    ids=repr,
)
def test_an_argument_that_does_not_fit_is_an_error_that_names_it(arguments: JsonObject, said: str) -> None:
    """server/tools, Error Handling: input validation is a tool execution error, for the model to correct."""
    refused = call(strict, **arguments)
    assert (refused.status, refused.is_error) == (200, True)
    assert refused.text.startswith(f"Invalid arguments: {said}")
    assert "hunter2" not in refused.text


class Ticket(BaseModel):
    model_config = ConfigDict(populate_by_name=True)
    ticket_id: str = Field(alias="ticketId")
    opened: datetime


@dataclass
class Money:
    amount: Decimal
    currency: Colour


class Part(TypedDict):
    number: int
    due: NotRequired[date]


class Point(NamedTuple):
    x: int
    name: str


MOMENT = datetime(2026, 12, 24, 18, tzinfo=UTC)
TICKET = {"ticketId": "T-1", "opened": "2026-12-24T18:00:00Z"}
STRUCTURED = [
    ("a model with an alias", Ticket, Ticket(ticket_id="T-1", opened=MOMENT), TICKET),
    ("a model or None", Ticket | None, None, None),
    ("a list of models", list[Ticket], [Ticket(ticket_id="T-1", opened=MOMENT)], [TICKET]),
    ("a dataclass", Money, Money(Decimal("1.50"), Colour.RED), {"amount": "1.50", "currency": "red"}),
    ("a TypedDict", Part, {"number": 1, "due": date(2026, 12, 24)}, {"number": 1, "due": "2026-12-24"}),
    ("a TypedDict without its optional key", Part, {"number": 1}, {"number": 1}),
    ("a NamedTuple", Point, Point(1, "a"), [1, "a"]),
    ("a list", list[int], [1, 2], [1, 2]),
    ("an empty list", list[int], [], []),
    ("a dict", dict[str, float], {"a": 1.5}, {"a": 1.5}),
    ("a dict of anything", dict[str, Any], {"a": [None, "Größe"]}, {"a": [None, "Größe"]}),
    ("an integer", int, 5, 5),
    ("a boolean", bool, False, False),
    ("a datetime", datetime, MOMENT, "2026-12-24T18:00:00Z"),
    ("a date", date, date(2026, 12, 24), "2026-12-24"),
    ("a timedelta", timedelta, timedelta(seconds=5), "PT5S"),
    ("a Decimal", Decimal, Decimal("1.50"), "1.50"),
    ("an Enum", Colour, Colour.RED, "red"),
    ("a Literal", Literal["a", "b"], "a", "a"),
    ("a union", Ticket | Part, {"number": 1}, {"number": 1}),
    ("a result or a question", list[int] | InputRequired, [1], [1]),
]


def returning(annotation: Any, value: Any) -> Tool:
    def produce() -> Any:
        """Produce something."""
        return value

    produce.__annotations__["return"] = annotation
    return tool(produce)


@pytest.mark.parametrize(
    ("annotation", "value", "expected"), [each[1:] for each in STRUCTURED], ids=[each[0] for each in STRUCTURED]
)
def test_a_result_is_structured_and_conforms_to_its_output_schema(annotation: Any, value: Any, expected: Any) -> None:
    """server/tools, Output Schema: servers MUST conform. Structured Content: the JSON as text as well."""
    made = returning(annotation, value)
    result = call(made).result
    assert result["structuredContent"] == expected
    (block,) = result["content"]
    assert json.loads(block["text"]) == expected
    Draft202012Validator(listed(made)["outputSchema"], format_checker=Draft202012Validator.FORMAT_CHECKER).validate(
        expected
    )


@pytest.mark.parametrize(
    ("annotation", "value", "content"),
    [
        (str, "Größe 😀", [{"type": "text", "text": "Größe 😀"}]),
        (str, "", [{"type": "text", "text": ""}]),
        (str | None, "x", [{"type": "text", "text": "x"}]),
        (str | None, None, []),
        (None, None, []),
        (str | InputRequired, "x", [{"type": "text", "text": "x"}]),
        (NoReturn, "x", [{"type": "text", "text": "x"}]),
        (Any, {"ok": True}, [{"type": "text", "text": '{"ok":true}'}]),
        (
            Any,
            Ticket(ticket_id="T-1", opened=MOMENT),
            [{"type": "text", "text": json.dumps(TICKET, separators=(",", ":"))}],
        ),
        (Any, 5, [{"type": "text", "text": "5"}]),
    ],
    ids=repr,
)
def test_text_and_what_has_no_type_is_text_content_alone(annotation: Any, value: Any, content: Any) -> None:
    made = returning(annotation, value)
    assert call(made).result["content"] == content
    assert "structuredContent" not in call(made).result
    assert "outputSchema" not in listed(made)


def test_a_function_without_a_return_annotation_answers_in_json() -> None:
    """Not with Python's repr, which no model should have to read."""

    @tool
    def produce():  # type: ignore[no-untyped-def]
        """Produce."""
        return {"ok": True, "none": None}

    assert json.loads(call(produce).text) == {"ok": True, "none": None}


@pytest.mark.parametrize(
    ("annotation", "value"),
    [
        (int, "many"),
        (Ticket, {"ticketId": "T-1"}),
        (Ticket, None),
        (float, math.nan),
        (list[float], [math.inf]),
        (bytes, b"\xff"),
        (Colour, "blue"),
    ],
    ids=repr,
)
def test_a_result_that_is_not_what_the_signature_says_is_an_error_and_never_sent(annotation: Any, value: Any) -> None:
    """A client validates structured content against the schema: better an error than a lie."""
    failed = call(returning(annotation, value))
    assert (failed.status, failed.is_error) == (200, True)
    assert "structuredContent" not in failed.result


def test_a_result_with_a_lone_surrogate_is_still_valid_utf_8() -> None:
    """CASES 34."""
    assert call(returning(str, "a\ud800b")).text == "a?b"
    assert call(returning(dict[str, str], {"a": "\udc00"})).result["structuredContent"] == {"a": "?"}


def make(function: Callable[..., Any], doc: str | None = "Do.") -> Callable[..., Any]:
    function.__doc__ = doc
    return function


class Unknown:
    pass


def with_field_default(id: str = Field(description="Ticket id")) -> None: ...
def with_args(*ids: str) -> None: ...
def with_kwargs(**ids: str) -> None: ...
def positional(id: str, /) -> None: ...
def positional_context(ctx: Context, /) -> None: ...
def unannotated(id) -> None: ...  # type: ignore[no-untyped-def]


def unannotated_context(ctx) -> None: ...  # type: ignore[no-untyped-def]
def unresolved(id: "Nowhere") -> None: ...  # type: ignore[name-defined]  # noqa: F821
def no_schema(id: Unknown) -> None: ...
def no_result_schema() -> Unknown:
    return Unknown()


def generator() -> Iterator[str]:
    yield "a"


async def async_generator() -> AsyncIterator[str]:
    yield "a"


@pytest.mark.parametrize(
    ("function", "remedy"),
    [
        (with_field_default, "write it into the annotation, id: Annotated[..., Field(...)] = default."),
        (with_args, "arguments come by name, so make ids a plain parameter."),
        (with_kwargs, "arguments come by name, so make ids a plain parameter."),
        (positional, "arguments come by name, so make id a plain parameter."),
        (positional_context, "arguments come by name, so make ctx a plain parameter."),
        (unannotated, "annotate id, its schema comes from the annotation."),
        (unannotated_context, "write ctx: Context."),
        (unresolved, "import it in the tool's module."),
        (no_schema, "use types that JSON can carry, or a pydantic model."),
        (no_result_schema, "use types that JSON can carry, or a pydantic model."),
        (generator, "return its result."),
        (async_generator, "return its result."),
    ],
    ids=lambda each: getattr(each, "__name__", ""),
)
def test_a_signature_that_cannot_work_is_refused_at_import_with_the_remedy(
    function: Callable[..., Any], remedy: str
) -> None:
    with pytest.raises(ConfigurationError) as refused:
        tool(make(function))
    (problem,) = refused.value.problems
    assert function.__name__ in problem
    assert problem.endswith(remedy)


def test_every_problem_of_a_tool_is_named_at_once() -> None:
    def wrong(a, *b: int) -> None: ...  # type: ignore[no-untyped-def]

    with pytest.raises(ConfigurationError) as refused:
        tool(name="not a name")(make(wrong, None))
    assert [each.rpartition(": ")[2] for each in refused.value.problems] == [
        "annotate a, its schema comes from the annotation.",
        "arguments come by name, so make b a plain parameter.",
        "rename it.",
        "write what it does, the model chooses tools by it.",
    ]


@pytest.mark.parametrize("name", ["a b", "größe", "a/b", "x" * 129, "a\n"])
def test_a_name_that_the_specification_does_not_allow_is_refused(name: str) -> None:
    """server/tools, Tool Names."""
    with pytest.raises(ConfigurationError, match="1 to 128 of"):
        tool(name=name)(make(lambda: None))


def test_a_tool_without_a_docstring_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="the model chooses tools by it"):
        tool(name="silent")(make(lambda: None, None))


@pytest.mark.parametrize("misuse", ["close_ticket", functools.partial(print), Inner(a=1)], ids=repr)
def test_a_decorator_on_something_else_says_what_it_is_for(misuse: Any) -> None:
    """`@tool("name")` is how other frameworks are written."""
    with pytest.raises(ConfigurationError, match=r"put it on a def, and a name in @tool\(name=\.\.\.\)"):
        tool(misuse)


def test_a_scope_that_is_no_list_is_not_taken_for_letters() -> None:
    with pytest.raises(ConfigurationError, match=r"write scopes=\['reports:delete'\]"):
        tool(name="a", scopes="reports:delete")(make(lambda: None))  # type: ignore[call-overload]


def test_a_type_without_a_json_schema_is_found_by_the_test_kit() -> None:
    """Not by every user's tools/list."""

    @tool
    def odd(callback: Callable[[], int]) -> str:
        """Do."""
        return ""

    with pytest.raises(ConfigurationError, match=r"no JSON Schema for a type of odd .*: use types that JSON can carry"):
        Server([odd])
