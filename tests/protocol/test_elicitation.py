"""Form-mode elicitation: which model is a form, and which answer counts."""

from datetime import UTC, date, datetime
from typing import Annotated, Any, Final, Literal, assert_never, assert_type

import pydantic
import pytest
from annotated_types import Len
from hypothesis import given as drawn
from hypothesis import settings
from hypothesis import strategies as st
from pydantic import AnyUrl, BaseModel, ConfigDict, Field

from app.errors import ConfigurationError
from app.protocol import request_state
from app.protocol.elicitation import (
    KEY,
    Accepted,
    Answer,
    AnyAnswer,
    Cancelled,
    Declined,
    Form,
    Invalid,
    Missing,
    form_of,
    read_action,
)
from app.strict_json import JsonObject
from tests.protocol.forms import Address, Size, Stage, form


def answer(annotation: Any, value: Any, default: Any = ...) -> Answer[BaseModel] | Invalid:
    return form(annotation, default).read({"action": "accept", "content": {"field": value}})


def test_every_problem_of_a_model_is_named_at_once() -> None:
    class Wrong(BaseModel):
        address: Address
        password: str
        fine: bool

    with pytest.raises(ConfigurationError) as refused:
        Form(Wrong)
    assert [each.partition(" ")[0] for each in refused.value.problems] == ["Wrong.address", "Wrong.password"]


def test_a_form_without_fields_is_refused_with_the_remedy() -> None:
    """anthropics/claude_skills#473, pi-mcp-adapter#311: hosts hang on empty properties."""

    class Nothing(BaseModel):
        pass

    with pytest.raises(ConfigurationError, match="add one, such as `confirm: bool`"):
        Form(Nothing)


def test_a_root_model_is_refused_with_the_remedy() -> None:
    class Root(pydantic.RootModel[str]):
        pass

    with pytest.raises(ConfigurationError, match=r"make it a BaseModel\.") as refused:
        Form(Root)
    assert len(refused.value.problems) == 1


def test_a_question_says_its_mode_and_its_message() -> None:
    """modelcontextprotocol#1863: the mode is always there, although form is what its absence means."""
    assert form(bool).request("Sure?")["method"] == "elicitation/create"
    assert form(bool).request("Sure?")["params"].items() >= {"mode": "form", "message": "Sure?"}.items()


def test_a_form_is_built_once() -> None:
    assert form_of(Address) is form_of(Address)


def test_an_alias_counts_even_where_the_model_would_not_read_it() -> None:
    class ByName(BaseModel):
        model_config = ConfigDict(validate_by_alias=False, validate_by_name=True)
        confirm: bool = Field(alias="sure")

    assert Form(ByName).read({"action": "accept", "content": {"sure": True}}) == Accepted(ByName(confirm=True))


ACCEPTED = [
    ("true", bool, True, True),
    ("false", bool, False, False),
    ("an integer", int, 3, 3),
    ("an integer as JavaScript may write it", int, 1.0, 1),
    ("a large integer", int, 2**53 + 1, 2**53 + 1),
    ("a number", float, 1.5, 1.5),
    ("a number without a fraction", float, 2, 2.0),
    ("text", str, "Größe 😀", "Größe 😀"),
    ("an empty text where one is required", str, "", ""),
    ("a day", date, "2026-12-24", date(2026, 12, 24)),
    ("a moment", datetime, "2026-12-24T18:00:00Z", datetime(2026, 12, 24, 18, tzinfo=UTC)),
    ("a URL", AnyUrl, "https://example.com/", AnyUrl("https://example.com/")),
    ("a choice", Stage, "prod", Stage.PRODUCTION),
    ("a Literal", Literal["a", "b"], "b", "b"),
    ("several", list[Size], ["small"], [Size.SMALL]),
    ("none of several", list[Size], [], []),
    ("a set", frozenset[Size], ["small", "small"], frozenset({Size.SMALL})),
    ("a tuple", tuple[Size, ...], ["small"], (Size.SMALL,)),
    ("an Optional", int | None, 3, 3),
    ("no value for an Optional", int | None, None, None),
    ("an input left blank for an Optional", int | None, "", None),
]


@pytest.mark.parametrize(
    ("annotation", "value", "expected"), [each[1:] for each in ACCEPTED], ids=[each[0] for each in ACCEPTED]
)
def test_an_answer_that_fits_is_the_models_value(annotation: Any, value: Any, expected: Any) -> None:
    given = answer(annotation, value)
    assert isinstance(given, Accepted)
    read = given.value.field  # type: ignore[attr-defined]
    assert (read, type(read)) == (expected, type(expected))


def positive_even(number: int) -> int:
    if number % 2:
        raise ValueError("must be even")
    return number


REASONS = [
    ("a tick", bool, "true", "valid boolean"),
    ("a tick", bool, "yes", "valid boolean"),
    ("a tick", bool, 1, "valid boolean"),
    ("a tick", bool, 0, "valid boolean"),
    ("a tick", bool, None, "valid boolean"),
    ("a tick", bool, "", "valid boolean"),
    ("a tick", bool, [True], "valid boolean"),
    ("a tick", bool, {"confirm": True}, "valid boolean"),
    ("an integer", int, "3", "valid integer"),
    ("an integer", int, 1.5, "valid integer"),
    ("an integer", int, True, "valid integer"),
    ("a number", float, "1.5", "valid number"),
    ("text", str, 5, "valid string"),
    ("text", str, None, "valid string"),
    ("a day", date, "24.12.2026", "valid date"),
    ("a day", date, "2026-12-24T00:00:00", "valid date"),
    ("a day", date, 1790000000, "valid date"),
    ("a moment", datetime, "tomorrow", "valid datetime"),
    ("a URL", AnyUrl, "example", "valid URL"),
    ("a choice", Size, "huge", "'small' or 'extra_large'"),
    ("a choice", Size, "SMALL", "'small' or 'extra_large'"),
    ("a choice", Size, "", "'small' or 'extra_large'"),
    ("a choice", Literal["a", "b"], "c", "'a' or 'b'"),
    ("several", list[Size], "small", "valid array"),
    ("several", list[Size], ["huge"], "field.0"),
    ("a pattern", Annotated[str, Field(pattern="^T-")], "X-1", "pattern"),
    ("a bound", Annotated[int, Field(gt=0)], 0, "greater than 0"),
    ("a bound", Annotated[int, Field(ge=1, le=4)], 5, "less than or equal to 4"),
    ("a length", Annotated[list[Size], Len(1)], [], "at least 1 item"),
    ("a validator", Annotated[int, pydantic.AfterValidator(positive_even)], 3, "must be even"),
    ("an email address", Annotated[str, Field(json_schema_extra={"format": "email"})], "bob", "format email"),
    ("an email address", Annotated[str, Field(json_schema_extra={"format": "email"})], "a@b\n", "format email"),
    ("a URI in text", Annotated[str, Field(json_schema_extra={"format": "uri"})], "nowhere", "format uri"),
    ("a day in text", Annotated[str, Field(json_schema_extra={"format": "date"})], "20261224", "format date"),
    ("a day in text", Annotated[str, Field(json_schema_extra={"format": "date"})], "2026-02-30", "format date"),
    ("a moment in text", Annotated[str, Field(json_schema_extra={"format": "date-time"})], "2026-12-24", "date-time"),
]


@pytest.mark.parametrize(
    ("annotation", "value", "reason"),
    [each[1:] for each in REASONS],
    ids=[f"{each[2]!r} for {each[0]}" for each in REASONS],
)
def test_an_answer_that_does_not_fit_is_invalid_and_says_which_field(annotation: Any, value: Any, reason: str) -> None:
    """CASES 53-55: kotlin-sdk#895, arcade-mcp#828, assistant-ui#5341. Nothing is coerced into consent."""
    given = answer(annotation, value)
    assert isinstance(given, Invalid)
    assert given.reason.startswith("field")
    assert reason in given.reason


@pytest.mark.parametrize(
    ("expected", "text"),
    [
        ("email", "ana.o'neil+x@mail.example.co.uk"),
        ("uri", "urn:isbn:1"),
        ("date", "2026-12-24"),
        ("date-time", "2026-12-24T18:00:00Z"),
        ("date-time", "2026-12-24T18:00"),
    ],
)
def test_text_that_has_its_format_is_accepted(expected: str, text: str) -> None:
    assert isinstance(answer(Annotated[str, Field(json_schema_extra={"format": expected})], text), Accepted)


class Order(BaseModel):
    model_config = ConfigDict(extra="allow")
    confirm: bool
    note: str | None
    copies: int = 1


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ({"confirm": True}, Order(confirm=True, note=None)),
        ({"confirm": True, "note": "", "copies": ""}, Order(confirm=True, note=None)),
        ({"confirm": True, "note": None, "copies": None}, Order(confirm=True, note=None)),
        ({"confirm": True, "note": "x", "copies": 2}, Order(confirm=True, note="x", copies=2)),
        ({"confirm": True, "admin": True, "__class__": "x", "": 1}, Order(confirm=True, note=None)),
    ],
)
def test_blank_optional_inputs_are_unanswered_and_unknown_keys_are_dropped(
    content: JsonObject, expected: Order
) -> None:
    """CASES 55 and 57: hosts send `""` and null for what was left blank. Unknown keys never reach the tool."""
    given = Form(Order).read({"action": "accept", "content": content})
    assert given == Accepted(expected)
    assert isinstance(given, Accepted)
    assert given.value.model_extra == {}


@pytest.mark.parametrize("content", [None, [], "confirm", 5, True, {}, {"note": "x"}, {"Confirm": True}], ids=repr)
def test_without_its_required_field_nothing_is_accepted(content: Any) -> None:
    assert isinstance(Form(Order).read({"action": "accept", "content": content}), Invalid)


def test_an_accept_without_content_is_invalid_even_if_every_field_is_optional() -> None:
    given = form(bool, False).read({"action": "accept"})
    assert given == Invalid("the answer has no content")


YES: Final = {"confirm": True, "field": True}


@pytest.mark.parametrize("content", [{}, {"content": None}, {"content": YES}, {"content": "x"}], ids=repr)
@pytest.mark.parametrize(("action", "expected"), [("decline", Declined()), ("cancel", Cancelled())])
def test_content_counts_only_with_accept(action: str, expected: object, content: JsonObject) -> None:
    """typescript-sdk#967 (`content: null`), OniMods#396 (content with a decline)."""
    assert form(bool).read({"action": action, **content}) == expected


@pytest.mark.parametrize(
    "response",
    [
        None,
        True,
        5,
        "accept",
        [],
        ["accept", YES],
        {},
        {"content": YES},
        {"action": None, "content": YES},
        {"action": True, "content": YES},
        {"action": ["accept"], "content": YES},
        {"action": "ACCEPT", "content": YES},
        {"action": "Accept", "content": YES},
        {"action": "accept ", "content": YES},
        {"action": "yes", "content": YES},
        {"action": "submit", "content": YES},
        {"Action": "accept", "content": YES},
    ],
    ids=repr,
)
def test_only_the_three_actions_are_answers(response: Any) -> None:
    """SECURITY 5, item 107."""
    assert read_action(response) is None
    given = form(bool).read(response)
    assert isinstance(given, Invalid)
    assert given.reason.endswith('"accept", "decline" or "cancel"')


def test_the_reason_names_the_field_and_never_the_value() -> None:
    """The reason goes into the next question and into logs: a mistyped value may be private."""

    class Private(BaseModel):
        day: date
        size: Size
        people: int = Field(gt=0)
        email: str = Field(json_schema_extra={"format": "email"})

    for field, value in [("day", "hunter2"), ("size", "hunter2"), ("people", "hunter2"), ("email", "hunter2")]:
        content = {"day": "2026-12-24", "size": "small", "people": 1, "email": "a@example.com", field: value}
        given = Form(Private).read({"action": "accept", "content": content})
        assert isinstance(given, Invalid)
        assert given.reason.startswith(field)
        assert "hunter2" not in given.reason


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=200, deadline=None)
@drawn(JSON, st.sampled_from(["accept", "decline", "cancel", "ACCEPT", None]))
def test_whatever_comes_back_only_true_is_consent(value: Any, action: str | None) -> None:
    given = Form(Order).read({"action": action, "content": {"confirm": value}})
    assert isinstance(given, Accepted | Declined | Cancelled | Invalid)
    if isinstance(given, Accepted):
        assert action == "accept"
        assert given.value.confirm is value


def kind(given: AnyAnswer[Address]) -> str:
    match given:
        case Missing():
            return "missing"
        case Accepted(value):
            assert_type(value, Address)
            return "accepted"
        case Declined():
            return "declined"
        case Cancelled():
            return "cancelled"
        case Invalid(reason):
            assert_type(reason, str)
            return "invalid"
        case _:
            assert_never(given)


def test_the_five_kinds_of_answer_are_told_apart() -> None:
    """And there is no sixth, or mypy refuses the match above."""
    kinds: list[AnyAnswer[Address]] = [Missing(), Accepted(Address(street="x")), Declined(), Cancelled(), Invalid("x")]
    assert [kind(each) for each in kinds] == ["missing", "accepted", "declined", "cancelled", "invalid"]


@pytest.mark.parametrize("key", ["a", "confirm", "A-1_b", "x" * 64])
def test_a_question_key_that_gateways_carry_is_taken(key: str) -> None:
    assert KEY.match(key)


@pytest.mark.parametrize("key", ["", "a:b", "app.tools", "a b", "ä", "a\n", "x" * 65, "a/b"])
def test_a_question_key_that_gateways_rewrite_is_not_taken(key: str) -> None:
    """Kuadrant/mcp-gateway#1517; and a key with a dot or colon tends to be a module path."""
    assert not KEY.match(key)


@pytest.mark.parametrize("message", ["Delete?", 'With "quotes" and \\ and é and \U0001f600', "\x00\x1f", ""])
def test_a_forms_digest_is_that_of_its_request(message: str) -> None:
    """It is put together from parts that are written once: the bytes must be the same."""
    shown = form_of(Order)
    assert shown.digest(message) == shown.digest(message) == request_state.digest(shown.request(message))
