"""What names a flow, from outside and inside: handles, states, and the names under which a store keeps things.

A handle is unguessable and no authenticator: it travels through the MCP client, the model and the user's
screen. The store knows its SHA-256 only, so that a dump of it opens no page.
"""

import hashlib
import re
import secrets
from base64 import urlsafe_b64encode
from typing import Final

from app.principal import User
from app.sealing import BlindIndex, Purpose, SealingKeys

_RANDOM: Final = r"[A-Za-z0-9_-]{43}"
_HANDLE = re.compile(_RANDOM + r"\Z", re.ASCII)
_STATE = re.compile(rf"({_RANDOM})\.({_RANDOM})\Z", re.ASCII)


def draw() -> str:
    """A fresh handle, nonce or verifier: 256 bits in 43 characters. Drawn per use, so that no snapshot holds one."""
    return secrets.token_urlsafe(32)


def is_handle(text: str) -> bool:
    """Whether a text has the shape of a handle: 43 characters of base64url."""
    return _HANDLE.match(text) is not None


def flow_id(handle: str) -> str:
    """The name of a flow in the store, which does not lead back to the handle."""
    return digest("flow", handle)


def digest(label: str, secret: str) -> str:
    """SHA-256 of a random secret, base64url: enough to recognise it, nothing to use."""
    return urlsafe_b64encode(hashlib.sha256(f"{label}{secret}".encode()).digest()).rstrip(b"=").decode()


def state(flow: str, nonce: str) -> str:
    """The `state` of an authorization request: which flow, and that it is ours (RFC 6749 section 10.12)."""
    return f"{flow}.{nonce}"


def flow_of_state(text: str) -> str | None:
    """The flow id that a returned `state` names, or None when it was never one of ours."""
    found = _STATE.match(text)
    return found[1] if found else None


class Names:
    """Blind indexes of people and of what they do with which client."""

    __slots__ = ("_index",)

    def __init__(self, keyring: SealingKeys) -> None:
        self._index = BlindIndex(keyring, Purpose.VAULT)

    def user(self, user: User) -> str:
        return self._index.of("user", user.issuer, user.subject)

    def slot(self, client_id: str, entry: str) -> str:
        """One client's place for its flow to an entry, among those of one user."""
        return self._index.of("slot", client_id, entry)
