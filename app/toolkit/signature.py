"""What the signature of a function says: its parameters, their types and defaults, and where its Context goes."""

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NotRequired, get_args, get_type_hints

from pydantic import PydanticUserError, TypeAdapter
from pydantic.fields import FieldInfo
from typing_extensions import TypedDict

from app.errors import ConfigurationError
from app.protocol import messages
from app.strict_json import JsonObject
from app.toolkit.context import Context
from app.toolkit.form_check import form_problems

if TYPE_CHECKING:
    from app.protocol.content import Icon

NAME: Final = re.compile(r"[A-Za-z0-9_.-]{1,128}\Z")


class Signature:
    """The signature of the function under a decorator. Raises ConfigurationError with everything that cannot work."""

    def __init__(self, function: Callable[..., Any], *, kind: str, name: str | None) -> None:
        if not inspect.isroutine(function):
            raise ConfigurationError(
                [f"@{kind} was put on {function!r}: put it on a def, and a name in @{kind}(name=...)."]
            )
        self.function = function
        self.name = name = name or function.__name__
        self.description = inspect.getdoc(function) or ""
        self.context: str | None = None
        self.parameters: dict[str, Any] = {}
        self.defaults: dict[str, Any] = {}
        self.returns: Any = None
        problems = self._read(kind)
        if not NAME.match(name):
            problems.append(f"The {kind} name {name!r} must be 1 to 128 of A-Z a-z 0-9 _ . -: rename it.")
        if not self.description:
            problems.append(f"{name} has no docstring: write what it does, the model chooses {kind}s by it.")
        if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
            problems.append(f"{name} yields, and a {kind} answers once: return its result.")
        if not problems:
            problems += form_problems(function)
        if problems:
            raise ConfigurationError(problems)

    def _read(self, kind: str) -> list[str]:
        problems: list[str] = []
        try:
            hints = get_type_hints(self.function, include_extras=True)
        except (NameError, AttributeError, TypeError, SyntaxError) as error:
            return [f"An annotation of {self.name} does not resolve ({error}): import it in the {kind}'s module."]
        for parameter in inspect.signature(self.function).parameters.values():
            annotation = hints.get(parameter.name)
            if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.POSITIONAL_ONLY):
                problems.append(f"{self.name}: arguments come by name, so make {parameter.name} a plain parameter.")
            elif Context in (annotation, *get_args(annotation)):
                self.context = parameter.name
            elif annotation is None:
                problems.append(
                    f"{self.name}: write {parameter.name}: Context."
                    if parameter.name in ("ctx", "context")
                    else f"{self.name}: annotate {parameter.name}, its schema comes from the annotation."
                )
            elif isinstance(parameter.default, FieldInfo):
                problems.append(
                    f"{self.name}: {parameter.name} has a Field as its default: write it into the annotation, "
                    f"{parameter.name}: Annotated[..., Field(...)] = default."
                )
            else:
                if parameter.default is not parameter.empty:
                    self.defaults[parameter.name] = parameter.default
                self.parameters[parameter.name] = annotation
        self.returns = hints.get("return")
        return problems

    def arguments(self) -> TypeAdapter[dict[str, Any]]:
        """Validates the arguments, all at once."""
        fields = {
            name: NotRequired[annotation] if name in self.defaults else annotation
            for name, annotation in self.parameters.items()
        }
        # A TypedDict takes any argument name; a model would forbid `copy`, `schema` and the like.
        return adapter(TypedDict("Arguments", fields), f"the arguments of {self.name}")  # type: ignore[operator]


def adapter(annotation: Any, what: str) -> TypeAdapter[Any]:
    """A type as a validator. Raises ConfigurationError for one that has no JSON Schema."""
    try:
        return TypeAdapter(annotation)
    except PydanticUserError as error:
        raise ConfigurationError([no_schema(what, error)]) from error


def no_schema(what: str, error: PydanticUserError) -> str:
    reason = error.message.partition("\n")[0].partition(". Set `arbitrary_types_allowed")[0]
    return f"There is no JSON Schema for {what} ({reason}): use types that JSON can carry, or a pydantic model."


def icons_and_meta(icons: "Sequence[Icon]", meta: Mapping[str, Any] | None) -> JsonObject:
    """The members of a list entry that tools, prompts and resources have alike, where they are given."""
    members: JsonObject = {"icons": [icon.to_json() for icon in icons]} if icons else {}
    return members if meta is None else {**members, messages.META: dict(meta)}


def read_scopes(name: str, scopes: Sequence[str]) -> tuple[str, ...]:
    """The scopes of a decorator. Raises ConfigurationError for a single string."""
    if isinstance(scopes, str):
        # tuple("a:b") would be three scopes that no access token has.
        raise ConfigurationError([f"{name}: scopes is a list, so write scopes=[{scopes!r}]."])
    return tuple(scopes)
