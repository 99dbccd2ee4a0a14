"""From a verified request to its result: discovery, the list of tools, and calls in one or many rounds."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from app import strict_json
from app.errors import ConfigurationError, InsufficientScope, RequestStateRefused
from app.principal import AccessToken
from app.protocol import messages, mrtr, request_state
from app.protocol.jsonrpc import ErrorCode, JSONRPCError, Request
from app.protocol.messages import RequestMeta
from app.protocol.mrtr import Round, RoundsExceeded, StateTooLarge
from app.protocol.request_state import Binding, RequestStateCodec
from app.strict_json import JsonObject

LIST_TTL_MS: Final = 300_000
"""How long a client may keep lists: they change by deployment only."""


@dataclass(frozen=True, slots=True)
class Completed:
    """The tool has a result: the members of a CallToolResult."""

    result: JsonObject


@dataclass(frozen=True, slots=True)
class InputNeeded:
    """The tool needs what it asked its Round for. `state` comes back with the answers."""

    notes: dict[str, str] = field(default_factory=dict)
    state: Any = None


Outcome: TypeAlias = Completed | InputNeeded


@dataclass(frozen=True, slots=True)
class Call:
    """One round of one tool call, as the tool's side sees it."""

    arguments: JsonObject
    canonical_arguments: bytes
    round: Round
    access_token: AccessToken
    now: int
    facts: dict[str, Any]
    """What the log line of this request will say. Never a secret."""
    connections: Callable[[], object] | None = None
    """Builds or returns what connects third parties, where a store is configured."""


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool as the protocol sees it. `definition` builds its tools/list entry when first needed."""

    name: str
    definition: Callable[[], JsonObject]
    run: Callable[[Call], Outcome]
    scopes: tuple[str, ...] = ()
    stateless: bool = False


class Server:
    """The methods of MCP 2026-07-28 over a set of tools. Holds nothing that a request left behind."""

    def __init__(
        self,
        *,
        name: str,
        version: str,
        tools: Iterable[Tool],
        codec: RequestStateCodec,
        audience: str,
        instructions: str | None = None,
        connections: Callable[[], object] | None = None,
    ) -> None:
        self._tools: dict[str, Tool] = {}
        for tool in tools:
            if tool.name in self._tools:
                raise ConfigurationError([f"Two tools are named {tool.name}: rename one."])
            self._tools[tool.name] = tool
        self._codec = codec
        self._audience = audience
        self._instructions = instructions
        self._connections = connections
        self._server_info = {messages.META_SERVER_INFO: {"name": name, "version": version}}
        self._methods: dict[str, Callable[..., JsonObject]] = {
            messages.DISCOVER: self._discover,
            messages.TOOLS_LIST: self._list_tools,
            messages.TOOLS_CALL: self._call_tool,
        }
        self._listed: JsonObject | None = None

    @property
    def scopes(self) -> list[str]:
        """Every scope that some tool needs, in a stable order."""
        return sorted({scope for tool in self._tools.values() for scope in tool.scopes})

    def dispatch(
        self,
        request: Request,
        meta: RequestMeta,
        access_token: AccessToken,
        *,
        now: int,
        entropy: bytes,
        facts: dict[str, Any],
    ) -> JsonObject:
        """The result of a request. Raises JSONRPCError, and InsufficientScope for a 403."""
        method = self._methods.get(request.method)
        if method is None:
            raise JSONRPCError(
                ErrorCode.METHOD_NOT_FOUND, "Method not found: server/discover lists what this server offers"
            )
        if request.method not in messages.NAMED_BY:
            mrtr.refuse_on(request.method, request.params)
            result = method(request.params)
        else:
            result = method(request, meta, access_token, now=now, entropy=entropy, facts=facts)
        return {**result, messages.META: {**result.get(messages.META, {}), **self._server_info}}

    def _discover(self, params: JsonObject) -> JsonObject:
        discovered: JsonObject = {
            "supportedVersions": list(messages.SUPPORTED_VERSIONS),
            "capabilities": {"tools": {}},
        }
        if self._instructions:
            discovered["instructions"] = self._instructions
        return messages.cacheable(discovered, ttl_ms=LIST_TTL_MS)

    def _list_tools(self, params: JsonObject) -> JsonObject:
        if params.get("cursor") is not None:
            raise JSONRPCError(ErrorCode.INVALID_PARAMS, "Unknown cursor: start again without one")
        if self._listed is None:
            tools = [tool.definition() for tool in self._tools.values()]
            self._listed = messages.cacheable({"tools": tools}, ttl_ms=LIST_TTL_MS)
        return self._listed

    def _call_tool(
        self,
        request: Request,
        meta: RequestMeta,
        access_token: AccessToken,
        *,
        now: int,
        entropy: bytes,
        facts: dict[str, Any],
    ) -> JsonObject:
        name = messages.member(request.params, "name", str, "a string")
        tool = self._tools.get(name)
        if tool is None:
            raise JSONRPCError(ErrorCode.INVALID_PARAMS, f"Unknown tool: {name[:128]}")
        arguments = request.params.get("arguments", {})
        if not isinstance(arguments, dict):
            raise JSONRPCError(ErrorCode.INVALID_PARAMS, 'The parameter "arguments" must be an object, or absent')
        facts["tool"] = name
        if not access_token.scopes.issuperset(tool.scopes):
            raise InsufficientScope(tool.scopes)

        canonical = strict_json.canonical(arguments)
        binding = Binding(self._audience, access_token.principal, request.method, name, canonical)
        token = request.params.get("requestState")
        try:
            past = (
                request_state.begin(now=now, entropy=entropy)
                if token is None
                else self._codec.open(token, binding, now=now)
            )
        except RequestStateRefused as error:
            raise request_state.invalid_request_state(error) from None
        current = Round(
            past=past,
            responses=mrtr.read_responses(request.params),
            capabilities=meta.client_capabilities,
            stateless=tool.stateless,
        )
        facts["round"] = current.number
        outcome = tool.run(Call(arguments, canonical, current, access_token, now, facts, self._connections))
        if isinstance(outcome, Completed):
            facts.setdefault("outcome", "error" if outcome.result.get("isError") else "complete")
            return outcome.result
        facts["outcome"] = "input_required"
        try:
            return current.input_required(self._codec, binding, now=now, notes=outcome.notes, state=outcome.state)
        except RoundsExceeded as error:
            facts.update(outcome="error", reason="rounds")
            return messages.tool_error(
                f"This took more than {error.cap} rounds of questions, which is the limit. Call the tool again."
            )
        except StateTooLarge as error:
            facts.update(outcome="error", reason=f"requestState: {error.reason}")
            return messages.tool_error(
                "What this tool carries from one round to the next is too large. "
                "Carry an id, and keep the content in a store."
            )
