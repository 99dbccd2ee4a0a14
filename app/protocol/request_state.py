"""requestState: what a request needs to go on after the user has answered, sealed for its return.

Each retry is an independent request to any instance (MCP basic/patterns/mrtr), so everything that the
next round needs travels: which questions were asked, which answers count already, when the flow began
and how many rounds it has taken. The limits are inside the seal, where a client cannot reset them.

Claims: `v` version, `fid` flow id kept for all rounds, `fst` first issued, `iat` issued, `exp` expires
(seconds since the epoch), `n` rounds issued, `q` key -> digest of the question asked under it,
`a` key -> answer that counts, `s` the tool's own state, `w` the last rounds, one after the other, in which
nothing was asked and the client was to come again.
"""

import hashlib
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from app import strict_json
from app.errors import ConfigurationError, RequestStateRefused, SealRefused
from app.principal import Principal
from app.protocol.jsonrpc import ErrorCode, JSONRPCError
from app.sealing import Purpose, Seal, SealingKeys
from app.strict_json import JsonObject

LIFETIME: Final = 600
"""Seconds for which one round's state is valid."""
MAX_AGE: Final = 3600
"""Seconds from the first round to the last."""
MAX_ROUNDS: Final = 8
CLOCK_SKEW: Final = 60
"""Seconds by which another instance's clock may be ahead of ours."""
REFUSED: Final[JsonObject] = {"reason": "invalid_request_state"}
"""The data of the one error for every state that does not verify."""


class Binding(NamedTuple):
    """The request that a state belongs to, taken from the verified request at hand and never transmitted.

    Not bound: the JSON-RPC id (it must differ in a retry), `_meta`, the answers, and the access token
    itself: a refreshed token of the same user goes on.
    """

    audience: str
    principal: Principal
    method: str
    target: str
    arguments: bytes
    """Canonical JSON of the arguments (strict_json.canonical)."""

    def fields(self) -> tuple[bytes, ...]:
        digest = hashlib.sha256(self.arguments).digest()
        return (
            self.audience.encode(),
            *self.principal.fields(),
            self.method.encode(),
            self.target.encode(),
            digest,
        )


class RequestState(NamedTuple):
    """The verified content of a requestState, or of the next one."""

    flow_id: bytes
    first_issued_at: int
    rounds: int
    questions: Mapping[str, str] = MappingProxyType({})
    answers: Mapping[str, JsonObject] = MappingProxyType({})
    state: Any = None
    waits: int = 0
    """Rounds that only waited for another instance, one after the other."""


def begin(*, now: int, entropy: bytes) -> RequestState:
    """The state before the first round. `entropy` is 16 random bytes: the flow id."""
    return RequestState(flow_id=entropy, first_issued_at=now, rounds=0)


class RequestStateCodec:
    """Seals the state that goes out and opens the state that comes back.

    Raises ConfigurationError for a limit that would limit nothing.
    """

    __slots__ = ("_lifetime", "_seal", "max_age", "max_rounds")

    def __init__(
        self,
        keyring: SealingKeys,
        *,
        lifetime: int = LIFETIME,
        max_age: int = MAX_AGE,
        max_rounds: int = MAX_ROUNDS,
    ) -> None:
        limits = {"lifetime": lifetime, "max_age": max_age, "max_rounds": max_rounds}
        # Infinity and NaN are numbers, and would make states that never expire.
        problems = [
            f"The {name} of a requestState is {value!r}, and must be a whole number above 0: "
            "give it in seconds or rounds."
            for name, value in limits.items()
            if type(value) is not int or value < 1
        ]
        if problems:
            raise ConfigurationError(problems)
        self._seal = Seal(keyring, Purpose.REQUEST_STATE)
        self._lifetime = lifetime
        self.max_age = max_age
        self.max_rounds = max_rounds

    def seal(self, state: RequestState, binding: Binding, *, now: int) -> str:
        """The `requestState` for one more round. Raises ValueError when it would be too large."""
        return self._seal.seal(self.claims(state, now=now), bound_to=binding.fields())

    def open(self, token: object, binding: Binding, *, now: int) -> RequestState:
        """Verify a `requestState` for the request at hand. Raises RequestStateRefused."""
        try:
            claims = self._seal.open(token, bound_to=binding.fields())
        except SealRefused as error:
            raise RequestStateRefused(error.reason) from None
        return self.read(claims, now=now)

    def claims(self, state: RequestState, *, now: int) -> JsonObject:
        """What is sealed for one more round."""
        claims: JsonObject = {
            "v": 1,
            "fid": urlsafe_b64encode(state.flow_id).rstrip(b"=").decode(),
            "fst": state.first_issued_at,
            "iat": now,
            "exp": now + self._lifetime,
            "n": state.rounds + 1,
            "q": dict(state.questions),
        }
        if state.answers:
            claims["a"] = dict(state.answers)
        if state.state is not None:
            claims["s"] = state.state
        if state.waits:
            claims["w"] = state.waits
        return claims

    def read(self, claims: JsonObject, *, now: int) -> RequestState:
        """The state in claims that a seal vouches for, if it is valid now. Raises RequestStateRefused."""
        # Another version may have other claims: nothing else is looked at.
        if claims.get("v") != 1:
            raise RequestStateRefused("version")
        issued_at, expires_at = _integer(claims, "iat"), _integer(claims, "exp")
        state = RequestState(
            flow_id=_flow_id(claims.get("fid")),
            first_issued_at=_integer(claims, "fst"),
            rounds=_integer(claims, "n"),
            questions=_by_key(claims, "q"),
            answers=_by_key(claims, "a"),
            state=claims.get("s"),
            waits=_integer(claims, "w") if "w" in claims else 0,
        )
        # Accept-conditions are stated positively, so that a clock of NaN refuses.
        if not (issued_at - CLOCK_SKEW <= now < expires_at):
            raise RequestStateRefused("expired" if now >= expires_at else "future")
        if not (now - state.first_issued_at <= self.max_age):
            raise RequestStateRefused("age")
        if not (1 <= state.rounds <= self.max_rounds and 0 <= state.waits <= state.rounds):
            raise RequestStateRefused("rounds")
        return state


def _integer(claims: JsonObject, name: str) -> int:
    value = claims.get(name)
    # A bool is an int in Python.
    if type(value) is not int:
        raise RequestStateRefused("claims")
    return value


def _by_key(claims: JsonObject, name: str) -> JsonObject:
    value = claims.get(name, {})
    if not isinstance(value, dict):
        raise RequestStateRefused("claims")
    return value


def _flow_id(text: object) -> bytes:
    try:
        flow_id = urlsafe_b64decode(f"{text}==") if isinstance(text, str) else b""
    except ValueError:
        raise RequestStateRefused("claims") from None
    if len(flow_id) != 16:
        raise RequestStateRefused("claims")
    return flow_id


def digest(input_request: JsonObject) -> str:
    """What pins an answer to the question that was shown: SHA-256 of its canonical JSON, base64url."""
    return digest_of(strict_json.canonical(input_request))


def digest_of(canonical: bytes) -> str:
    """`digest` of an input request whose canonical JSON is at hand."""
    return urlsafe_b64encode(hashlib.sha256(canonical).digest()).rstrip(b"=").decode()


def invalid_request_state(error: RequestStateRefused) -> JSONRPCError:
    """The one answer to every requestState that does not verify. The reason stays in the log.

    A client that gets it calls again without the state, and the flow begins anew.
    """
    return JSONRPCError(
        ErrorCode.INVALID_PARAMS,
        "Invalid or expired requestState",
        dict(REFUSED),
        reason=f"requestState refused: {error.reason}",
    )
