"""One round of a tool, prompt or resource: what the client brought, the function's run, and how its questions go."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias

from app import strict_json
from app.errors import InsufficientScope, RequestStateRefused
from app.principal import AccessToken
from app.protocol import legacy, messages, mrtr, request_state
from app.protocol.features import Call, Completed, InputNeeded, Prompt, Resource, Services, Stopped, Tool
from app.protocol.jsonrpc import ErrorCode, JSONRPCError, Request
from app.protocol.messages import RequestMeta
from app.protocol.mrtr import Round, RoundsExceeded, StateTooLarge
from app.protocol.notifications import Notifications
from app.protocol.request_state import Binding, RequestState, RequestStateCodec
from app.protocol.text_fallback import Resumed, TextFallback
from app.sealing import SealingKeys
from app.strict_json import JsonObject

Feature: TypeAlias = Tool | Prompt | Resource


class Exchange(NamedTuple):
    """One verified request with all that its answer depends on."""

    request: Request
    meta: RequestMeta
    access_token: AccessToken
    now: int
    entropy: bytes
    """16 fresh random bytes: the flow id of a new flow."""
    notifications: Notifications
    facts: dict[str, Any]
    trace_context: Mapping[str, str] = MappingProxyType({})
    deadline: float | None = None
    """When this invocation is killed, in seconds since the epoch, where the front door says so."""

    @property
    def params(self) -> JsonObject:
        return self.request.params


class Rounds:
    """Runs rounds. `asks_by_text=False` keeps forms from being put to the model of a client that cannot show them."""

    def __init__(
        self, keyring: SealingKeys, codec: RequestStateCodec, *, audience: str, services: Services, asks_by_text: bool
    ) -> None:
        self._codec = codec
        self._audience = audience
        self._services = services
        self.text_fallback = TextFallback(keyring, codec, audience=audience)
        self.asks_by_text = asks_by_text

    def run(
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
                canonical,
                current,
                access_token,
                now,
                facts,
                exchange.notifications,
                self._services,
                exchange.trace_context,
                bound_to=binding.fields,
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
        if not isinstance(feature, Tool) or not elicited or (forms and (feature.destructive or not self.asks_by_text)):
            return _cannot_show(feature, current, client)
        resumed = Resumed(feature.name, arguments, current.following(outcome.state, max_rounds=self._codec.max_rounds))
        exchange.facts["outcome"] = "asked_as_text"
        try:
            return self.text_fallback.result(questions, resumed, exchange.access_token.principal, now=exchange.now)
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
