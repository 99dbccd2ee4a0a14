"""ports.ApprovalStore on Redis: one hash for each user, with a record or a withdrawal under each name."""

import re
from collections.abc import Mapping

from app.adapters import redis_keys
from app.adapters.redis_connection import Redis, Script
from app.errors import Unavailable

_RECORD = re.compile(r"[0-9]+:-:(.*)\Z", re.ASCII | re.DOTALL)

_KEEP = Script("""
-- KEYS[1] approvals   ARGV[1] name   ARGV[2] sealed   ARGV[3] asked at   ARGV[4] expires at
-- ARGV[5] limit   ARGV[6] now
local now = tonumber(ARGV[6])
local last = tonumber(ARGV[4])
local flat = redis.call('HGETALL', KEYS[1])
local others = 0
for i = 1, #flat, 2 do
    local expires, withdrawn = string.match(flat[i + 1], '^(%d+):([%d-]+):')
    if not expires or not (now < tonumber(expires)) then
        redis.call('HDEL', KEYS[1], flat[i])
    elseif flat[i] == ARGV[1] then
        if withdrawn ~= '-' and tonumber(ARGV[3]) <= tonumber(withdrawn) then return 'refused' end
    else
        if withdrawn == '-' then others = others + 1 end
        last = math.max(last, tonumber(expires))
    end
end
if others >= tonumber(ARGV[5]) then return 'refused' end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[4] .. ':-:' .. ARGV[2])
redis.call('EXPIRE', KEYS[1], math.ceil(last - now))
return 'kept'
""")

_LOOK = Script("""
-- KEYS[1] approvals   ARGV[1] name
return redis.call('HGET', KEYS[1], ARGV[1])
""")

_ENTRIES = Script("""
-- KEYS[1] approvals
return redis.call('HGETALL', KEYS[1])
""")

_WITHDRAW = Script("""
-- KEYS[1] approvals   ARGV[1] name   ARGV[2] at   ARGV[3] until
local old = redis.call('HGET', KEYS[1], ARGV[1])
if not old then return 'nothing' end
local withdrawn = string.match(old, '^%d+:(%d+):')
-- Sent again after a lost reply: it was carried out then.
if withdrawn then return withdrawn == ARGV[2] and 'withdrawn' or 'nothing' end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[3] .. ':' .. ARGV[2] .. ':')
local seconds = tonumber(ARGV[3]) - tonumber(ARGV[2])
if redis.call('TTL', KEYS[1]) < seconds then redis.call('EXPIRE', KEYS[1], seconds) end
return 'withdrawn'
""")


class RedisApprovalStore:
    """Implements ports.ApprovalStore."""

    def __init__(self, redis: Redis) -> None:
        self._redis = redis

    def keep(
        self, user: str, name: str, sealed: str, *, asked_at: int, expires_at: int, limit: int, now: float
    ) -> bool:
        arguments: list[str | int] = [name, sealed, asked_at, expires_at, limit, repr(now)]
        return _verdict(self._redis.run(_KEEP, [redis_keys.approvals(user)], arguments), yes="kept", no="refused")

    def look(self, user: str, name: str) -> str | None:
        return _sealed(self._redis.run(_LOOK, [redis_keys.approvals(user)], [name]))

    def entries(self, user: str) -> Mapping[str, str]:
        flat = self._redis.run(_ENTRIES, [redis_keys.approvals(user)])
        found = {name: _sealed(text) for name, text in zip(flat[::2], flat[1::2], strict=True)}
        return {name: sealed for name, sealed in found.items() if sealed is not None}

    def withdraw(self, user: str, name: str, *, at: int, until: int) -> bool:
        answer = self._redis.run(_WITHDRAW, [redis_keys.approvals(user)], [name, at, until])
        return _verdict(answer, yes="withdrawn", no="nothing")


def _sealed(text: str | None) -> str | None:
    found = _RECORD.match(text or "")
    return found[1] if found else None


def _verdict(answer: object, *, yes: str, no: str) -> bool:
    if answer not in (yes, no):
        raise Unavailable("redis: unknown verdict", retry_after=1)
    return answer == yes
