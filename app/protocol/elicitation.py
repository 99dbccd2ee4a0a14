"""Form-mode elicitation: a pydantic model as a form, and what came back as one of five answers.

A form is flat and says only what the specification's subset can say (client/elicitation, Requested
Schema): strings with four formats, numbers, integers, booleans, single and multiple choice, defaults.
What the subset cannot say (a pattern, `gt`, a validator) is still enforced on the answer. What must not
be asked through a form at all is refused when the form is built, with the remedy.
"""

import re
from dataclasses import dataclass
from typing import Any, Final, Generic, Literal, NamedTuple, TypeAlias, TypeVar

from pydantic import BaseModel, RootModel, ValidationError

from app import strict_json
from app.errors import ConfigurationError
from app.protocol import request_state
from app.protocol.form_field import Format, FormField, NotAFormField, has_format
from app.strict_json import JsonObject

M = TypeVar("M")
Model = TypeVar("Model", bound=BaseModel)

_HEAD: Final = b'{"method":"elicitation/create","params":{"message":'
_MIDDLE: Final = b',"mode":"form","requestedSchema":'

KEY: Final = re.compile(r"[A-Za-z0-9_-]{1,64}\Z")
"""Question keys survive gateways that rewrite unusual ones, and name no module or function."""


@dataclass(frozen=True, slots=True)
class Accepted(Generic[M]):
    """The user submitted the form. `value` is the validated model."""

    value: M


class _Bare:
    """An answer that is its kind and nothing more: two of a kind are equal."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self)

    def __hash__(self) -> int:
        return hash(type(self))

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class Declined(_Bare):
    """The user said no."""

    __slots__ = ()


class Cancelled(_Bare):
    """The user dismissed the question without an answer."""

    __slots__ = ()


class Missing(_Bare):
    """The question was not asked in a verified earlier round, or not answered."""

    __slots__ = ()


class Invalid(NamedTuple):
    """What came back does not fit the form. `reason` names the fields, and none of the values."""

    reason: str


Answer: TypeAlias = Accepted[M] | Declined | Cancelled
AnyAnswer: TypeAlias = Missing | Accepted[M] | Declined | Cancelled | Invalid


class Form(Generic[Model]):
    """A pydantic model as the `requestedSchema` of a form, and the reader of its answers.

    Raises ConfigurationError, naming each field and its remedy, for a model that cannot or must not
    be a form.
    """

    __slots__ = ("_canonical_schema", "_formatted", "_model", "_nullable", "_optional", "schema")

    def __init__(self, model: type[Model]) -> None:
        self._model = model
        self._canonical_schema: bytes | None = None
        self._formatted: dict[str, Format] = {}
        properties: JsonObject = {}
        required: list[str] = []
        nullable: list[str] = []
        problems: list[str] = []
        if issubclass(model, RootModel):
            problems.append(f"{model.__name__} is a RootModel, and a form has named fields: make it a BaseModel.")
        for attribute, info in model.model_fields.items() if not problems else ():
            try:
                field = FormField.read(attribute, info)
            except NotAFormField as error:
                problems.append(f"{model.__name__}.{attribute} cannot be asked in a form: {error}")
                continue
            properties[field.name] = field.schema
            if field.unchecked_format:
                self._formatted[field.name] = field.unchecked_format
            if info.is_required():
                (nullable if field.nullable else required).append(field.name)
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

    def digest(self, message: str) -> str:
        """`request_state.digest` of that request. The schema's part of it is written once."""
        if self._canonical_schema is None:
            self._canonical_schema = strict_json.canonical(self.schema)
        text = strict_json.canonical(message)
        return request_state.digest_of(_HEAD + text + _MIDDLE + self._canonical_schema + b"}}")

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
        for name, expected in self._formatted.items():
            if isinstance(known.get(name), str) and not has_format(known[name], expected):
                return Invalid(f"{name}: Input should have the format {expected}")
        try:
            return Accepted(self._model.model_validate_json(strict_json.canonical(known), strict=True, by_alias=True))
        except ValidationError as error:
            return Invalid(describe(error))


_forms: dict[type[BaseModel], Form[Any]] = {}


def form_of(model: type[Model]) -> Form[Model]:
    """The form of a model, built once. Raises ConfigurationError."""
    form = _forms.get(model)
    if form is None:
        form = _forms[model] = Form(model)
    return form


Action: TypeAlias = Literal["accept", "decline", "cancel"]


def read_action(response: Any) -> Action | None:
    """The action of an ElicitResult, or None when the value is not one."""
    action = response.get("action") if isinstance(response, dict) else None
    return action if action in ("accept", "decline", "cancel") else None


def describe(error: ValidationError) -> str:
    """What is wrong with which field, without the values: they may be long, or not for every eye."""
    problems = error.errors(include_url=False, include_context=False, include_input=False)
    return "; ".join(f"{'.'.join(map(str, each['loc'])) or 'value'}: {each['msg']}" for each in problems[:10])
