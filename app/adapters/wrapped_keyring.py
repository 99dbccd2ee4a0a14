"""A key ring whose keys are wrapped by KMS, as the JSON text that stands in a secret.

    {"app": "<stack>", "kms_key": "<ARN>", "last_kid": 2,
     "pepper": {"kid": 1, "ciphertext": "<base64>"},
     "keys": [{"kid": 2, "state": "mint", "since": 1790000000, "ciphertext": "<base64>"}, ...]}

`mint` seals and opens, `verify` opens, `retired` does neither and can still be restored. `since` is when a key came
into its state, in seconds since the epoch. The pepper stands apart: it names what is stored and seals nothing, so
that every key that seals can leave the ring one day. `last_kid` is the highest id that was ever given: none is given
twice. `app` and `kms_key` say what the keys are wrapped with, so that the next one is wrapped alike; a function
unwraps with what it is configured with.
"""

import binascii
import json
from base64 import b64decode, b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from app import strict_json


class MalformedKeyring(ValueError):
    """The text is no key ring. The message says what is wrong with it, and quotes nothing."""


class State(StrEnum):
    """What a key of the ring does."""

    MINT = "mint"
    VERIFY = "verify"
    RETIRED = "retired"


@dataclass(frozen=True, slots=True)
class WrappedKey:
    """A data key that only KMS can unwrap."""

    kid: int
    ciphertext: bytes


@dataclass(frozen=True, slots=True)
class RingKey:
    """A wrapped key and its part in the ring."""

    wrapped: WrappedKey
    state: State
    since: int

    @property
    def kid(self) -> int:
        return self.wrapped.kid


@dataclass(frozen=True, slots=True)
class WrappedKeyring:
    """The whole ring. Raises MalformedKeyring for one that could not work."""

    app: str
    kms_key: str
    last_kid: int
    pepper: WrappedKey
    keys: tuple[RingKey, ...]

    def __post_init__(self) -> None:
        kids = [self.pepper.kid, *(key.kid for key in self.keys)]
        if len(set(kids)) < len(kids):
            raise MalformedKeyring("two keys have one kid")
        if not (min(kids) > 0 and max(kids) <= self.last_kid < 2**32):
            raise MalformedKeyring("every kid must be from 1 to last_kid, which must be below 4294967296")
        if sum(key.state is State.MINT for key in self.keys) != 1:
            raise MalformedKeyring("exactly one key must have the state mint")

    @property
    def mint(self) -> RingKey:
        """The key that seals."""
        return next(key for key in self.keys if key.state is State.MINT)

    def get(self, kid: int) -> RingKey | None:
        """The key with this id. The pepper is none of them."""
        return next((key for key in self.keys if key.kid == kid), None)

    def dump(self) -> str:
        """The text to store. `parse` gives the same ring back."""
        keys = [
            {**_dumped(key.wrapped), "state": key.state.value, "since": key.since}
            for key in sorted(self.keys, key=lambda key: key.kid)
        ]
        document = {"app": self.app, "kms_key": self.kms_key, "last_kid": self.last_kid}
        return json.dumps({**document, "pepper": _dumped(self.pepper), "keys": keys}, indent=1)


def parse(text: str) -> WrappedKeyring:
    """The ring of a secret. Raises MalformedKeyring."""
    try:
        document = strict_json.parse(text.encode("utf-8", "surrogatepass"))
    except strict_json.NotStrictJson as error:
        raise MalformedKeyring(f"it is not JSON ({error})") from None
    keys = _member(document, "keys", list)
    return WrappedKeyring(
        app=_member(document, "app", str),
        kms_key=_member(document, "kms_key", str),
        last_kid=_member(document, "last_kid", int),
        pepper=_wrapped(_member(document, "pepper", dict)),
        keys=tuple(RingKey(_wrapped(key), _state(key), _member(key, "since", int)) for key in keys),
    )


def encryption_context(app: str, kid: int) -> Mapping[str, str]:
    """What a key is wrapped for. KMS unwraps it for nothing else, CloudTrail shows it, and policies can require it."""
    return {"app": app, "purpose": "sealing-key", "kid": str(kid)}


def _dumped(key: WrappedKey) -> dict[str, Any]:
    return {"kid": key.kid, "ciphertext": b64encode(key.ciphertext).decode()}


def _member(document: object, name: str, kind: type) -> Any:
    value = document.get(name) if isinstance(document, dict) else None
    # A bool is an int in Python.
    if type(value) is not kind:
        raise MalformedKeyring(f"the member {name} is missing, or of the wrong type")
    return value


def _wrapped(document: object) -> WrappedKey:
    kid = _member(document, "kid", int)
    try:
        return WrappedKey(kid, b64decode(_member(document, "ciphertext", str), validate=True))
    except (binascii.Error, ValueError):
        raise MalformedKeyring(f"the ciphertext of key {kid} is not Base64") from None


def _state(document: object) -> State:
    try:
        return State(_member(document, "state", str))
    except ValueError:
        raise MalformedKeyring(f"a key has no state of {', '.join(State)}") from None
