"""From a verified request to its result: discovery, lists, and the rounds of tools, prompts and resources."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar

from app import strict_json
from app.errors import ConfigurationError, InsufficientScope, RequestStateRefused
from app.principal import AccessToken
from app.protocol import completion, legacy, messages, mrtr, request_state, subscriptions
from app.protocol.features import (
    Call,
    Completed,
    Features,
    InputNeeded,
    Prompt,
    Resource,
    Services,
    Stopped,
    Tool,
)
from app.protocol.jsonrpc import ErrorCode, JSONRPCError, Request
from app.protocol.legacy import LegacyErrorCode
from app.protocol.messages import RequestMeta
from app.protocol.mrtr import Round, RoundsExceeded, StateTooLarge
from app.protocol.notifications import LEVELS, Notifications
from app.protocol.pagination import page
from app.protocol.request_state import Binding, RequestState, RequestStateCodec
from app.protocol.text_fallback import ANSWER, DEFINITION, Resumed, TextFallback
from app.sealing import SealingKeys
from app.strict_json import JsonObject

if TYPE_CHECKING:
    from app.protocol.content import Icon

LIST_TTL_MS: Final = 300_000
"""How long a client may keep lists: they change by deployment only."""

_NOT_OPEN: Final = "This question is no longer open. Call the tool that asked it again."

F = TypeVar("F", Tool, Prompt, Resource)
Feature: TypeAlias = Tool | Prompt | Resource


@dataclass(frozen=True, slots=True)
class Implementation:
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


@dataclass(frozen=True, slots=True)
class Exchange:
    """One verified request with all that its answer depends on."""

    request: Request
    meta: RequestMeta
    access_token: AccessToken
    now: int
    entropy: bytes
    """16 fresh random bytes: the flow id of a new flow."""
    notifications: Notifications
    facts: dict[str, Any]
    trace_context: Mapping[str, str] = field(default_factory=dict)
    deadline: float | None = None
    """When this invocation is killed, in seconds since the epoch, where the front door says so."""

    @property
    def params(self) -> JsonObject:
        return self.request.params


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
        self._codec = codec
        self._audience = audience
        self._services = services
        self._instructions = instructions
        self._fallback = TextFallback(keyring, codec, audience=audience)
        self._fallback_forms = text_fallback
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
            self._fallback_forms
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
        return self._round(exchange, tool, name, _arguments(exchange.params))

    def _answer(self, exchange: Exchange, arguments: JsonObject) -> JsonObject:
        """Go on with the call whose question came as text."""
        principal = exchange.access_token.principal
        try:
            resumed = self._fallback.open(arguments.get("handle"), principal, now=exchange.now)
            tool = self._tools[resumed.tool]
        except (RequestStateRefused, KeyError) as error:
            exchange.facts.update(outcome="refused", reason=f"answer handle: {error}")
            return messages.tool_error(_NOT_OPEN)
        exchange.facts["tool"] = tool.name
        answers = arguments.get("answers")
        try:
            return self._round(
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
        return self._round(exchange, prompt, name, _arguments(exchange.params))

    def _read_resource(self, exchange: Exchange) -> JsonObject:
        uri = messages.member(exchange.params, "uri", str, "a string")
        resource, variables = self._matching(uri)
        if resource is None or variables is None:
            raise _not_found(uri, exchange.meta)
        exchange.facts["resource"] = resource.uri.text
        # Bound by the URI alone: the variables follow from it.
        result = self._round(exchange, resource, uri, {}, given=variables)
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

    def _round(
        self,
        exchange: Exchange,
        feature: Feature,
        target: str,
        arguments: JsonObject,
        *,
        given: JsonObject | None = None,
        past: RequestState | None = None,
        responses: JsonObject | None = None,
    ) -> JsonObject:
        """One round of a request that may take several. `past` and `responses` come with an answer given as text."""
        access_token, facts, now = exchange.access_token, exchange.facts, exchange.now
        if not access_token.scopes.issuperset(feature.scopes):
            raise InsufficientScope(feature.scopes)
        canonical = strict_json.canonical(arguments)
        binding = Binding(self._audience, access_token.principal, exchange.request.method, target, canonical)
        if past is None:
            past, responses = self._past(exchange, binding)
        current = Round(
            past=past,
            responses=responses or {},
            capabilities=exchange.meta.client_capabilities,
            stateless=isinstance(feature, Tool) and feature.stateless,
        )
        facts["round"] = current.number
        outcome = feature.run(
            Call(
                target,
                arguments if given is None else given,
                canonical if given is None else strict_json.canonical(given),
                current,
                access_token,
                now,
                facts,
                exchange.notifications,
                self._services,
                exchange.trace_context,
                bound_to=binding.fields(),
                expires_at=past.first_issued_at + self._codec.max_age,
                deadline=exchange.deadline,
                entropy=exchange.entropy,
            )
        )
        match outcome:
            case Completed(result):
                facts.setdefault("outcome", "error" if result.get("isError") else "complete")
                return result
            case Stopped(text):
                return _in_words(feature, text)
            case InputNeeded():
                pass
        if isinstance(feature, Tool) and feature.single_round and not outcome.waiting:
            facts.update(outcome="crashed", reason="single_round")
            return messages.tool_error(f"{target} asked the user, and is declared single_round: it may not.")
        try:
            result = self._ask(exchange, feature, current, binding, outcome, arguments)
            facts.setdefault("outcome", "input_required")
            return result
        except RoundsExceeded as error:
            facts.update(outcome="error", reason="rounds")
            what = "Call the tool again." if isinstance(feature, Tool) else "Ask for it again."
            # Who waits for an effect must not begin it anew.
            what = "Check its outcome later." if outcome.waiting else what
            text = f"This took more than {error.cap} rounds, which is the limit. {what}"
        except StateTooLarge as error:
            facts.update(outcome="error", reason=f"requestState: {error.reason}")
            text = (
                "What is carried from one round to the next is too large. Carry an id, and keep the content in a store."
            )
        return _in_words(feature, text)

    def _past(self, exchange: Exchange, binding: Binding) -> tuple[RequestState, JsonObject]:
        """What earlier rounds left with the client, verified, and the answers to the last one's questions."""
        past = request_state.begin(now=exchange.now, entropy=exchange.entropy)
        if exchange.meta.legacy:
            return past, {}
        token = exchange.params.get("requestState")
        if token is not None:
            try:
                past = self._codec.open(token, binding, now=exchange.now)
            except RequestStateRefused as error:
                raise request_state.invalid_request_state(error) from None
        return past, mrtr.read_responses(exchange.params)

    def _ask(
        self,
        exchange: Exchange,
        feature: Feature,
        current: Round,
        binding: Binding,
        outcome: InputNeeded,
        arguments: JsonObject,
    ) -> JsonObject:
        """Put the questions of a round to the client, in the best way that it declared."""
        client, missing = exchange.meta, current.missing_capabilities
        as_text = isinstance(feature, Tool) and (
            (missing and feature.text_fallback)
            or feature.single_round
            # Through `answer`, which has a handle and no state to go on from.
            or exchange.params.get("name") != feature.name
        )
        if not client.legacy and not as_text:
            return current.input_required(
                self._codec,
                binding,
                now=exchange.now,
                notes=outcome.notes,
                state=outcome.state,
                waiting=outcome.waiting,
            )
        if outcome.waiting:
            return _in_words(feature, "It is not finished. Repeat this call, as it is, in a moment.")
        questions = current.questions(outcome.notes)
        links = [each["params"].get("mode") == "url" for each in questions.values()]
        if client.legacy and not missing and links and all(links):
            exchange.facts["outcome"] = "url_elicitation_required"
            raise legacy.url_elicitation_required(questions)
        elicited = all(each["method"] == "elicitation/create" for each in questions.values())
        forms = not all(links) or not links
        if (
            not isinstance(feature, Tool)
            or not elicited
            or (forms and (feature.destructive or not self._fallback_forms))
        ):
            return _cannot_show(feature, current, client)
        resumed = Resumed(feature.name, arguments, current.following(outcome.state, max_rounds=self._codec.max_rounds))
        exchange.facts["outcome"] = "asked_as_text"
        try:
            return self._fallback.result(questions, resumed, exchange.access_token.principal, now=exchange.now)
        except ValueError as error:
            raise StateTooLarge(str(error)) from None


def _cannot_show(feature: Feature, current: Round, client: RequestMeta) -> JsonObject:
    if not client.legacy:
        raise messages.capability_error(current.missing_capabilities)
    text = (
        "This has to ask the user, and this client cannot show a server's questions: "
        f"use a client that speaks MCP {messages.PROTOCOL_VERSION} with elicitation."
    )
    return _in_words(feature, text, ErrorCode.INVALID_REQUEST)


def _in_words(feature: Feature, text: str, code: ErrorCode = ErrorCode.INVALID_PARAMS) -> JsonObject:
    """The end of a request that has no result: a tool error for the model, a protocol error elsewhere."""
    if isinstance(feature, Tool):
        return messages.tool_error(text)
    raise JSONRPCError(code, text)


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
