"""From a function to a tool: its signature as schemas, one run of it as an outcome."""

import inspect
import json
import logging
import re
import types
from collections.abc import Callable, Mapping, Sequence
from typing import (
    Any,
    Final,
    Literal,
    Never,
    NoReturn,
    NotRequired,
    Union,
    get_args,
    get_origin,
    get_type_hints,
    overload,
)

from pydantic import PydanticUserError, TypeAdapter, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import to_json
from typing_extensions import TypedDict

from app.errors import ConfigurationError, Unavailable
from app.protocol import elicitation, messages
from app.protocol.dispatch import Call, Completed, InputNeeded, Outcome, Tool
from app.protocol.elicitation import form_of
from app.protocol.jsonrpc import JSONRPCError
from app.strict_json import JsonObject
from app.toolkit.context import Context, Ended, InputRequired, Question
from app.toolkit.form_check import form_problems

_NAME: Final = re.compile(r"[A-Za-z0-9_.-]{1,128}\Z")
_log = logging.getLogger("roundtrip.tools")


@overload
def tool(function: Callable[..., Any], /) -> Tool: ...
@overload
def tool(
    *,
    name: str | None = None,
    title: str | None = None,
    scopes: tuple[str, ...] | list[str] = (),
    read_only: bool | None = None,
    destructive: bool | None = None,
    idempotent: bool | None = None,
    open_world: bool | None = None,
    stateless: bool = False,
    link_as_text: bool = False,
) -> Callable[[Callable[..., Any]], Tool]: ...
def tool(
    function: Callable[..., Any] | None = None,
    /,
    *,
    name: str | None = None,
    title: str | None = None,
    scopes: tuple[str, ...] | list[str] = (),
    read_only: bool | None = None,
    destructive: bool | None = None,
    idempotent: bool | None = None,
    open_world: bool | None = None,
    stateless: bool = False,
    link_as_text: bool = False,
) -> Tool | Callable[[Callable[..., Any]], Tool]:
    """Make a tool of a function, `def` or `async def`.

    The name, the description (docstring), the arguments and the output schema come from the function. A
    parameter annotated `Context` gets the context and is not an argument. `scopes` are all needed for a
    call. `read_only`, `destructive`, `idempotent` and `open_world` are hints for the client
    (ToolAnnotations). `stateless=True` lets answers count without the sealed state that asked for them:
    only for tools that change nothing. `link_as_text=True` gives a client without URL mode the link as text.

    Raises ConfigurationError, when the module is imported, for a signature or a form that cannot work.
    """

    def define(function: Callable[..., Any]) -> Tool:
        if not inspect.isroutine(function):
            raise ConfigurationError(
                [f"@tool was put on {function!r}: put it on a def, and a name in @tool(name=...)."]
            )
        definition = _Definition(
            function,
            name=name or function.__name__,
            title=title,
            annotations={
                "readOnlyHint": read_only,
                "destructiveHint": destructive,
                "idempotentHint": idempotent,
                "openWorldHint": open_world,
            },
            link_as_text=link_as_text,
        )
        return Tool(
            name=definition.name,
            definition=definition.listed,
            run=definition.run,
            scopes=_scopes(definition.name, scopes),
            stateless=stateless,
        )

    return define if function is None else define(function)


class _Definition:
    """A tool function with what its signature says. What `tools/list` shows is built when first needed."""

    def __init__(
        self,
        function: Callable[..., Any],
        *,
        name: str,
        title: str | None,
        annotations: Mapping[str, bool | None],
        link_as_text: bool,
    ) -> None:
        self.name = name
        self._link_as_text = link_as_text
        self._function = function
        self._title = title
        self._annotations = {hint: value for hint, value in annotations.items() if value is not None}
        self._description = inspect.getdoc(function) or ""
        self._context: str | None = None
        self._parameters: dict[str, Any] = {}
        self._defaults: dict[str, Any] = {}
        problems = list(self._read_signature())
        if not _NAME.match(name):
            problems.append(f"The tool name {name!r} must be 1 to 128 of A-Z a-z 0-9 _ . -: rename it.")
        if not self._description:
            problems.append(f"{name} has no docstring: write what it does, the model chooses tools by it.")
        if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
            problems.append(f"{name} yields, and a tool answers once: return its result.")
        if not problems:
            problems += form_problems(function)
        if problems:
            raise ConfigurationError(problems)
        fields = {
            name: NotRequired[annotation] if name in self._defaults else annotation
            for name, annotation in self._parameters.items()
        }
        # A TypedDict takes any argument name; a model would forbid `copy`, `schema` and the like.
        self._arguments = _adapter(TypedDict("Arguments", fields), f"the arguments of {name}")  # type: ignore[operator]
        self._output = None if _is_text(self._returns) else _adapter(self._returns, f"the result of {name}")

    def _read_signature(self) -> list[str]:
        problems: list[str] = []
        try:
            hints = get_type_hints(self._function, include_extras=True)
        except (NameError, AttributeError, TypeError, SyntaxError) as error:
            return [f"An annotation of {self.name} does not resolve ({error}): import it in the tool's module."]
        for parameter in inspect.signature(self._function).parameters.values():
            annotation = hints.get(parameter.name)
            if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.POSITIONAL_ONLY):
                problems.append(f"{self.name}: arguments come by name, so make {parameter.name} a plain parameter.")
            elif _is_context(annotation):
                self._context = parameter.name
            elif annotation is None:
                problems.append(f"{self.name}: annotate {parameter.name}, its schema comes from the annotation.")
            elif isinstance(parameter.default, FieldInfo):
                problems.append(
                    f"{self.name}: {parameter.name} has a Field as its default: write it into the annotation, "
                    f"{parameter.name}: Annotated[..., Field(...)] = default."
                )
            else:
                if parameter.default is not parameter.empty:
                    self._defaults[parameter.name] = parameter.default
                self._parameters[parameter.name] = annotation
        self._returns = _without_input_required(hints.get("return"))
        return problems

    def listed(self) -> JsonObject:
        """The tool as tools/list shows it."""
        schema = self._schema(self._arguments, "validation")
        schema.pop("title", None)
        schema.pop("description", None)
        for name, member in schema.setdefault("properties", {}).items():
            if member.get("title") == name.title().replace("_", " ").strip():  # pydantic's own: no news to a model
                del member["title"]
            if name in self._defaults:
                adapter = TypeAdapter(self._parameters[name])
                default = json.loads(adapter.dump_json(self._defaults[name], by_alias=True))
                if default is not None:  # what None and an infinite number become
                    member["default"] = default
        listed: JsonObject = {"name": self.name, "description": self._description, "inputSchema": schema}
        if self._title:
            listed["title"] = self._title
        if self._output is not None:
            listed["outputSchema"] = self._schema(self._output, "serialization")
        if self._annotations:
            listed["annotations"] = self._annotations
        return listed

    def _schema(self, adapter: TypeAdapter[Any], mode: Literal["validation", "serialization"]) -> JsonObject:
        try:
            return adapter.json_schema(mode=mode)
        except PydanticUserError as error:
            raise ConfigurationError([_no_schema(f"a type of {self.name}", error)]) from error

    def run(self, call: Call) -> Outcome:
        """Run one round."""
        try:
            arguments = self._arguments.validate_json(call.canonical_arguments, strict=True)
        except ValidationError as error:
            # A tool execution error: the model reads what is wrong and corrects it (server/tools).
            call.facts["outcome"] = "invalid_arguments"
            return Completed(messages.tool_error(f"Invalid arguments: {elicitation.describe(error)}"))
        context = Context(call, link_as_text=self._link_as_text)
        if self._context is not None:
            arguments[self._context] = context
        try:
            result = self._function(**arguments)
            if inspect.iscoroutine(result):
                from app.toolkit.async_tools import run_async

                result = run_async(result)
            return _explicit(result, call) if isinstance(result, InputRequired) else self._completed(result)
        except Ended as ended:
            call.facts["outcome"] = ended.fact
            return ended.outcome
        except (JSONRPCError, Unavailable):
            raise
        except BaseExceptionGroup as group:
            # What a TaskGroup makes of a task that asked.
            asked, failed = group.split(Ended)
            if asked is None or failed is not None:
                return self._crashed(group, call, context)
            first = _first(asked)
            call.facts["outcome"] = first.fact
            return first.outcome
        except (Exception, SystemExit) as error:
            return self._crashed(error, call, context)

    def _crashed(self, error: BaseException, call: Call, context: Context) -> Completed:
        call.facts.update(outcome="crashed", reason=type(error).__name__)
        _log.error("The tool %s raised", self.name, exc_info=error, extra={"request_id": context.request_id})
        under = f" under {context.request_id}" if context.request_id else ""
        # The exception's text may hold anything: it stays in the log.
        return Completed(messages.tool_error(f"{self.name} failed. The server's log has the reason{under}."))

    def _completed(self, result: Any) -> Completed:
        if self._output is None:
            if result is None:
                return Completed(messages.complete({"content": []}))
            text = result if isinstance(result, str) else to_json(result, by_alias=True).decode()
            return Completed(messages.complete({"content": [messages.text_content(text)]}))
        value = self._output.validate_python(result)
        structured = self._output.dump_python(value, mode="json", by_alias=True)
        text = json.dumps(structured, ensure_ascii=False, allow_nan=False)
        return Completed(messages.complete({"content": [messages.text_content(text)], "structuredContent": structured}))


def _explicit(result: InputRequired, call: Call) -> InputNeeded:
    for key, request in result.requests.items():
        if isinstance(request, Question):
            request = form_of(request.model).request(request.message)
        call.round.ask(key, request)
    return InputNeeded(state=result.state)


def _scopes(name: str, scopes: Sequence[str]) -> tuple[str, ...]:
    if isinstance(scopes, str):
        # tuple("a:b") would be three scopes that no access token has.
        raise ConfigurationError([f"{name}: a tool has a list of scopes, so write scopes=[{scopes!r}]."])
    return tuple(scopes)


def _adapter(annotation: Any, what: str) -> TypeAdapter[Any]:
    try:
        return TypeAdapter(annotation)
    except PydanticUserError as error:
        raise ConfigurationError([_no_schema(what, error)]) from error


def _no_schema(what: str, error: PydanticUserError) -> str:
    reason = error.message.partition("\n")[0].partition(". Set `arbitrary_types_allowed")[0]
    return f"There is no JSON Schema for {what} ({reason}): use types that JSON can carry, or a pydantic model."


def _first(group: BaseExceptionGroup[Ended]) -> Ended:
    leaf: BaseExceptionGroup[Ended] | Ended = group
    while isinstance(leaf, BaseExceptionGroup):
        leaf = leaf.exceptions[0]
    return leaf


def _is_context(annotation: Any) -> bool:
    return Context in (annotation, *get_args(annotation))


def _is_text(annotation: Any) -> bool:
    """Whether a result of this type is text content alone, without an output schema."""
    if get_origin(annotation) in (Union, types.UnionType):
        return all(map(_is_text, get_args(annotation)))
    return annotation in (None, type(None), str, Any, NoReturn, Never)


def _without_input_required(annotation: Any) -> Any:
    if get_origin(annotation) in (Union, types.UnionType):
        kinds = [kind for kind in get_args(annotation) if kind is not InputRequired]
        return Union[tuple(kinds)] if kinds else None  # noqa: UP007
    return None if annotation is InputRequired else annotation
