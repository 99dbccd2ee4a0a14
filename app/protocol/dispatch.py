"""From a verified request to its result: which methods there are, discovery, lists, and what is asked for by name."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

from app.errors import ConfigurationError, RequestStateRefused
from app.protocol import completion, legacy, messages, mrtr, request_state, subscriptions
from app.protocol.features import (
    Features,
    Prompt,
    Resource,
    Services,
    Tool,
)
from app.protocol.jsonrpc import ErrorCode, JSONRPCError, Request
from app.protocol.legacy import LegacyErrorCode
from app.protocol.messages import RequestMeta
from app.protocol.notifications import LEVELS
from app.protocol.pagination import page
from app.protocol.request_state import RequestStateCodec
from app.protocol.rounds import Exchange, Feature, Rounds
from app.protocol.text_fallback import ANSWER, DEFINITION
from app.sealing import SealingKeys
from app.strict_json import JsonObject

if TYPE_CHECKING:
    from app.protocol.content import Icon

LIST_TTL_MS: Final = 300_000
"""How long a client may keep lists: they change by deployment only."""

_NOT_OPEN: Final = "This question is no longer open. Call the tool that asked it again."

F = TypeVar("F", Tool, Prompt, Resource)


class Implementation(NamedTuple):
    """What clients show of this server (schema, Implementation)."""

    name: str
    version: str
    title: str | None = None
    website_url: str | None = None
    icons: "Sequence[Icon]" = ()

    def to_json(self) -> JsonObject:
        members: JsonObject = {"name": self.name, "version": self.version}
        if self.title:
            members["title"] = self.title
        if self.website_url:
            members["websiteUrl"] = self.website_url
        if self.icons:
            members["icons"] = [icon.to_json() for icon in self.icons]
        return members


class Server:
    """The methods of MCP over what a server offers. Holds nothing that a request left behind.

    `text_fallback=False` keeps forms from clients that cannot show them: they are not put to the model as text.
    """

    def __init__(
        self,
        implementation: Implementation,
        features: Features,
        *,
        keyring: SealingKeys,
        codec: RequestStateCodec,
        audience: str,
        services: Services,
        instructions: str | None = None,
        text_fallback: bool = True,
    ) -> None:
        self._tools = _by_name(features.tools, lambda tool: tool.name, "tools are named")
        self._prompts = _by_name(features.prompts, lambda prompt: prompt.name, "prompts are named")
        self._resources = _by_name(features.resources, lambda resource: resource.uri.text, "resources have the URI")
        if text_fallback and ANSWER in self._tools:
            raise ConfigurationError(
                [f"A tool is named {ANSWER}, which takes answers to questions put as text: rename it."]
            )
        self._instructions = instructions
        self._rounds = Rounds(keyring, codec, audience=audience, services=services, asks_by_text=text_fallback)
        self.legacy_clients = legacy.LegacyClients(keyring, audience=audience)
        self._server_info = implementation.to_json()
        self._capabilities: JsonObject = {"tools": {}, "logging": {}}
        if features.prompts:
            self._capabilities["prompts"] = {}
        if features.resources:
            self._capabilities["resources"] = {}
        if features.completes:
            self._capabilities["completions"] = {}
        self._definitions: dict[str, JsonObject] = {}
        self._methods: dict[str, Callable[[Exchange], JsonObject]] = {
            messages.DISCOVER: self._discover,
            messages.TOOLS_LIST: self._list_tools,
            messages.TOOLS_CALL: self._call_tool,
            messages.LISTEN: self._listen,
        }
        if features.prompts:
            self._methods |= {messages.PROMPTS_LIST: self._list_prompts, messages.PROMPTS_GET: self._get_prompt}
        if features.resources:
            self._methods |= {
                messages.RESOURCES_LIST: self._list_resources,
                messages.RESOURCES_TEMPLATES_LIST: self._list_templates,
                messages.RESOURCES_READ: self._read_resource,
            }
        if "completions" in self._capabilities:
            self._methods[messages.COMPLETE] = self._complete
        modern_only = (messages.DISCOVER, messages.LISTEN)
        self._legacy_methods = {name: method for name, method in self._methods.items() if name not in modern_only} | {
            legacy.INITIALIZE: self._initialize,
            legacy.PING: lambda exchange: {},
            legacy.SET_LEVEL: lambda exchange: legacy.set_level(exchange.params, LEVELS),
        }

    def mirrored(self, request: Request) -> Mapping[tuple[str, ...], str]:
        """The arguments of a request that `Mcp-Param-*` headers repeat."""
        tool = self._tools.get(str(request.params.get("name"))) if request.method == messages.TOOLS_CALL else None
        return tool.headers if tool else {}

    def dispatch(self, exchange: Exchange) -> JsonObject:
        """The result of a request. Raises JSONRPCError, and InsufficientScope for a 403."""
        request, meta = exchange.request, exchange.meta
        method = (self._legacy_methods if meta.legacy else self._methods).get(request.method)
        if method is None:
            offered = "initialize" if meta.legacy else messages.DISCOVER
            raise JSONRPCError(ErrorCode.METHOD_NOT_FOUND, f"Method not found: {offered} says what this server offers")
        if meta.legacy:
            return legacy.translated(method(exchange), meta.protocol_version)
        if request.method not in messages.NAMED_BY:
            mrtr.refuse_on(request.method, request.params)
        result = method(exchange)
        own = {messages.META_SERVER_INFO: self._server_info}
        return {**result, messages.META: {**result.get(messages.META, {}), **own}}

    def _discover(self, exchange: Exchange) -> JsonObject:
        discovered: JsonObject = {
            "supportedVersions": list(messages.SUPPORTED_VERSIONS),
            "capabilities": self._capabilities,
        }
        if self._instructions:
            discovered["instructions"] = self._instructions
        return messages.cacheable(discovered, ttl_ms=LIST_TTL_MS)

    def _initialize(self, exchange: Exchange) -> JsonObject:
        return legacy.initialize(
            exchange.request,
            server_info=self._server_info,
            capabilities=self._capabilities,
            instructions=self._instructions,
        )

    def _list_tools(self, exchange: Exchange) -> JsonObject:
        tools: Mapping[str, Tool | None] = self._tools
        if not self._answerable(exchange.meta):
            return self._list("tools", tools, exchange)
        # Not for every client, so not to be kept for another one.
        return self._list("tools", {**tools, ANSWER: None}, exchange) | {"cacheScope": "private"}

    def _list_prompts(self, exchange: Exchange) -> JsonObject:
        return self._list("prompts", self._prompts, exchange)

    def _list_resources(self, exchange: Exchange) -> JsonObject:
        single = {uri: each for uri, each in self._resources.items() if not each.uri.variables}
        return self._list("resources", single, exchange)

    def _list_templates(self, exchange: Exchange) -> JsonObject:
        templates = {uri: each for uri, each in self._resources.items() if each.uri.variables}
        return self._list("resourceTemplates", templates, exchange)

    def _list(self, kind: str, offered: Mapping[str, Feature | None], exchange: Exchange) -> JsonObject:
        names = list(offered)
        indices, more = page(names, exchange.params)
        entries = [self._definition(kind, name, offered[name]) for name in (names[index] for index in indices)]
        return messages.cacheable({kind: entries, **more}, ttl_ms=LIST_TTL_MS)

    def _definition(self, kind: str, name: str, feature: Feature | None) -> JsonObject:
        if feature is None:
            return DEFINITION
        key = f"{kind} {name}"
        if key not in self._definitions:
            self._definitions[key] = feature.definition()
        return self._definitions[key]

    def _answerable(self, client: RequestMeta) -> bool:
        """Whether some tool may put its forms to this client as text."""
        can_show = not messages.missing_capability("elicitation/create", {}, client.client_capabilities)
        return (
            self._rounds.asks_by_text
            and (client.legacy or not can_show)
            and any(not tool.destructive and (client.legacy or tool.text_fallback) for tool in self._tools.values())
        )

    def _complete(self, exchange: Exchange) -> JsonObject:
        return completion.complete(exchange.params, exchange.access_token, self._prompts, self._resources)

    def _listen(self, exchange: Exchange) -> JsonObject:
        acknowledgement, result = subscriptions.listen(exchange.request.id, exchange.params)
        exchange.notifications.sent.append(acknowledgement)
        return result

    def _call_tool(self, exchange: Exchange) -> JsonObject:
        name = messages.member(exchange.params, "name", str, "a string")
        if name == ANSWER and self._answerable(exchange.meta):
            return self._answer(exchange, _arguments(exchange.params))
        tool = self._tools.get(name)
        if tool is None:
            raise JSONRPCError(ErrorCode.INVALID_PARAMS, f"Unknown tool: {name[:128]}")
        exchange.facts["tool"] = name
        return self._rounds.run(exchange, tool, name, _arguments(exchange.params))

    def _answer(self, exchange: Exchange, arguments: JsonObject) -> JsonObject:
        """Go on with the call whose question came as text."""
        principal = exchange.access_token.principal
        try:
            resumed = self._rounds.text_fallback.open(arguments.get("handle"), principal, now=exchange.now)
            tool = self._tools[resumed.tool]
        except (RequestStateRefused, KeyError) as error:
            exchange.facts.update(outcome="refused", reason=f"answer handle: {error}")
            return messages.tool_error(_NOT_OPEN)
        exchange.facts["tool"] = tool.name
        answers = arguments.get("answers")
        try:
            return self._rounds.run(
                exchange,
                tool,
                tool.name,
                resumed.arguments,
                past=resumed.state,
                responses=answers if isinstance(answers, dict) else {},
            )
        except JSONRPCError as error:
            if error.data != request_state.REFUSED:
                raise
            # The question was answered before, and otherwise. What a model reads is words.
            exchange.facts.update(outcome="refused", reason=error.reason)
            return messages.tool_error(_NOT_OPEN)

    def _get_prompt(self, exchange: Exchange) -> JsonObject:
        name = messages.member(exchange.params, "name", str, "a string")
        prompt = self._prompts.get(name)
        if prompt is None:
            raise JSONRPCError(ErrorCode.INVALID_PARAMS, f"Unknown prompt: {name[:128]}")
        exchange.facts["prompt"] = name
        return self._rounds.run(exchange, prompt, name, _arguments(exchange.params))

    def _read_resource(self, exchange: Exchange) -> JsonObject:
        uri = messages.member(exchange.params, "uri", str, "a string")
        resource, variables = self._matching(uri)
        if resource is None or variables is None:
            raise _not_found(uri, exchange.meta)
        exchange.facts["resource"] = resource.uri.text
        # Bound by the URI alone: the variables follow from it.
        result = self._rounds.run(exchange, resource, uri, {}, given=variables)
        if result.get("resultType") == "complete":
            if not result["contents"]:
                raise _not_found(uri, exchange.meta)
            return messages.cacheable(result, ttl_ms=resource.ttl_ms, public=resource.public)
        return result

    def _matching(self, uri: str) -> tuple[Resource | None, dict[str, str] | None]:
        exact = self._resources.get(uri)
        if exact is not None and not exact.uri.variables:
            return exact, {}
        for resource in self._resources.values():
            variables = resource.uri.match(uri) if resource.uri.variables else None
            if variables is not None:
                return resource, variables
        return None, None


def _arguments(params: JsonObject) -> JsonObject:
    arguments = params.get("arguments", {})
    if not isinstance(arguments, dict):
        raise JSONRPCError(ErrorCode.INVALID_PARAMS, 'The parameter "arguments" must be an object, or absent')
    return arguments


def _not_found(uri: str, meta: RequestMeta) -> JSONRPCError:
    # Before 2026-07-28 it had a code of its own.
    code = LegacyErrorCode.RESOURCE_NOT_FOUND if meta.legacy else ErrorCode.INVALID_PARAMS
    return JSONRPCError(code, "Resource not found", {"uri": uri})


def _by_name(features: Iterable[F], name_of: Callable[[F], str], what: str) -> dict[str, F]:
    named: dict[str, F] = {}
    for feature in features:
        name = name_of(feature)
        if name in named:
            raise ConfigurationError([f"Two {what} {name}: rename one."])
        named[name] = feature
    return named
