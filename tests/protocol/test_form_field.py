"""Fields of forms: which is which property of the subset, and which is refused with which remedy."""

import json
import math
from datetime import UTC, date, datetime, time
from decimal import Decimal
from enum import StrEnum
from typing import Annotated, Any, Literal, Optional, Union

import pydantic
import pytest
from annotated_types import Ge, Interval, Le, Len
from pydantic import AliasChoices, AliasPath, AnyUrl, Field, SecretBytes, SecretStr

from app.errors import ConfigurationError
from app.protocol.elicitation import Accepted
from app.strict_json import JsonObject
from tests.protocol.forms import (
    COLOURS,
    SIZES,
    STAGES,
    Address,
    Agent,
    Colour,
    Maybe,
    Priority,
    Size,
    Stage,
    TicketId,
    form,
)
from tests.protocol.official_types import SERVER_INFO, judge_result


def property_of(annotation: Any, default: Any = ...) -> JsonObject:
    """The one property of a form, after the official types have judged the request."""
    request = json.loads(json.dumps(form(annotation, default).request("Please"), allow_nan=False))
    judge_result(
        "tools/call",
        {
            "resultType": "input_required",
            "inputRequests": {"key": request},
            "_meta": {SERVER_INFO: {"name": "roundtrip", "version": "1"}},
        },
    )
    ((_, member),) = request["params"]["requestedSchema"]["properties"].items()
    assert isinstance(member, dict)
    return member


PROPERTIES = [
    ("text", str, ..., {"type": "string"}),
    ("an integer", int, ..., {"type": "integer"}),
    ("a number", float, ..., {"type": "number"}),
    ("a tick", bool, ..., {"type": "boolean"}),
    ("a day", date, ..., {"type": "string", "format": "date"}),
    ("a day to come", pydantic.FutureDate, ..., {"type": "string", "format": "date"}),
    ("a moment", datetime, ..., {"type": "string", "format": "date-time"}),
    ("a moment with its offset", pydantic.AwareDatetime, ..., {"type": "string", "format": "date-time"}),
    ("a URL", AnyUrl, ..., {"type": "string", "format": "uri"}),
    ("a web URL", pydantic.HttpUrl, ..., {"type": "string", "format": "uri"}),
    ("an email address", str, Field(json_schema_extra={"format": "email"}), {"type": "string", "format": "email"}),
    ("text of a format that the subset lacks", str, Field(json_schema_extra={"format": "uuid"}), {"type": "string"}),
    ("a Literal", Literal["ana", "ben"], ..., {"type": "string", "enum": ["ana", "ben"]}),
    ("a StrEnum", Size, ..., SIZES),
    ("an Enum whose names say more than its values", Stage, ..., {"type": "string", "oneOf": STAGES}),
    ("an Enum with labels", Colour, ..., {"type": "string", "oneOf": COLOURS}),
    ("several of a Literal", list[Literal["a"]], ..., {"type": "array", "items": {"type": "string", "enum": ["a"]}}),
    ("several of a StrEnum", list[Size], ..., {"type": "array", "items": SIZES}),
    ("several of a titled Enum", list[Stage], ..., {"type": "array", "items": {"anyOf": STAGES}}),
    ("a set", set[Size], ..., {"type": "array", "items": SIZES}),
    ("a frozenset of labels", frozenset[Colour], ..., {"type": "array", "items": {"anyOf": COLOURS}}),
    ("a tuple of any length", tuple[Size, ...], ..., {"type": "array", "items": SIZES}),
    ("an Optional", Optional[int], ..., {"type": "integer"}),  # noqa: UP045
    ("an Optional with its default", int | None, None, {"type": "integer"}),
    ("an Optional with another default", int | None, 3, {"type": "integer", "default": 3}),
    ("an Optional choice", Size | None, None, SIZES),
    ("an Optional list", list[Size] | None, None, {"type": "array", "items": SIZES}),
    ("an alias of a type", Agent, ..., {"type": "string", "enum": ["ana", "ben"]}),
    ("a list of an alias", list[Agent], ..., {"type": "array", "items": {"type": "string", "enum": ["ana", "ben"]}}),
    ("an alias of an Optional", Maybe, ..., {"type": "integer", "minimum": 1}),
    ("a NewType", TicketId, ..., {"type": "string"}),
    ("bounds of a number", float, Field(ge=0.5, le=2), {"type": "number", "minimum": 0.5, "maximum": 2}),
    ("no bound", float, Field(ge=-math.inf, le=math.inf), {"type": "number"}),
    ("bounds of a text", str, Field(min_length=1, max_length=9), {"type": "string", "minLength": 1, "maxLength": 9}),
    (
        "bounds of a list",
        Annotated[list[Size], Len(1, 2)],
        ...,
        {"type": "array", "items": SIZES, "minItems": 1, "maxItems": 2},
    ),
    ("an Interval", Annotated[int, Interval(ge=1, le=3)], ..., {"type": "integer", "minimum": 1, "maximum": 3}),
    ("conint", pydantic.conint(ge=2), ..., {"type": "integer", "minimum": 2}),
    ("constr", pydantic.constr(max_length=5), ..., {"type": "string", "maxLength": 5}),
    (
        "nested Annotated",
        Annotated[Annotated[int, Ge(1)], Le(5)],
        ...,
        {"type": "integer", "minimum": 1, "maximum": 5},
    ),
    (
        "Annotated in an Optional",
        Annotated[int, Field(ge=1, title="Nights", description="How many")] | None,
        None,
        {"type": "integer", "minimum": 1, "title": "Nights", "description": "How many"},
    ),
    (
        "the outer description before the inner",
        Annotated[str, Field(description="inner")] | None,
        Field(None, description="outer"),
        {"type": "string", "description": "outer"},
    ),
    ("what only the answer can show", str, Field(pattern="^T-"), {"type": "string"}),
    ("a bound that only the answer can show", int, Field(gt=0), {"type": "integer"}),
    ("a length that a choice does not need", Size, Field(min_length=1), SIZES),
    ("a default text", str, "", {"type": "string", "default": ""}),
    ("a default tick", bool, False, {"type": "boolean", "default": False}),
    ("a default number", float, 1, {"type": "number", "default": 1}),
    ("a default choice", Stage, Stage.TEST, {"type": "string", "oneOf": STAGES, "default": "t"}),
    ("a default list", list[Size], [Size.SMALL], {"type": "array", "items": SIZES, "default": ["small"]}),
    ("a default day", date, date(2026, 12, 24), {"type": "string", "format": "date", "default": "2026-12-24"}),
    (
        "a default moment",
        datetime,
        datetime(2026, 12, 24, 18, tzinfo=UTC),
        {"type": "string", "format": "date-time", "default": "2026-12-24T18:00:00+00:00"},
    ),
    (
        "a default URL",
        AnyUrl,
        AnyUrl("https://example.com/a"),
        {"type": "string", "format": "uri", "default": "https://example.com/a"},
    ),
    ("a default that is made when it is needed", str, Field(default_factory=lambda: "now"), {"type": "string"}),
    (
        "a title and a description",
        str,
        Field(title="Note", description="For the customer"),
        {"type": "string", "title": "Note", "description": "For the customer"},
    ),
]


@pytest.mark.parametrize(
    ("annotation", "default", "expected"), [each[1:] for each in PROPERTIES], ids=[each[0] for each in PROPERTIES]
)
def test_a_field_is_shown_as(annotation: Any, default: Any, expected: JsonObject) -> None:
    """client/elicitation, Requested Schema; python-sdk#1563, fastmcp#2772, modelcontextprotocol#1330."""
    assert property_of(annotation, default) == expected


def test_an_email_field_is_shown_as_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """pydantic wants the package email-validator as soon as a model has such a field."""
    monkeypatch.setattr("pydantic.networks.import_email_validator", lambda: None)
    assert property_of(pydantic.EmailStr) == {"type": "string", "format": "email"}


@pytest.mark.parametrize(
    ("annotation", "default", "required"),
    [
        (int, ..., True),
        (int, 3, False),
        (int, Field(default_factory=int), False),
        (int | None, ..., False),
        (int | None, None, False),
        (Maybe, ..., False),
        (Annotated[int | None, Field(ge=1)], ..., False),
    ],
    ids=str,
)
def test_a_field_is_required_unless_it_has_a_default_or_may_be_none(
    annotation: Any, default: Any, required: bool
) -> None:
    """CASES 49: an Optional without a default must not block the user."""
    assert form(annotation, default).schema.get("required", []) == (["field"] if required else [])


@pytest.mark.parametrize(
    ("info", "name"),
    [
        (Field(alias="full name"), "full name"),
        (Field(validation_alias="read"), "read"),
        (Field(serialization_alias="written"), "field"),
        (Field(validation_alias=AliasChoices(AliasPath("a", 0), "b", "c")), "b"),
    ],
    ids=["alias", "validation alias", "serialization alias", "the first choice that is a name"],
)
def test_a_field_is_asked_and_read_under_one_name(info: Any, name: str) -> None:
    """A form that shows another name than the model reads would be asked again for ever."""
    asked = form(str, info)
    assert list(asked.schema["properties"]) == asked.schema["required"] == [name]
    assert isinstance(asked.read({"action": "accept", "content": {name: "x"}}), Accepted)


def test_a_set_has_the_same_default_in_every_process() -> None:
    """String hashes differ between processes: a question with another order would never be answered."""
    letters = list("qwertzuiop")
    assert property_of(set[Literal[*letters]], set(letters))["default"] == letters  # type: ignore[valid-type]


FLAT = "forms are flat: move its fields up, or ask a second question."
STRINGS = "the options of a form are strings: use a StrEnum, or a Literal of strings."
CHOICE = "a list in a form is a choice from options: use list[Literal[...]] or list[AnEnum]."
PAGE = "secrets must not pass through the client: ask for it on your own page with ctx.secret."
USE = (
    "has no place in a form: use str, int, float, bool, date, datetime, AnyUrl, Literal, an Enum of strings, "
    "or a list of one of the last two."
)
VALUE = "is no value of the field: give it one that is, or none."

REFUSED = [
    ("a nested model", Address, ..., FLAT),
    ("an optional nested model", Address | None, None, FLAT),
    ("a dict", dict, ..., FLAT),
    ("a dict of something", dict[str, int], ..., FLAT),
    ("a secret", SecretStr, ..., PAGE),
    ("an optional secret", SecretStr | None, None, PAGE),
    ("secret bytes", SecretBytes, ..., PAGE),
    ("an IntEnum", Priority, ..., STRINGS),
    ("a Literal of numbers", Literal[1, 2], ..., STRINGS),
    ("a Literal with None", Literal["a", None], ..., STRINGS),
    ("an Enum without members", StrEnum("Nothing", {}), ..., STRINGS),
    ("several of an IntEnum", list[Priority], ..., STRINGS),
    ("a bare list", list, ..., CHOICE),
    ("a bare set", set, ..., CHOICE),
    ("a list of text", list[str], ..., CHOICE),
    ("a list of models", list[Address], ..., CHOICE),
    ("a tuple with places", tuple[Size, Size], ..., CHOICE),
    ("a union", str | int, ..., USE),
    ("an optional union", Union[str, int, None], None, USE),  # noqa: UP007
    ("anything", Any, ..., USE),
    ("a time of day", time, ..., USE),
    ("a decimal", Decimal, ..., USE),
    ("bytes", bytes, ..., USE),
    ("an alias that is a path", str, Field(validation_alias=AliasPath("a", "b")), "give it an alias that is a name."),
    ("a default of another type", int, "3", VALUE),
    ("a tick that is a number", bool, 1, VALUE),
    ("a number that is a tick", int, True, VALUE),
    ("a default that is no option", Literal["a"], "b", VALUE),
    ("a default list with something else", list[Size], ["huge"], VALUE),
    ("an infinite default", float, math.inf, "use None for no limit."),
]


@pytest.mark.parametrize(
    ("annotation", "default", "remedy"), [each[1:] for each in REFUSED], ids=[each[0] for each in REFUSED]
)
def test_what_is_no_form_field_is_refused_with_the_remedy(annotation: Any, default: Any, remedy: str) -> None:
    """client/elicitation: flat objects with primitive properties only; MUST NOT ask for secrets."""
    with pytest.raises(ConfigurationError) as refused:
        form(annotation, default)
    (problem,) = refused.value.problems
    assert problem.startswith("Asked.field cannot be asked in a form: ")
    assert problem.endswith(remedy)


@pytest.mark.parametrize(
    "name",
    [
        *("password", "passwd", "passphrase", "passcode", "pwd", "user_password", "newPassword"),
        *("secret", "client_secret", "clientSecret", "secrets", "credential", "aws_credentials"),
        *("api_key", "apikey", "apiKey", "API_KEY", "api-key", "access_key", "private_key"),
        *("token", "access_token", "accessToken", "bearer", "bearer_token"),
        *("credit_card", "creditCard", "debit_card", "card_number", "cardNumber", "card_no"),
        *("cvv", "cvc", "cvc2", "pin", "otp", "totp"),
    ],
)
def test_a_field_whose_name_says_credential_is_refused(name: str) -> None:
    """client/elicitation, Security: servers MUST NOT use form mode for passwords, API keys, payment credentials."""
    for annotation in (str, str | None, int):
        with pytest.raises(ConfigurationError) as refused:
            form(annotation, name=name)
        assert "Ask for it on your own page with ctx.secret, or rename the field if it is none." in str(refused.value)


@pytest.mark.parametrize("info", [Field(alias="api key"), Field(title="Your API key")], ids=["alias", "title"])
def test_a_credential_does_not_hide_behind_another_name(info: Any) -> None:
    with pytest.raises(ConfigurationError, match="credential"):
        form(str, info)


@pytest.mark.parametrize(
    ("name", "annotation"),
    [
        *((name, str) for name in ("username", "email", "secretary", "tokenizer", "token_count", "passport", "pinned")),
        *((name, str) for name in ("card", "keyboard", "monkey", "shipping", "pass_mark")),
        ("reset_password", bool),
        ("api_key", Literal["rotate", "keep"]),
        ("credentials", list[Size]),
        ("password_changed_on", date),
    ],
)
def test_an_honest_field_is_not_taken_for_a_credential(name: str, annotation: Any) -> None:
    """A tick, a choice and a day cannot hold one."""
    assert list(form(annotation, name=name).schema["properties"]) == [name]
