"""What a server offers, as the protocol sees it: tools, prompts, resources, and one round of using one."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol, TypeAlias, TypeVar

from app.principal import AccessToken
from app.protocol.mrtr import Round
from app.protocol.notifications import Notifications
from app.protocol.uri_template import UriTemplate
from app.protocol.widget_state import WidgetState
from app.strict_json import JsonObject

T = TypeVar("T")


class Completed(NamedTuple):
    """The members of a CallToolResult, GetPromptResult or ReadResourceResult."""

    result: JsonObject


class Stopped(NamedTuple):
    """The function ended itself, with a sentence for the model or the client. A tool error, or -32602 elsewhere."""

    text: str


class InputNeeded(NamedTuple):
    """The function needs what it asked its Round for. `state` comes back with the answers."""

    notes: Mapping[str, str] = MappingProxyType({})
    state: Any = None
    waiting: bool = False
    """Whether it needs nothing from the client but to come again: another instance is at work."""


Outcome: TypeAlias = Completed | InputNeeded | Stopped


class Interrupt(Protocol):
    """Returns what the work returns, or raises OutOfTime in it when it is `at`, in seconds since the epoch."""

    def __call__(self, at: float, work: Callable[[], T]) -> T: ...


def _uninterrupted(at: float, work: Callable[[], T]) -> T:
    return work()


class Services(NamedTuple):
    """What a function may use besides its arguments."""

    widget_state: WidgetState
    clock: Callable[[], float]
    """Seconds since the epoch."""
    connections: Callable[[], object] | None = None
    """Builds or returns what connects third parties, where a store is configured."""
    effects: Callable[[], object] | None = None
    """Builds or returns what guards effects, where a store is configured."""
    asks_limited: bool = False
    """Whether questions are counted, which costs a round trip to the store for each."""
    interrupt: Interrupt = _uninterrupted
    """Ends a function that is still running at a time, by raising OutOfTime in it."""


class Call(NamedTuple):
    """One round of one request, as the function's side sees it."""

    target: str
    """The name of the tool or prompt, or the URI of the resource."""
    arguments: JsonObject
    canonical_arguments: bytes
    """Canonical JSON of a tool's or a prompt's arguments. A resource is named by its URI alone, and has none."""
    round: Round
    access_token: AccessToken
    now: int
    facts: dict[str, Any]
    """What the log line of this request will say. Never a secret."""
    notifications: Notifications
    services: Services
    trace_context: Mapping[str, str]
    bound_to: Callable[[], tuple[bytes, ...]]
    """What a state of this flow is bound to: the principal, the method, the target and the arguments."""
    expires_at: int
    """When the last state of this flow stops to open, in seconds since the epoch."""
    deadline: float | None = None
    """When this invocation is killed, in seconds since the epoch, where the front door says so."""
    entropy: bytes = b""
    """16 random bytes of this request. In the first round they are the flow id."""


Run: TypeAlias = Callable[[Call], Outcome]


class CompletionContext(NamedTuple):
    """Who asks for completions, and the arguments that are filled in already (server/utilities/completion)."""

    access_token: AccessToken
    arguments: Mapping[str, str]


Completer: TypeAlias = Callable[[str, CompletionContext], Iterable[str]]
"""All values that fit what was typed so far, the best first."""


class Tool(NamedTuple):
    """A tool. `definition` builds its tools/list entry when first needed."""

    name: str
    definition: Callable[[], JsonObject]
    run: Run
    scopes: tuple[str, ...] = ()
    headers: Mapping[tuple[str, ...], str] = MappingProxyType({})
    """Path of an argument -> the name that its `x-mcp-header` gives."""
    stateless: bool = False
    single_round: bool = False
    text_fallback: bool = False
    """Whether a modern client that cannot show a question gets it as text, instead of -32021."""
    destructive: bool = True
    """Whether a model must not pass on the user's answers: as ToolAnnotations say, unless the tool denies it."""
    needs_store: bool = False
    """Whether it cannot keep its promise without a store."""


class Prompt(NamedTuple):
    """A prompt. `definition` builds its prompts/list entry when first needed."""

    name: str
    definition: Callable[[], JsonObject]
    run: Run
    scopes: tuple[str, ...] = ()
    completers: Mapping[str, Completer] = MappingProxyType({})


class Resource(NamedTuple):
    """A resource or, where the template has variables, many. `definition` builds its entry in the lists."""

    uri: UriTemplate
    definition: Callable[[], JsonObject]
    run: Run
    scopes: tuple[str, ...] = ()
    completers: Mapping[str, Completer] = MappingProxyType({})
    ttl_ms: int = 0
    public: bool = False


class Features(NamedTuple):
    """Everything that a server offers."""

    tools: Sequence[Tool] = ()
    prompts: Sequence[Prompt] = ()
    resources: Sequence[Resource] = ()

    @classmethod
    def of(cls, offered: "Features | Iterable[object]") -> "Features":
        """Features as they are, or the tools, prompts and resources among any objects, such as those of a module."""
        if isinstance(offered, Features):
            return offered
        objects = tuple(offered)
        return cls(
            tools=[each for each in objects if isinstance(each, Tool)],
            prompts=[each for each in objects if isinstance(each, Prompt)],
            resources=[each for each in objects if isinstance(each, Resource)],
        )

    @property
    def all(self) -> tuple[Tool | Prompt | Resource, ...]:
        """Each of them, of whatever kind."""
        return (*self.tools, *self.prompts, *self.resources)

    @property
    def scopes(self) -> list[str]:
        """Every scope that something here needs, in a stable order."""
        return sorted({scope for each in self.all for scope in each.scopes})

    @property
    def completes(self) -> bool:
        """Whether any argument can be completed."""
        offered: tuple[Prompt | Resource, ...] = (*self.prompts, *self.resources)
        return any(each.completers for each in offered)
