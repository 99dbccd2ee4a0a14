"""How Local Hub is told to misbehave: one fault for each kind of request, for so many requests."""

from dataclasses import dataclass, field, replace
from enum import StrEnum
from threading import Event, Lock
from typing import Final


class Kind(StrEnum):
    """A kind of request. An exchange of a code and a refresh arrive at the same endpoint."""

    AUTHORIZATION = "authorization"
    CODE = "code"
    REFRESH = "refresh"
    REVOCATION = "revocation"
    API = "api"


class Fault(StrEnum):
    """What goes wrong. Unless it says otherwise the request is not acted upon."""

    WRONG_ISS = "wrong_iss"
    """The authorization response names another issuer."""
    MISSING_ISS = "missing_iss"
    DENIED = "denied"
    """`access_denied`, whatever the user clicks."""

    SLOW = "slow"
    """Acts and answers, but after `seconds`."""
    HANG = "hang"
    """Says nothing until Local Hub is told to behave; then acts and answers, if the client is still there."""
    LOST = "lost"
    """Acts, and then says nothing: a rotated refresh token never reaches the client."""
    DRIP = "drip"
    """Sends a byte now and then, until Local Hub is told to behave."""
    HTML = "html"
    """A page with status 200, as a load balancer has it."""
    REDIRECT = "redirect"
    """302 to `address`."""
    HUGE = "huge"
    """An answer of `size` bytes that is well-formed otherwise."""
    INVALID_GRANT = "invalid_grant"
    SERVER_ERROR = "server_error"
    PLAIN_TEXT = "plain_text"
    """An error without JSON."""

    WRONG_TOKEN_TYPE = "wrong_token_type"  # noqa: S105  a fault, not a secret
    """Acts, and calls the token something else than a bearer token."""
    EXPIRES_IN_AS_TEXT = "expires_in_as_text"
    """Acts, and sends the lifetime as a string."""
    NO_REFRESH_TOKEN = "no_refresh_token"  # noqa: S105
    """Acts, and leaves the refresh token out."""
    FEWER_SCOPES = "fewer_scopes"
    """Acts, and grants one scope less than the user agreed to."""


OF_AUTHORIZATION: Final = frozenset((Fault.WRONG_ISS, Fault.MISSING_ISS, Fault.DENIED))
OF_TOKENS: Final = frozenset(
    (Fault.WRONG_TOKEN_TYPE, Fault.EXPIRES_IN_AS_TEXT, Fault.NO_REFRESH_TOKEN, Fault.FEWER_SCOPES, Fault.INVALID_GRANT)
)


@dataclass(frozen=True, kw_only=True)
class Misbehaviour:
    """A fault with what it needs. `times` is how many requests it hits, None for all.

    `over` is set as soon as Local Hub is told to behave, for requests that are under way.
    """

    fault: Fault
    times: int | None = None
    seconds: float = 1.0
    address: str = ""
    size: int = 1024 * 1024
    over: Event = field(default_factory=Event, compare=False, repr=False)


@dataclass
class Faults:
    """Set from a test's thread, taken by the server's."""

    _by_kind: dict[Kind, Misbehaviour] = field(default_factory=dict)
    _over: Event = field(default_factory=Event)
    _lock: Lock = field(default_factory=Lock)

    def set(self, kind: Kind, misbehaviour: Misbehaviour) -> None:
        """From now on misbehave at requests of this kind. Raises ValueError for a fault that they cannot have."""
        fault = misbehaviour.fault
        if (fault in OF_AUTHORIZATION) != (kind is Kind.AUTHORIZATION):
            raise ValueError(f"{fault} is no fault of {kind}: those of authorization are {_list(OF_AUTHORIZATION)}")
        if fault in OF_TOKENS and kind not in (Kind.CODE, Kind.REFRESH):
            raise ValueError(f"{fault} is about tokens: set it for {Kind.CODE} or {Kind.REFRESH}")
        if fault is Fault.REDIRECT and not misbehaviour.address:
            raise ValueError("A redirect needs an address: say where it goes")
        with self._lock:
            self._by_kind[kind] = replace(misbehaviour, over=self._over)

    def clear(self) -> None:
        """Behave, also towards requests that are under way."""
        with self._lock:
            self._by_kind.clear()
            self._over.set()
            self._over = Event()

    def take(self, kind: Kind) -> Misbehaviour | None:
        """How to misbehave at this request; it counts as one of `times`."""
        with self._lock:
            found = self._by_kind.get(kind)
            if found is None or found.times is None:
                return found
            if found.times <= 1:
                del self._by_kind[kind]
            else:
                self._by_kind[kind] = replace(found, times=found.times - 1)
            return found if found.times >= 1 else None


def _list(faults: frozenset[Fault]) -> str:
    return ", ".join(sorted(faults))
