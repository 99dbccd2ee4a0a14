"""ports.OnceStore on Redis: one hash for each mark. Every decision about it is made by its reader."""

from collections.abc import Sequence

from app.adapters import redis_keys
from app.adapters.redis_connection import Redis, Script
from app.errors import Unavailable
from app.ports import Mark

_OPEN = Script("""
-- KEYS[1] mark   ARGV[1] seconds to live
if redis.call('EXISTS', KEYS[1]) == 0 then
    redis.call('HSET', KEYS[1], 'open', '1')
    redis.call('EXPIRE', KEYS[1], ARGV[1])
end
return 'open'
""")

_CLAIM = Script("""
-- KEYS[1] mark   ARGV[1] request   ARGV[2] owner   ARGV[3] lease until   ARGV[4] seconds to live
-- ARGV[5] 'opened' for a place that must be there
local standing = redis.call('HGETALL', KEYS[1])
if #standing == 0 and ARGV[5] == 'opened' then return {} end
if #standing > 0 and not (#standing == 2 and standing[1] == 'open') then return standing end
redis.call('HSET', KEYS[1], 'request', ARGV[1], 'owner', ARGV[2], 'lease', ARGV[3])
redis.call('EXPIRE', KEYS[1], ARGV[4])
return redis.call('HGETALL', KEYS[1])
""")

_RECORD = Script("""
-- KEYS[1] mark   ARGV as for a claim, then ARGV[5] sealed result
local owner = redis.call('HGET', KEYS[1], 'owner')
if owner and owner ~= ARGV[2] then return 'other' end
if redis.call('HGET', KEYS[1], 'result') then return 'recorded' end
redis.call('HSET', KEYS[1], 'request', ARGV[1], 'owner', ARGV[2], 'lease', ARGV[3], 'result', ARGV[5])
-- A mark that is there keeps its lifetime: this runner's clock may have jumped since.
if not owner then redis.call('EXPIRE', KEYS[1], ARGV[4]) end
return 'recorded'
""")

_RELEASE = Script("""
-- KEYS[1] mark   ARGV[1] owner
if redis.call('HGET', KEYS[1], 'owner') ~= ARGV[1] or redis.call('HGET', KEYS[1], 'result') then return 'stands' end
-- What is left is the place, if it was opened.
redis.call('HDEL', KEYS[1], 'request', 'owner', 'lease')
return 'released'
""")


class RedisOnceStore:
    """Implements ports.OnceStore."""

    def __init__(self, redis: Redis) -> None:
        self._redis = redis

    def open(self, name: str, *, lifetime: int) -> None:
        self._redis.run(_OPEN, [redis_keys.once(name)], [lifetime])

    def claim(self, name: str, mark: Mark, *, lifetime: int) -> Mark:
        return _mark(self._claim(name, mark, lifetime, "new"))

    def take(self, name: str, mark: Mark, *, lifetime: int) -> Mark | None:
        standing = self._claim(name, mark, lifetime, "opened")
        return _mark(standing) if standing else None

    def _claim(self, name: str, mark: Mark, lifetime: int, place: str) -> Sequence[str]:
        arguments: list[str | int] = [mark.request, mark.owner, mark.lease_until, lifetime, place]
        standing: Sequence[str] = self._redis.run(_CLAIM, [redis_keys.once(name)], arguments)
        return standing

    def record(self, name: str, mark: Mark, *, lifetime: int) -> bool:
        arguments: list[str | int] = [mark.request, mark.owner, mark.lease_until, lifetime, mark.sealed_result or ""]
        match self._redis.run(_RECORD, [redis_keys.once(name)], arguments):
            case "recorded":
                return True
            case "other":
                return False
            case _:
                raise Unavailable("redis: unknown verdict", retry_after=1)

    def release(self, name: str, owner: str) -> None:
        self._redis.run(_RELEASE, [redis_keys.once(name)], [owner])


def _mark(flat: Sequence[str]) -> Mark:
    fields = dict(zip(flat[::2], flat[1::2], strict=True))
    lease = fields.get("lease", "")
    # A hash that nobody of ours wrote is no reason to run anything: it fits no request.
    return Mark(
        request=fields.get("request", ""),
        owner=fields.get("owner", ""),
        lease_until=int(lease) if lease.isdecimal() else 0,
        sealed_result=fields.get("result"),
    )
