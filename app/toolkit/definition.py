"""From a function to a tool: its signature as schemas, one run of it as an outcome."""

import inspect
import json
import logging
import re
import types
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any, Final, NoReturn, NotRequired, Union, get_args, get_origin, get_type_hints, overload

from pydantic import PydanticUserError, TypeAdapter, ValidationError
from typing_extensions import TypedDict

from app.errors import ConfigurationError
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
) -> Tool | Callable[[Callable[..., Any]], Tool]:
    """Make a tool of a function, `def` or `async def`.

    The name, the description (docstring), the arguments and the output schema come from the function. A
    parameter annotated `Context` gets the context and is not an argument. `scopes` are all needed for a
    call. `read_only`, `destructive`, `idempotent` and `open_world` are hints for the client
    (ToolAnnotations). `stateless=True` lets answers count without the sealed state that asked for them:
    only for tools that change nothing.

    Raises ConfigurationError, when the module is imported, for a signature or a form that cannot work.
    """

    def define(function: Callable[..., Any]) -> Tool:
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
        )
        return Tool(
            name=definition.name,
            definition=definition.listed,
            run=definition.run,
            scopes=tuple(scopes),
            stateless=stateless,
        )

    return define if function is None else define(function)


class _Definition:
    """A tool function with what its signature says. Schemas are built when first needed."""

    def __init__(
        self,
        function: Callable[..., Any],
        *,
        name: str,
        title: str | None,
        annotations: Mapping[str, bool | None],
    ) -> None:
        self.name = name
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
        if not problems:
            problems += form_problems(function)
        if problems:
            raise ConfigurationError(problems)

    def _read_signature(self) -> "list[str]":
        problems: list[str] = []
        try:
            hints = get_type_hints(self._function, include_extras=True)
        except NameError as error:
            return [f"An annotation of {self.name} does not resolve ({error}): import it in the tool's module."]
        for parameter in inspect.signature(self._function).parameters.values():
            annotation = hints.get(parameter.name)
            if annotation is Context:
                self._context = parameter.name
            elif parameter.kind in (
                parameter.VAR_POSITIONAL,
                parameter.VAR_KEYWORD,
                parameter.POSITIONAL_ONLY,
            ):
                problems.append(f"{self.name}: {parameter} cannot be an argument: name each one.")
            elif annotation is None:
                problems.append(f"{self.name}: annotate {parameter.name}, its schema comes from the annotation.")
            else:
                if parameter.default is not parameter.empty:
                    self._defaults[parameter.name] = parameter.default
                self._parameters[parameter.name] = annotation
        self._returns = _without_input_required(hints.get("return"))
        return problems

    @cached_property
    def _arguments(self) -> TypeAdapter[Any]:
        fields = {
            name: NotRequired[annotation] if name in self._defaults else annotation
            for name, annotation in self._parameters.items()
        }
        # A TypedDict takes any argument name; a model would forbid `copy`, `schema` and the like.
        return _adapter(TypedDict("Arguments", fields), self.name)  # type: ignore[operator]

    @cached_property
    def _output(self) -> TypeAdapter[Any] | None:
        return None if self._returns in (None, type(None), str, Any, NoReturn) else _adapter(self._returns, self.name)

    def listed(self) -> JsonObject:
        """The tool as tools/list shows it."""
        schema = self._arguments.json_schema()
        schema.pop("title", None)
        schema.pop("description", None)
        for name, member in schema.setdefault("properties", {}).items():
            member.pop("title", None)
            default = self._defaults.get(name)
            if default is not None:
                member["default"] = TypeAdapter(self._parameters[name]).dump_python(default, mode="json")
        listed: JsonObject = {"name": self.name, "description": self._description, "inputSchema": schema}
        if self._title:
            listed["title"] = self._title
        if self._output is not None:
            listed["outputSchema"] = self._output.json_schema(mode="serialization")
        if self._annotations:
            listed["annotations"] = self._annotations
        return listed

    def run(self, call: Call) -> Outcome:
        """Run one round."""
        try:
            arguments = self._arguments.validate_json(call.canonical_arguments, strict=True)
        except ValidationError as error:
            # A tool execution error: the model reads what is wrong and corrects it (server/tools).
            call.facts["outcome"] = "invalid_arguments"
            return Completed(messages.tool_error(f"Invalid arguments: {elicitation.describe(error)}"))
        context = Context(call)
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
        except JSONRPCError:
            raise
        except Exception as error:
            call.facts.update(outcome="crashed", reason=type(error).__name__)
            _log.exception("The tool %s raised", self.name, extra={"request_id": context.request_id})
            # The exception's text may hold anything: it stays in the log.
            return Completed(
                messages.tool_error(f"{self.name} failed. The server's log has the reason under {context.request_id}.")
            )

    def _completed(self, result: Any) -> Completed:
        if self._output is None:
            content = [] if result is None else [messages.text_content(str(result))]
            return Completed(messages.complete({"content": content}))
        structured = self._output.dump_python(self._output.validate_python(result), mode="json")
        text = json.dumps(structured, ensure_ascii=False)
        return Completed(messages.complete({"content": [messages.text_content(text)], "structuredContent": structured}))


def _explicit(result: InputRequired, call: Call) -> InputNeeded:
    for key, request in result.requests.items():
        if isinstance(request, Question):
            request = form_of(request.model).request(request.message)
        call.round.ask(key, request)
    return InputNeeded(state=result.state)


def _adapter(annotation: Any, name: str) -> TypeAdapter[Any]:
    try:
        return TypeAdapter(annotation)
    except PydanticUserError as error:
        raise ConfigurationError([f"{name}: no schema can be made of {annotation}: {error.message}"]) from error


def _without_input_required(annotation: Any) -> Any:
    if get_origin(annotation) in (Union, types.UnionType):
        kinds = [kind for kind in get_args(annotation) if kind is not InputRequired]
        return Union[tuple(kinds)] if kinds else None  # noqa: UP007
    return None if annotation is InputRequired else annotation
