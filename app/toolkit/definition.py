"""The decorator `tool`: from a function to a tool, its signature as schemas, its result as content."""

import json
import sys
import types
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Never, NoReturn, Union, get_args, get_origin, overload

from pydantic import PydanticUserError, TypeAdapter, ValidationError
from pydantic_core import to_json

from app.errors import ConfigurationError
from app.protocol import elicitation, messages
from app.protocol.features import Call, Completed, Outcome, Tool
from app.protocol.messages import Content, WholeResult
from app.strict_json import JsonObject
from app.toolkit.context import InputRequired
from app.toolkit.running import run
from app.toolkit.signature import Signature, adapter, icons_and_meta, no_schema, read_scopes

if TYPE_CHECKING:  # imported by the first tool that is guarded: the others need none of it
    from app.protocol.content import Icon
    from app.toolkit.approval import Approval, ApprovalLifetime


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
    single_round: bool = False,
    text_fallback: bool = False,
    once: bool = False,
    approval: "ApprovalLifetime | None" = None,
    approval_for: Sequence[str] = (),
    icons: "Sequence[Icon]" = (),
    input_schema: JsonObject | None = None,
    meta: Mapping[str, Any] | None = None,
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
    single_round: bool = False,
    text_fallback: bool = False,
    once: bool = False,
    approval: "ApprovalLifetime | None" = None,
    approval_for: Sequence[str] = (),
    icons: "Sequence[Icon]" = (),
    input_schema: JsonObject | None = None,
    meta: Mapping[str, Any] | None = None,
) -> Tool | Callable[[Callable[..., Any]], Tool]:
    """Make a tool of a function, `def` or `async def`.

    The name, the description (docstring), the arguments and the output schema come from the function. A
    parameter annotated `Context` gets the context and is not an argument; one annotated with a `Header` is
    mirrored into an HTTP header. It returns text, content blocks, a list of both, a value for
    `structuredContent` (a model, a dataclass, JSON), or a CallToolResult.

    `scopes` are all needed for a call. `read_only`, `destructive`, `idempotent` and `open_world` are hints for
    the client (ToolAnnotations). Clients that cannot show a form get it as text, to be answered by the model, from
    tools that are declared `read_only=True` or `destructive=False` only; as the specification has it, a tool that
    says neither may destroy. Modern clients get it as -32021 unless `text_fallback=True`, which also lets
    links go as text. `stateless=True` lets answers count without the sealed state that asked for them: only for
    tools that change nothing. `single_round=True` is for tools that a view calls: they may not ask.
    `once=True` makes what the tool completes happen once in its flow: a repeated answer gets the first result, and
    questions come before the effect. `approval="session"` (twelve hours) or a timedelta asks the user before the
    tool runs, and remembers the yes for this client; `approval_for` limits it to the values of these arguments.
    Both need a store.

    `input_schema` replaces what the signature says in `tools/list`, in JSON Schema 2020-12: the function then takes
    no arguments but the context, checks `ctx.arguments` itself, and gets what any client sends.

    Raises ConfigurationError, when the module is imported, for a signature or a form that cannot work.
    """

    def define(function: Callable[..., Any]) -> Tool:
        signature = Signature(function, kind="tool", name=name)
        if once or approval is not None or approval_for:
            _check_guards(signature.name, stateless, single_round, approval, approval_for)
        definition = _Definition(
            signature,
            title=title,
            annotations={
                "readOnlyHint": read_only,
                "destructiveHint": destructive,
                "idempotentHint": idempotent,
                "openWorldHint": open_world,
            },
            icons=icons,
            input_schema=input_schema,
            meta=meta,
            once=once,
            approval=_approval(signature, title, approval, approval_for, input_schema),
        )
        may_destroy = destructive if destructive is not None else read_only is not True
        return Tool(
            name=signature.name,
            definition=definition.listed,
            run=definition.run,
            scopes=read_scopes(signature.name, scopes),
            headers=definition.headers,
            stateless=stateless,
            single_round=single_round,
            text_fallback=text_fallback,
            # An approval is a person's: no model passes it on.
            destructive=may_destroy or approval is not None,
            needs_store=once or approval is not None,
        )

    return define if function is None else define(function)


def _check_guards(
    name: str, stateless: bool, single_round: bool, approval: "ApprovalLifetime | None", approval_for: Sequence[str]
) -> None:
    problems = []
    if stateless:
        problems.append(f"{name} is stateless, so nothing proves an answer: drop that, or once and approval.")
    if single_round:
        problems.append(f"{name} is single_round, and once and approval need a second one: drop that, or them.")
    if approval_for and approval is None:
        problems.append(f'{name} has approval_for, and asks for no approval: add approval="session".')
    if isinstance(approval_for, str):
        problems.append(f"{name}: approval_for is a list, so write approval_for=[{approval_for!r}].")
    if problems:
        raise ConfigurationError(problems)


def _annotated_headers(signature: Signature) -> Mapping[tuple[str, ...], str]:
    # Whoever marks an argument has imported it.
    if "app.toolkit.header" not in sys.modules:
        return {}
    from app.toolkit.header import annotated_headers

    return annotated_headers(signature)


def _approval(
    signature: Signature,
    title: str | None,
    lifetime: "ApprovalLifetime | None",
    arguments: Sequence[str],
    input_schema: JsonObject | None,
) -> "Approval | None":
    if lifetime is None:
        return None
    from app.toolkit.approval import Approval

    return Approval.of(signature, title, lifetime, arguments, input_schema)


class _Definition:
    """A tool function with what its signature says. What `tools/list` shows is built when first needed."""

    def __init__(
        self,
        signature: Signature,
        *,
        title: str | None,
        annotations: Mapping[str, bool | None],
        icons: "Sequence[Icon]",
        input_schema: JsonObject | None,
        meta: Mapping[str, Any] | None,
        once: bool,
        approval: "Approval | None",
    ) -> None:
        self._once = once
        self._approval = approval
        self._signature = signature
        self._title = title
        self._annotations = {hint: value for hint, value in annotations.items() if value is not None}
        self._icons = icons
        self._input_schema = input_schema
        self._meta = meta
        returns = _without_input_required(signature.returns)
        self._arguments = signature.arguments()
        self._output = None if _is_content(returns) else adapter(returns, f"the result of {signature.name}")
        if input_schema is None:
            self.headers = _annotated_headers(signature)
        else:
            if signature.parameters or input_schema.get("type") != "object":
                raise ConfigurationError(
                    [
                        f"{signature.name} has an input_schema: give it the type object, take no parameters but the "
                        "context, and read ctx.arguments."
                    ]
                )
            from app.toolkit.header import declared_headers

            self.headers = declared_headers(signature.name, input_schema)

    def listed(self) -> JsonObject:
        """The tool as tools/list shows it."""
        signature = self._signature
        listed: JsonObject = {
            "name": signature.name,
            "description": signature.description,
            "inputSchema": self._input_schema or self._derived_schema(),
        }
        if self._title:
            listed["title"] = self._title
        if self._output is not None:
            listed["outputSchema"] = self._schema(self._output, "serialization")
        if self._annotations:
            listed["annotations"] = self._annotations
        return listed | icons_and_meta(self._icons, self._meta)

    def _derived_schema(self) -> JsonObject:
        schema = self._schema(self._arguments, "validation")
        schema.pop("title", None)
        schema.pop("description", None)
        for name, member in schema.setdefault("properties", {}).items():
            if member.get("title") == name.title().replace("_", " ").strip():  # pydantic's own: no news to a model
                del member["title"]
            if name in self._signature.defaults:
                validator = TypeAdapter(self._signature.parameters[name])
                default = json.loads(validator.dump_json(self._signature.defaults[name], by_alias=True))
                if default is not None:  # what None and an infinite number become
                    member["default"] = default
        return schema

    def _schema(self, adapter: TypeAdapter[Any], mode: Literal["validation", "serialization"]) -> JsonObject:
        try:
            return adapter.json_schema(mode=mode)
        except PydanticUserError as error:
            raise ConfigurationError([no_schema(f"a type of {self._signature.name}", error)]) from error

    def run(self, call: Call) -> Outcome:
        """Run one round."""
        arguments: dict[str, Any] = {}
        if self._input_schema is None:
            try:
                arguments = self._arguments.validate_json(call.canonical_arguments, strict=True)
            except ValidationError as error:
                # A tool execution error: the model reads what is wrong and corrects it (server/tools).
                call.facts["outcome"] = "invalid_arguments"
                return Completed(messages.tool_error(f"Invalid arguments: {elicitation.describe(error)}"))

        def guarded(function: Callable[[], Outcome]) -> Outcome:
            if not self._once:
                return function() if self._approval is None else self._approval.then(call, function)
            from app.toolkit.guard import completed_once, expect_completion

            def once() -> Outcome:
                return completed_once(call, function)

            return expect_completion(call, once() if self._approval is None else self._approval.then(call, once))

        return run(self._signature, call, arguments, completed=self._completed, crashed=_failed, guarded=guarded)

    def _completed(self, result: Any) -> Completed:
        if isinstance(result, WholeResult):
            return Completed(messages.complete(result.to_json()))
        if self._output is None:
            return Completed(messages.complete({"content": [_block(each) for each in _each(result)]}))
        value = self._output.validate_python(result)
        structured = self._output.dump_python(value, mode="json", by_alias=True)
        text = json.dumps(structured, ensure_ascii=False, allow_nan=False)
        return Completed(messages.complete({"content": [messages.text_content(text)], "structuredContent": structured}))


def _failed(text: str) -> Outcome:
    return Completed(messages.tool_error(text))


def _each(result: Any) -> Sequence[Any]:
    """The blocks of a result that has no schema: none, one, or a list that has content in it."""
    if result is None:
        return ()
    if isinstance(result, list | tuple) and any(isinstance(each, Content) for each in result):
        return result
    return (result,)


def _block(content: Any) -> JsonObject:
    if isinstance(content, Content):
        return content.to_json()
    return messages.text_content(content if isinstance(content, str) else to_json(content, by_alias=True).decode())


def _is_content(annotation: Any) -> bool:
    """Whether a result of this type is content alone, without an output schema: text, blocks, or a list of them."""
    if get_origin(annotation) in (Union, types.UnionType):
        return all(map(_is_content, get_args(annotation)))
    if get_origin(annotation) in (list, tuple, Sequence):
        kinds = [kind for kind in get_args(annotation) if kind is not Ellipsis]
        return any(map(_has_blocks, kinds)) and all(map(_is_content, kinds))
    return annotation in (None, type(None), str, Any, NoReturn, Never) or _is_class_of_content(annotation)


def _has_blocks(annotation: Any) -> bool:
    return any(map(_has_blocks, get_args(annotation))) if get_args(annotation) else _is_class_of_content(annotation)


def _is_class_of_content(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, (Content, WholeResult))


def _without_input_required(annotation: Any) -> Any:
    if get_origin(annotation) in (Union, types.UnionType):
        kinds = [kind for kind in get_args(annotation) if kind is not InputRequired]
        return Union[tuple(kinds)] if kinds else None  # noqa: UP007
    return None if annotation is InputRequired else annotation
