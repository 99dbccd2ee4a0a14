"""The decorator `prompt`: from a function to a prompt."""

from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import Any, Final, Literal, get_args, get_origin, overload

from pydantic import ValidationError
from pydantic.fields import FieldInfo

from app.errors import ConfigurationError
from app.protocol import elicitation, messages
from app.protocol.content import ContentBlock, Icon, PromptMessage
from app.protocol.features import Call, Completed, Completer, CompletionContext, Outcome, Prompt
from app.protocol.jsonrpc import ErrorCode, JSONRPCError
from app.protocol.messages import Content
from app.strict_json import JsonObject
from app.toolkit.running import run
from app.toolkit.signature import Signature, icons_and_meta, read_scopes


@overload
def prompt(function: Callable[..., Any], /) -> Prompt: ...
@overload
def prompt(
    *,
    name: str | None = None,
    title: str | None = None,
    scopes: tuple[str, ...] | list[str] = (),
    icons: Sequence[Icon] = (),
    complete: Mapping[str, Completer] | None = None,
    meta: Mapping[str, Any] | None = None,
) -> Callable[[Callable[..., Any]], Prompt]: ...
def prompt(
    function: Callable[..., Any] | None = None,
    /,
    *,
    name: str | None = None,
    title: str | None = None,
    scopes: tuple[str, ...] | list[str] = (),
    icons: Sequence[Icon] = (),
    complete: Mapping[str, Completer] | None = None,
    meta: Mapping[str, Any] | None = None,
) -> Prompt | Callable[[Callable[..., Any]], Prompt]:
    """Make a prompt of a function, `def` or `async def`, that returns a string, a message, or a list of them.

    Arguments are strings on the wire: `str` parameters get them as they are, `int`, `bool`, `Literal` and enums are
    read from them. Choices complete themselves; `complete` has a function for other arguments, which gets what was
    typed and a CompletionContext. A prompt may ask like a tool: `ctx.ask`, `ctx.connect` and the rest.

    Raises ConfigurationError, when the module is imported, for a signature or a form that cannot work.
    """

    def define(function: Callable[..., Any]) -> Prompt:
        signature = Signature(function, kind="prompt", name=name)
        definition = _Definition(signature, title, icons, meta)
        return Prompt(
            name=signature.name,
            definition=definition.listed,
            run=definition.run,
            scopes=read_scopes(signature.name, scopes),
            completers=completers(signature, complete or {}),
        )

    return define if function is None else define(function)


class _Definition:
    def __init__(
        self, signature: Signature, title: str | None, icons: Sequence[Icon], meta: Mapping[str, Any] | None
    ) -> None:
        self._signature = signature
        self._title = title
        self._icons = icons
        self._meta = meta
        self._arguments = signature.arguments()

    def listed(self) -> JsonObject:
        """The prompt as prompts/list shows it."""
        listed: JsonObject = {"name": self._signature.name, "description": self._signature.description}
        if self._title:
            listed["title"] = self._title
        arguments = [_argument(name, self._signature) for name in self._signature.parameters]
        if arguments:
            listed["arguments"] = arguments
        return listed | icons_and_meta(self._icons, self._meta)

    def run(self, call: Call) -> Outcome:
        """Run one round. Raises JSONRPCError (-32602) for arguments that do not fit."""
        if not all(isinstance(value, str) for value in call.arguments.values()):
            raise JSONRPCError(ErrorCode.INVALID_PARAMS, "The arguments of a prompt must be strings")
        try:
            arguments = self._arguments.validate_strings(call.arguments)
        except ValidationError as error:
            raise JSONRPCError(ErrorCode.INVALID_PARAMS, f"Invalid arguments: {elicitation.describe(error)}") from None
        return run(self._signature, call, arguments, completed=self._completed, crashed=crashed)

    def _completed(self, result: Any) -> Outcome:
        given = list(result) if isinstance(result, list | tuple) else [result]
        result = {
            "description": self._signature.description,
            "messages": [_message(each).to_json() for each in given],
        }
        return Completed(messages.complete(result))


def _message(given: PromptMessage | ContentBlock | str) -> PromptMessage:
    if isinstance(given, PromptMessage):
        return given
    if isinstance(given, str | Content):
        return PromptMessage("user", given)
    raise TypeError(f"A prompt returns strings, content blocks and PromptMessages, and not {type(given).__name__}")


def _argument(name: str, signature: Signature) -> JsonObject:
    argument: JsonObject = {"name": name, "required": name not in signature.defaults}
    for each in getattr(signature.parameters[name], "__metadata__", ()):
        if isinstance(each, FieldInfo):
            argument |= {"description": each.description} if each.description else {}
            argument |= {"title": each.title} if each.title else {}
    return argument


def crashed(text: str) -> Outcome:
    """A prompt or resource that raised: neither has a result that could say so."""
    raise JSONRPCError(ErrorCode.INTERNAL_ERROR, text)


def completers(signature: Signature, given: Mapping[str, Completer]) -> dict[str, Completer]:
    """The completers of a function's arguments. Raises ConfigurationError for one of no argument."""
    unknown = [name for name in given if name not in signature.parameters]
    if unknown:
        raise ConfigurationError(
            [f"{signature.name} completes {', '.join(unknown)}, and has no such parameter: rename one of them."]
        )
    choices = {name: _choices(annotation) for name, annotation in signature.parameters.items()}
    return {name: _Starting(values) for name, values in choices.items() if values} | dict(given)


class _Starting:
    """Completes to the choices that start with what was typed, whatever the case."""

    def __init__(self, values: Sequence[str]) -> None:
        self._values: Final = values

    def __call__(self, value: str, context: CompletionContext) -> list[str]:
        return [each for each in self._values if each.casefold().startswith(value.casefold())]


def _choices(annotation: Any) -> list[str]:
    if hasattr(annotation, "__metadata__"):
        annotation = get_args(annotation)[0]
    if get_origin(annotation) is Literal:
        return [str(value) for value in get_args(annotation)]
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return [str(each.value) for each in annotation]
    return []
