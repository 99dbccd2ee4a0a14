"""ports.VaultStore on Redis: what one user has, in one slot, so that one script can see all of it."""

import re
from collections.abc import Mapping

from app.adapters import redis_keys
from app.adapters.redis_connection import Redis, Script
from app.errors import Unavailable
from app.ports import FlowPointer, LockHeld, VaultEntry

_ENTRY = re.compile(r"([A-Za-z0-9_-]+):(.*)\Z", re.ASCII | re.DOTALL)
_POINTER = re.compile(r"([0-9]+):[01]:([^:]*):(.*)\Z", re.ASCII)

_LOOK = Script("""
-- KEYS[1] vault   KEYS[2] pointers   ARGV[1] entry   ARGV[2] slot
return {redis.call('HGET', KEYS[1], ARGV[1]), redis.call('HGET', KEYS[2], ARGV[2])}
""")

_ENTRIES = Script("""
-- KEYS[1] vault
return redis.call('HGETALL', KEYS[1])
""")

_PUT = Script("""
-- KEYS[1] vault   ARGV[1] entry   ARGV[2] version to replace, '' for none   ARGV[3] new version   ARGV[4] sealed
local old = redis.call('HGET', KEYS[1], ARGV[1])
local version = old and (string.match(old, '^([%w_-]+):') or 'damaged') or ''
-- Sent again after a lost reply: it was carried out then.
if version == ARGV[3] then return 'written' end
if version ~= ARGV[2] then return 'changed' end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[3] .. ':' .. ARGV[4])
return 'written'
""")

_DELETE = Script("""
-- KEYS[1] vault   ARGV[1] entry   ARGV[2] version
local old = redis.call('HGET', KEYS[1], ARGV[1])
if not old or (string.match(old, '^([%w_-]+):') or 'damaged') ~= ARGV[2] then return 'changed' end
redis.call('HDEL', KEYS[1], ARGV[1])
return 'deleted'
""")

_LOCK = Script("""
-- KEYS[1] lock   KEYS[2] vault   ARGV[1] owner   ARGV[2] seconds   ARGV[3] entry
local holder = redis.call('GET', KEYS[1])
if holder and holder ~= ARGV[1] then return {'held'} end
redis.call('SET', KEYS[1], ARGV[1], 'EX', ARGV[2])
return {'taken', redis.call('HGET', KEYS[2], ARGV[3])}
""")

_UNLOCK = Script("""
-- KEYS[1] lock   ARGV[1] owner
if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('DEL', KEYS[1]) end
return 'unlocked'
""")

_POINT = Script("""
-- KEYS[1] pointers   ARGV[1] slot   ARGV[2] flow id   ARGV[3] expires at   ARGV[4] sealed handle
-- ARGV[5] flow id to replace, '' for none   ARGV[6] limit   ARGV[7] now
local now = tonumber(ARGV[7])
local flat = redis.call('HGETALL', KEYS[1])
local others = 0
for i = 1, #flat, 2 do
    local expires, open, flow = string.match(flat[i + 1], '^(%d+):(%d):([^:]*):')
    if not expires or not (now < tonumber(expires)) then
        redis.call('HDEL', KEYS[1], flat[i])
    elseif flat[i] ~= ARGV[1] then
        if open == '1' then others = others + 1 end
    elseif flow ~= ARGV[5] then
        return {'stands', flat[i + 1]}
    end
end
if others >= tonumber(ARGV[6]) then return {'full'} end
local pointer = ARGV[3] .. ':1:' .. ARGV[2] .. ':' .. ARGV[4]
redis.call('HSET', KEYS[1], ARGV[1], pointer)
-- Every pointer lives equally long, so the newest one is the last to end.
redis.call('EXPIRE', KEYS[1], math.ceil(tonumber(ARGV[3]) - now))
return {'stands', pointer}
""")

_SETTLE = Script("""
-- KEYS[1] pointers   ARGV[1] slot   ARGV[2] flow id
local pointer = redis.call('HGET', KEYS[1], ARGV[1])
local expires, flow, handle = string.match(pointer or '', '^(%d+):%d:([^:]*):(.*)$')
if flow ~= ARGV[2] then return 'changed' end
redis.call('HSET', KEYS[1], ARGV[1], expires .. ':0:' .. flow .. ':' .. handle)
return 'settled'
""")

_UNPOINT = Script("""
-- KEYS[1] pointers   ARGV[1] slot   ARGV[2] flow id
local pointer = redis.call('HGET', KEYS[1], ARGV[1])
if string.match(pointer or '', '^%d+:%d:([^:]*):') ~= ARGV[2] then return 'changed' end
redis.call('HDEL', KEYS[1], ARGV[1])
return 'emptied'
""")


class RedisVaultStore:
    """Implements ports.VaultStore."""

    def __init__(self, redis: Redis) -> None:
        self._redis = redis

    def look(self, user: str, entry: str, slot: str) -> tuple[VaultEntry | None, FlowPointer | None]:
        record, pointer = self._redis.run(_LOOK, [redis_keys.vault(user), redis_keys.pointers(user)], [entry, slot])
        return _entry(record), _pointer(pointer)

    def entries(self, user: str) -> Mapping[str, VaultEntry]:
        flat = self._redis.run(_ENTRIES, [redis_keys.vault(user)])
        found = {entry: _entry(text) for entry, text in zip(flat[::2], flat[1::2], strict=True)}
        return {entry: each for entry, each in found.items() if each is not None}

    def put(self, user: str, entry: str, new: VaultEntry, *, replaces: str | None) -> bool:
        arguments = [entry, replaces or "", new.version, new.sealed]
        return _verdict(self._redis.run(_PUT, [redis_keys.vault(user)], arguments), yes="written")

    def delete(self, user: str, entry: str, *, version: str) -> bool:
        return _verdict(self._redis.run(_DELETE, [redis_keys.vault(user)], [entry, version]), yes="deleted")

    def lock(self, user: str, entry: str, owner: str, *, seconds: int) -> VaultEntry | LockHeld | None:
        keys = [redis_keys.lock(user, entry), redis_keys.vault(user)]
        match self._redis.run(_LOCK, keys, [owner, seconds, entry]):
            case ["taken", record]:
                return _entry(record)
            case ["held"]:
                return LockHeld()
            case _:
                raise _unknown_verdict()

    def unlock(self, user: str, entry: str, owner: str) -> None:
        self._redis.run(_UNLOCK, [redis_keys.lock(user, entry)], [owner])

    def point(
        self, user: str, slot: str, pointer: FlowPointer, *, replaces: str | None, limit: int, now: float
    ) -> FlowPointer | None:
        arguments: list[str | int] = [
            slot,
            pointer.flow_id,
            pointer.expires_at,
            pointer.sealed_handle,
            replaces or "",
            limit,
            repr(now),
        ]
        match self._redis.run(_POINT, [redis_keys.pointers(user)], arguments):
            case ["stands", standing]:
                return _pointer(standing)
            case ["full"]:
                return None
            case _:
                raise _unknown_verdict()

    def settle(self, user: str, slot: str, flow_id: str) -> None:
        self._redis.run(_SETTLE, [redis_keys.pointers(user)], [slot, flow_id])

    def unpoint(self, user: str, slot: str, flow_id: str) -> None:
        self._redis.run(_UNPOINT, [redis_keys.pointers(user)], [slot, flow_id])


def _entry(text: str | None) -> VaultEntry | None:
    if text is None:
        return None
    found = _ENTRY.match(text)
    # A value that nobody of ours wrote can be replaced and deleted like any other.
    return VaultEntry(found[1], found[2]) if found else VaultEntry("damaged", "")


def _pointer(text: str | None) -> FlowPointer | None:
    found = _POINTER.match(text or "")
    return FlowPointer(found[2], found[3], int(found[1])) if found else None


def _verdict(answer: object, *, yes: str) -> bool:
    if answer not in (yes, "changed"):
        raise _unknown_verdict()
    return answer == yes


def _unknown_verdict() -> Unavailable:
    return Unavailable("redis: unknown verdict", retry_after=1)
