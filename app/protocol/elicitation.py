"""Form-mode elicitation: a pydantic model as a form, and what came back as one of five answers.

A form is flat and says only what the specification's subset can say (client/elicitation, Requested
Schema): strings with four formats, numbers, integers, booleans, single and multiple choice, defaults.
What the subset cannot say (a pattern, `gt`, a validator) is still enforced on the answer. What must not
be asked through a form at all is refused when the form is built, with the remedy.
"""

import re
import types
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime
from enum import Enum
from typing import Annotated, Any, Final, Generic, Literal, TypeAlias, TypeVar, Union, get_args, get_origin

from annotated_types import Ge, Le, MaxLen, MinLen
from pydantic import AnyUrl, BaseModel, SecretBytes, SecretStr, ValidationError
from pydantic.fields import FieldInfo

from app import strict_json
from app.errors import ConfigurationError
from app.strict_json import JsonObject

M = TypeVar("M")
Model = TypeVar("Model", bound=BaseModel)

KEY: Final = re.compile(r"[A-Za-z0-9_-]{1,64}\Z")
"""Question keys survive gateways that rewrite unusual ones, and name no module or function."""

_SENSITIVE: Final = re.compile(
    r"pass(word|wd|phrase|code)|secret|credential|api_?key|access_?key|private_?key|token$|bearer|"
    r"(credit|debit)_?card|card_?(number|no$)|^(cvv|cvc|pin)\d?$",
    re.IGNORECASE,
)
_FORMATS: Final = ("email", "uri", "date", "date-time")
_SCALARS: Final[dict[type, JsonObject]] = {
    bool: {"type": "boolean"},
    int: {"type": "integer"},
    float: {"type": "number"},
    str: {"type": "string"},
    datetime: {"type": "string", "format": "date-time"},
    date: {"type": "string", "format": "date"},
}


@dataclass(frozen=True, slots=True)
class Accepted(Generic[M]):
    """The user submitted the form. `value` is the validated model."""

    value: M


@dataclass(frozen=True, slots=True)
class Declined:
    """The user said no."""


@dataclass(frozen=True, slots=True)
class Cancelled:
    """The user dismissed the question without an answer."""


@dataclass(frozen=True, slots=True)
class Missing:
    """The question was not asked in a verified earlier round, or not answered."""


@dataclass(frozen=True, slots=True)
class Invalid:
    """What came back does not fit the form. `reason` names the fields, and none of the values."""

    reason: str


Answer: TypeAlias = Accepted[M] | Declined | Cancelled
AnyAnswer: TypeAlias = Missing | Accepted[M] | Declined | Cancelled | Invalid


class Form(Generic[Model]):
    """A pydantic model as the `requestedSchema` of a form, and the reader of its answers.

    Raises ConfigurationError, naming each field and its remedy, for a model that cannot or must not
    be a form.
    """

    __slots__ = ("_model", "_nullable", "_optional", "schema")

    def __init__(self, model: type[Model]) -> None:
        self._model = model
        properties: JsonObject = {}
        required: list[str] = []
        nullable: list[str] = []
        problems: list[str] = []
        for name, info in _fields(model):
            try:
                properties[name] = _property(name, info)
            except _NotAFormField as error:
                problems.append(f"{model.__name__}.{name} cannot be asked in a form: {error}")
            if info.is_required():
                (nullable if _is_optional(info.annotation) else required).append(name)
        if not properties and not problems:
            problems.append(
                f"{model.__name__} has no fields, and hosts cannot show an empty form: "
                "add one, such as `confirm: bool`."
            )
        if problems:
            raise ConfigurationError(problems)
        self._optional = frozenset(properties) - frozenset(required)
        self._nullable = dict.fromkeys(nullable)
        self.schema: JsonObject = {"type": "object", "properties": properties}
        if required:
            self.schema["required"] = required

    def request(self, message: str) -> JsonObject:
        """The `elicitation/create` request that shows this form under `message`."""
        params = {"mode": "form", "message": message, "requestedSchema": self.schema}
        return {"method": "elicitation/create", "params": params}

    def read(self, response: Any) -> Answer[Model] | Invalid:
        """Read an ElicitResult, strictly: `"true"` is not `true`, and content counts only with accept.

        Unknown keys are dropped. An empty string or null for an optional field is an unanswered field:
        hosts send them for inputs left blank.
        """
        match read_action(response):
            case "decline":
                return Declined()
            case "cancel":
                return Cancelled()
            case "accept":
                return self._read_content(response.get("content"))
            case _:
                return Invalid('the answer must be an ElicitResult with the action "accept", "decline" or "cancel"')

    def _read_content(self, content: Any) -> Accepted[Model] | Invalid:
        if not isinstance(content, dict):
            return Invalid("the answer has no content")
        known = self._nullable | {
            name: value
            for name, value in content.items()
            if name in self.schema["properties"] and not (name in self._optional and value in ("", None))
        }
        try:
            return Accepted(self._model.model_validate_json(strict_json.canonical(known), strict=True))
        except ValidationError as error:
            return Invalid(describe(error))


_forms: dict[type[BaseModel], Form[Any]] = {}


def form_of(model: type[Model]) -> Form[Model]:
    """The form of a model, built once. Raises ConfigurationError."""
    form = _forms.get(model)
    if form is None:
        form = _forms[model] = Form(model)
    return form


def read_action(response: Any) -> str | None:
    """The action of an ElicitResult, or None when the value is not one."""
    action = response.get("action") if isinstance(response, dict) else None
    return action if isinstance(action, str) and action in ("accept", "decline", "cancel") else None


def describe(error: ValidationError) -> str:
    """What is wrong with which field, without the values: they may be long, or not for every eye."""
    problems = error.errors(include_url=False, include_context=False, include_input=False)
    return "; ".join(f"{'.'.join(map(str, each['loc'])) or 'value'}: {each['msg']}" for each in problems[:10])


class _NotAFormField(Exception):
    """Why a field cannot be in a form, and what to do instead."""


def _fields(model: type[BaseModel]) -> Iterator[tuple[str, FieldInfo]]:
    for name, info in model.model_fields.items():
        yield info.alias or name, info


def _property(name: str, info: FieldInfo) -> JsonObject:
    if _SENSITIVE.search(name):
        raise _NotAFormField(
            "its name says that it is a credential, which must not pass through the client "
            "(client/elicitation, Form Mode Security 1). Ask for it on your own page with ctx.secret, "
            "or rename the field if it is none."
        )
    schema = _schema(_without_none(info.annotation))
    constraints = list(info.metadata)
    extra = info.json_schema_extra if isinstance(info.json_schema_extra, dict) else {}
    if schema == {"type": "string"} and extra.get("format") in _FORMATS:
        schema["format"] = extra["format"]
    for constraint in constraints:
        schema |= _constraint(schema["type"], constraint)
    if info.title:
        schema["title"] = info.title
    if info.description:
        schema["description"] = info.description
    if not info.is_required() and info.default_factory is None and info.default is not None:
        schema["default"] = _plain(info.default)
    return schema


def _schema(annotation: Any) -> JsonObject:
    if get_origin(annotation) is Annotated:
        annotation = get_args(annotation)[0]
    if annotation in _SCALARS:
        return dict(_SCALARS[annotation])
    options = _options(annotation)
    if options is not None:
        return {"type": "string", **_choice(options, "oneOf")}
    if get_origin(annotation) in (list, set, frozenset, tuple):
        items = get_args(annotation)
        options = _options(items[0]) if items else None
        if options is None or (get_origin(annotation) is tuple and items[1:] != (...,)):
            raise _NotAFormField("a list in a form is a choice from options: use list[Literal[...]] or list[AnEnum].")
        choice = _choice(options, "anyOf")
        return {"type": "array", "items": {"type": "string", **choice} if "enum" in choice else choice}
    if isinstance(annotation, type):
        if issubclass(annotation, SecretStr | SecretBytes):
            raise _NotAFormField(
                "secrets must not pass through the client: ask for it on your own page with ctx.secret."
            )
        if issubclass(annotation, AnyUrl):
            return {"type": "string", "format": "uri"}
        if issubclass(annotation, BaseModel | dict):
            raise _NotAFormField("forms are flat: move its fields up, or ask a second question.")
    raise _NotAFormField(
        f"{getattr(annotation, '__name__', annotation)} has no place in a form: use str, int, float, bool, date, "
        "datetime, AnyUrl, Literal, an Enum of strings, or a list of one of the last two."
    )


def _options(annotation: Any) -> list[tuple[str, str | None]] | None:
    """(value, title) of each option of a Literal or an Enum, or None when it is neither."""
    if get_origin(annotation) is Annotated:
        annotation = get_args(annotation)[0]
    if get_origin(annotation) is Literal:
        values = get_args(annotation)
        titles: list[str | None] = [None] * len(values)
    elif isinstance(annotation, type) and issubclass(annotation, Enum):
        values = tuple(member.value for member in annotation)
        titles = [_title(member) for member in annotation]
    else:
        return None
    if not values or not all(isinstance(value, str) for value in values):
        raise _NotAFormField("the options of a form are strings: use a StrEnum, or a Literal of strings.")
    return list(zip(values, titles, strict=True))


def _title(member: Enum) -> str | None:
    label = getattr(member, "label", None)
    if isinstance(label, str):
        return label
    words = member.name.replace("_", " ").capitalize()
    return None if words.casefold() == str(member.value).replace("_", " ").casefold() else words


def _choice(options: list[tuple[str, str | None]], titled: str) -> JsonObject:
    if all(title is None for _, title in options):
        return {"enum": [value for value, _ in options]}
    return {titled: [{"const": value, "title": title or value.capitalize()} for value, title in options]}


def _constraint(kind: str, constraint: object) -> JsonObject:
    match constraint:
        case Ge(ge=bound) if kind in ("number", "integer"):
            return {"minimum": bound}
        case Le(le=bound) if kind in ("number", "integer"):
            return {"maximum": bound}
        case MinLen(min_length=length):
            return {"minItems" if kind == "array" else "minLength": length}
        case MaxLen(max_length=length):
            return {"maxItems" if kind == "array" else "maxLength": length}
        case _:
            return {}


def _plain(default: Any) -> Any:
    match default:
        case Enum():
            return default.value
        case date():
            return default.isoformat()
        case list() | tuple() | set() | frozenset():
            return [_plain(each) for each in default]
        case bool() | int() | float() | str():
            return default
        case _:
            return str(default)


def _is_optional(annotation: Any) -> bool:
    return get_origin(annotation) in (Union, types.UnionType) and type(None) in get_args(annotation)


def _without_none(annotation: Any) -> Any:
    if not _is_optional(annotation):
        return annotation
    kinds = [kind for kind in get_args(annotation) if kind is not type(None)]
    return kinds[0] if len(kinds) == 1 else annotation
