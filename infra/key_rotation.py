"""What may be done with a key ring, and when. No I/O: a ring goes in, the next one comes out.

    create   a pepper, and a first key that seals
    add      one more key that opens: nothing is sealed with it before every instance can open it
    promote  it seals, and the one before it opens on; 12 minutes after `add`
    retire   it opens no more; 72 minutes after it was demoted, when nothing that it sealed is valid
    restore  a retired key opens again
    drop     a retired key is gone for good

The waits are for instances that still have the list of before (app/adapters/stale_if_error.py), and for the oldest
flow (app/protocol/request_state.py). A compromised key may skip them, and what was sealed with it is lost.
"""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Final

from app.adapters.stale_if_error import MAX_FRESH
from app.adapters.wrapped_keyring import RingKey, State, WrappedKey, WrappedKeyring
from app.protocol.request_state import MAX_AGE

CLOCK_SKEW: Final = 60
READ_BY_ALL: Final = int(MAX_FRESH) + CLOCK_SKEW
"""Seconds after which every instance has read a change of the ring."""
OUTLIVED: Final = READ_BY_ALL + MAX_AGE
"""Seconds after which nothing is valid that a key sealed before it was demoted."""
PEPPER_KID: Final = 1
FIRST_KID: Final = 2


class NotSafe(Exception):
    """This step would lose something, or is not one. The message says when it can be taken, or what to do instead."""


def create(app: str, kms_key: str, *, pepper: bytes, key: bytes, now: int) -> WrappedKeyring:
    """A ring of one key, which seals at once: nobody has another one. `pepper` and `key` are ciphertexts."""
    first = RingKey(WrappedKey(FIRST_KID, key), State.MINT, now)
    return WrappedKeyring(app, kms_key, last_kid=FIRST_KID, pepper=WrappedKey(PEPPER_KID, pepper), keys=(first,))


def add(ring: WrappedKeyring, ciphertext: bytes, *, now: int) -> WrappedKeyring:
    """The ring with one more key, of the id `last_kid` + 1. It opens, and does not seal yet."""
    key = RingKey(WrappedKey(ring.last_kid + 1, ciphertext), State.VERIFY, now)
    return replace(ring, keys=(*ring.keys, key), last_kid=key.kid)


def promote(ring: WrappedKeyring, kid: int, *, now: int, compromised: bool = False) -> WrappedKeyring:
    """The ring with this key sealing. `compromised`: the one that seals now is, and cannot wait."""
    key = _key(ring, kid)
    if key.state is State.MINT:
        raise NotSafe(f"Key {kid} seals already.")
    if key.state is State.RETIRED:
        raise NotSafe(f"Key {kid} is retired, and nobody could open what it seals: restore {kid} first.")
    if not compromised and now < promotable_at(key):
        raise NotSafe(
            f"Key {kid} opens since {utc(key.since)}, and not every instance has read of it: promote it at "
            f"{utc(promotable_at(key))}, in {promotable_at(key) - now} s."
        )
    return _with(ring, {ring.mint.kid: State.VERIFY, kid: State.MINT}, now)


def retire(ring: WrappedKeyring, kid: int, *, now: int, compromised: bool = False) -> WrappedKeyring:
    """The ring without this key, which stays in it to be restored. `compromised`: it must not open anything more."""
    key = _key(ring, kid)
    if key.state is State.MINT:
        raise NotSafe(f"Key {kid} seals, and nothing could be opened without it: add and promote another one first.")
    if key.state is State.RETIRED:
        raise NotSafe(f"Key {kid} is retired already.")
    if not compromised and now < retirable_at(key):
        raise NotSafe(
            f"Key {kid} opens since {utc(key.since)} without sealing, and what it sealed may be valid: retire it at "
            f"{utc(retirable_at(key))}, in {retirable_at(key) - now} s."
        )
    return _with(ring, {kid: State.RETIRED}, now)


def restore(ring: WrappedKeyring, kid: int, *, now: int) -> WrappedKeyring:
    """The ring with a retired key opening again."""
    key = _key(ring, kid)
    if key.state is not State.RETIRED:
        raise NotSafe(f"Key {kid} is not retired, it opens.")
    return _with(ring, {kid: State.VERIFY}, now)


def drop(ring: WrappedKeyring, kid: int) -> WrappedKeyring:
    """The ring without a retired key, for good."""
    key = _key(ring, kid)
    if key.state is not State.RETIRED:
        raise NotSafe(f"Key {kid} opens: retire {kid} first, and see that nobody misses it.")
    return replace(ring, keys=tuple(each for each in ring.keys if each is not key))


def promotable_at(key: RingKey) -> int:
    """When every instance can open what this key would seal."""
    return key.since + READ_BY_ALL


def retirable_at(key: RingKey) -> int:
    """When nothing is valid any more that this key sealed."""
    return key.since + OUTLIVED


def utc(seconds: int) -> str:
    """A moment, for people."""
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M:%S} UTC"


def _key(ring: WrappedKeyring, kid: int) -> RingKey:
    if kid == ring.pepper.kid:
        raise NotSafe(f"Key {kid} is the pepper. It names what is stored, for as long as there is a store: leave it.")
    key = ring.get(kid)
    if key is None:
        raise NotSafe(f"There is no key {kid}. The ring has {', '.join(str(each.kid) for each in ring.keys)}.")
    return key


def _with(ring: WrappedKeyring, states: Mapping[int, State], now: int) -> WrappedKeyring:
    return replace(
        ring,
        keys=tuple(replace(key, state=states[key.kid], since=now) if key.kid in states else key for key in ring.keys),
    )
