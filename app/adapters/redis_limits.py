"""ports.RateLimits on Redis: one sorted set of times for each name, and one script that counts."""

from app.adapters import redis_keys
from app.adapters.redis_connection import Redis, Script
from app.errors import Unavailable

_TAKE = Script("""
-- KEYS[1] times   ARGV[1] nonce   ARGV[2] now   ARGV[3] start of the window   ARGV[4] seconds   ARGV[5] count
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', ARGV[3])
-- Sent again after a lost reply: it was counted then.
if redis.call('ZSCORE', KEYS[1], ARGV[1]) then return {'counted'} end
if redis.call('ZCARD', KEYS[1]) >= tonumber(ARGV[5]) then
    return {'full', redis.call('ZRANGE', KEYS[1], 0, 0, 'WITHSCORES')[2]}
end
redis.call('ZADD', KEYS[1], ARGV[2], ARGV[1])
redis.call('EXPIRE', KEYS[1], ARGV[4])
return {'counted'}
""")


class RedisRateLimits:
    """Implements ports.RateLimits."""

    def __init__(self, redis: Redis) -> None:
        self._redis = redis

    def take(self, name: str, nonce: str, *, count: int, seconds: int, now: float) -> float | None:
        arguments: list[str | int] = [nonce, repr(now), repr(now - seconds), seconds, count]
        match self._redis.run(_TAKE, [redis_keys.rate(name)], arguments):
            case ["counted"]:
                return None
            case ["full", oldest]:
                return float(oldest) + seconds
            case _:
                raise Unavailable("redis: unknown verdict", retry_after=1)
