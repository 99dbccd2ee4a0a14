"""One field of a pydantic model as one property of a form, in the specification's subset of JSON Schema.

The subset is PrimitiveSchemaDefinition (client/elicitation, Requested Schema). A field that has no place in
it, or whose name says that it is a credential, raises NotAFormField with the remedy.
"""

import math
import re
import types
from collections.abc import Iterable, Iterator, Mapping
from datetime import date, datetime
from enum import Enum
from typing import Annotated, Any, Final, Literal, NamedTuple, NewType, TypeAlias, Union, get_args, get_origin

from annotated_types import Ge, GroupedMetadata, Le, MaxLen, MinLen
from pydantic import AliasChoices, AliasPath, BaseModel
from pydantic.fields import FieldInfo

from app.strict_json import JsonObject

Format: TypeAlias = Literal["email", "uri", "date", "date-time"]

_SENSITIVE: Final = re.compile(
    r"pass[-_ ]?(word|wd|phrase|code)|pwd|secret(?!ar)|credential|(api|access|private)[-_ ]?key|token$|bearer|"
    r"(credit|debit)[-_ ]?card|card[-_ ]?(number|no$)|^(cvv|cvc|pin|t?otp)\d?$",
    re.IGNORECASE,
)
_FORMATS: Final[tuple[Format, ...]] = get_args(Format)
# What browsers take for <input type=email> (HTML Living Standard, valid e-mail address).
_LABEL: Final = "[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?"
_EMAIL: Final = re.compile(rf"[a-zA-Z0-9.!#$%&'*+/=?^_`{{|}}~-]{{1,64}}@{_LABEL}(?:\.{_LABEL})*")
_DATE: Final = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_DATE_TIME: Final = re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d.*", re.ASCII)

_SCALARS: Final[Mapping[Any, JsonObject]] = {
    bool: {"type": "boolean"},
    int: {"type": "integer"},
    float: {"type": "number"},
    str: {"type": "string"},
    date: {"type": "string", "format": "date"},
    datetime: {"type": "string", "format": "date-time"},
}
_PYTHON_TYPES: Final[Mapping[str, type | tuple[type, ...]]] = {
    "boolean": bool,
    "integer": int,
    "number": (int, float),
    "string": str,
    "array": list,
}


class NotAFormField(Exception):
    """Why a field cannot be in a form, and what to do instead."""


class FormField(NamedTuple):
    """One property. `nullable` fields have None among their values.

    `unchecked_format` is a format that the schema states and pydantic does not check: see `has_format`.
    """

    name: str
    schema: JsonObject
    nullable: bool
    unchecked_format: Format | None

    @classmethod
    def read(cls, attribute: str, info: FieldInfo) -> "FormField":
        """Raises NotAFormField."""
        annotated = _Annotated.of(info.annotation, (info,))
        name = _name(attribute, info)
        schema = _property(attribute, name, info, annotated)
        return cls(name, schema, annotated.nullable, schema.get("format") if annotated.bare is str else None)


def has_format(text: str, expected: Format) -> bool:
    """Whether a text has a format of the subset, by the same rules as a field of the matching type."""
    try:
        match expected:
            case "email":
                return len(text) <= 254 and _EMAIL.fullmatch(text) is not None
            case "uri":
                from pydantic import AnyUrl

                AnyUrl(text)
                return True
            case "date":
                return _DATE.fullmatch(text) is not None and bool(date.fromisoformat(text))
            case "date-time":
                return _DATE_TIME.fullmatch(text) is not None and bool(datetime.fromisoformat(text))
    except ValueError:
        return False


class _Annotated(NamedTuple):
    """An annotation taken apart: the bare type, whether None is one of its values, and what was said about it."""

    bare: Any
    nullable: bool
    metadata: tuple[object, ...]

    @classmethod
    def of(cls, annotation: Any, metadata: tuple[object, ...] = ()) -> "_Annotated":
        nullable = False
        while True:
            if get_origin(annotation) is Annotated:
                annotation, *inner = get_args(annotation)
                metadata = (*metadata, *inner)
            elif get_origin(annotation) in (Union, types.UnionType) and type(None) in get_args(annotation):
                nullable = True
                kinds = tuple(kind for kind in get_args(annotation) if kind is not type(None))
                annotation = kinds[0] if len(kinds) == 1 else Union[kinds]  # noqa: UP007
            elif isinstance(annotation, NewType):
                annotation = annotation.__supertype__
            elif not isinstance(annotation, type) and hasattr(annotation, "__value__"):  # `type X = ...`
                annotation = annotation.__value__
            else:
                return cls(annotation, nullable, metadata)

    @property
    def constraints(self) -> Iterator[object]:
        return _flat(self.metadata)

    def said(self, what: str) -> Any:
        """The outermost title, description or other member that a Field gave."""
        fields = (each for each in self.metadata if isinstance(each, FieldInfo))
        return next((value for each in fields if (value := getattr(each, what))), None)


def _flat(metadata: Iterable[object]) -> Iterator[object]:
    for each in metadata:
        if isinstance(each, FieldInfo):
            yield from _flat(each.metadata)
        elif isinstance(each, GroupedMetadata):  # conint, constr, Len, Interval
            yield from _flat(each)
        else:
            yield each


def _name(attribute: str, info: FieldInfo) -> str:
    """The name under which the model reads the field from JSON."""
    alias = info.validation_alias or info.alias
    choices = alias.choices if isinstance(alias, AliasChoices) else [alias or attribute]
    flat = next((each for each in choices if isinstance(each, str)), None)
    if flat is None or isinstance(alias, AliasPath):
        raise NotAFormField("its alias is a path into something nested: give it an alias that is a name.")
    return flat


def _property(attribute: str, name: str, info: FieldInfo, annotated: _Annotated) -> JsonObject:
    schema, options = _schema(annotated.bare)
    title = annotated.said("title")
    # A tick, a choice and a day cannot hold a credential: `reset_password: bool` is an honest question.
    typed_in = schema["type"] != "boolean" and not options and not schema.get("format", "").startswith("date")
    if typed_in and any(_SENSITIVE.search(each) for each in (attribute, name, title or "")):
        raise NotAFormField(
            "its name says that it is a credential, which must not pass through the client "
            "(client/elicitation, Form Mode Security 1). Ask for it on your own page with ctx.secret, "
            "or rename the field if it is none."
        )
    extra = annotated.said("json_schema_extra")
    if annotated.bare is str and isinstance(extra, dict) and extra.get("format") in _FORMATS:
        schema["format"] = extra["format"]
    for constraint in annotated.constraints:
        schema |= _constraint("choice" if options and schema["type"] == "string" else schema["type"], constraint)
    if title:
        schema["title"] = title
    if description := annotated.said("description"):
        schema["description"] = description
    if not info.is_required() and info.default_factory is None and info.default is not None:
        schema["default"] = _default(info.default, schema, options)
    return schema


def _schema(annotation: Any) -> tuple[JsonObject, list[str]]:
    """The bare schema of a type, and the values of its options, if it is a choice."""
    if annotation in _SCALARS:
        return dict(_SCALARS[annotation]), []
    options = _options(annotation)
    if options is not None:
        return {"type": "string", **_choice(options, "oneOf")}, [value for value, _ in options]
    collection = get_origin(annotation) or annotation
    if collection in (list, set, frozenset, tuple):
        items = get_args(annotation)
        options = _options(_Annotated.of(items[0]).bare) if items else None
        if options is None or (collection is tuple and items[1:] != (...,)):
            raise NotAFormField("a list in a form is a choice from options: use list[Literal[...]] or list[AnEnum].")
        choice = _choice(options, "anyOf")
        titled = {"type": "string", **choice} if "enum" in choice else choice
        return {"type": "array", "items": titled}, [value for value, _ in options]
    return _pydantic_type(collection), []


def _pydantic_type(annotation: Any) -> JsonObject:
    # Imported by a form that has one: they cost as much as the rest of this module.
    from pydantic import (
        AnyUrl,
        AwareDatetime,
        EmailStr,
        FutureDate,
        FutureDatetime,
        NaiveDatetime,
        PastDate,
        PastDatetime,
        SecretBytes,
        SecretStr,
    )

    if annotation is EmailStr:
        return {"type": "string", "format": "email"}
    if annotation in (FutureDate, PastDate):
        return dict(_SCALARS[date])
    if annotation in (AwareDatetime, NaiveDatetime, FutureDatetime, PastDatetime):
        return dict(_SCALARS[datetime])
    if isinstance(annotation, type):
        if issubclass(annotation, SecretStr | SecretBytes):
            raise NotAFormField(
                "secrets must not pass through the client: ask for it on your own page with ctx.secret."
            )
        if issubclass(annotation, AnyUrl):
            return {"type": "string", "format": "uri"}
        if issubclass(annotation, BaseModel | dict):
            raise NotAFormField("forms are flat: move its fields up, or ask a second question.")
    raise NotAFormField(
        f"{getattr(annotation, '__name__', annotation)} has no place in a form: use str, int, float, bool, date, "
        "datetime, AnyUrl, Literal, an Enum of strings, or a list of one of the last two."
    )


def _options(annotation: Any) -> list[tuple[str, str | None]] | None:
    """(value, title) of each option of a Literal or an Enum, or None when it is neither."""
    if get_origin(annotation) is Literal:
        values = get_args(annotation)
        titles: list[str | None] = [None] * len(values)
    elif isinstance(annotation, type) and issubclass(annotation, Enum):
        values = tuple(member.value for member in annotation)
        titles = [_title(member) for member in annotation]
    else:
        return None
    if not values or not all(isinstance(value, str) for value in values):
        raise NotAFormField("the options of a form are strings: use a StrEnum, or a Literal of strings.")
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
    """What the subset can say of a constraint; the rest is only enforced on the answer."""
    match constraint:
        case Ge(ge=int() | float() as bound) if kind in ("number", "integer") and math.isfinite(bound):
            return {"minimum": bound}
        case Le(le=int() | float() as bound) if kind in ("number", "integer") and math.isfinite(bound):
            return {"maximum": bound}
        case MinLen(min_length=length) if kind in ("string", "array"):
            return {"minItems" if kind == "array" else "minLength": length}
        case MaxLen(max_length=length) if kind in ("string", "array"):
            return {"maxItems" if kind == "array" else "maxLength": length}
        case _:
            return {}


def _default(default: Any, schema: JsonObject, options: list[str]) -> Any:
    kind, plain = schema["type"], _plain(default)
    if schema.get("format") == "uri" and not isinstance(default, str):
        from pydantic import AnyUrl

        plain = str(default) if isinstance(default, AnyUrl) else plain
    if isinstance(default, set | frozenset):
        # A set has another order in every process, and the question another digest.
        plain = sorted(plain, key=lambda each: options.index(each) if each in options else -1)
    fits = isinstance(plain, _PYTHON_TYPES[kind]) and isinstance(plain, bool) == (kind == "boolean")
    chosen = plain if isinstance(plain, list) else [plain]
    if not fits or (options and not set(chosen) <= set(options)):
        raise NotAFormField(f"its default {default!r} is no value of the field: give it one that is, or none.")
    if isinstance(plain, float) and not math.isfinite(plain):
        raise NotAFormField("its default cannot be written in JSON: use None for no limit.")
    return plain


def _plain(default: Any) -> Any:
    match default:
        case Enum():
            return default.value
        case date():
            return default.isoformat()
        case list() | tuple() | set() | frozenset():
            return [_plain(each) for each in default]
        case _:
            return default
