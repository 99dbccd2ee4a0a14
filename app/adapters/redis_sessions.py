"""oauth.sessions.SessionStore and oauth.sign_in.LoginStore on Redis. The keys are listed in redis_keys."""

from app.adapters.redis_connection import Redis, Script

_PUT = Script("""
-- KEYS[1] session or login   ARGV[1] sealed text   ARGV[2] seconds to live
redis.call('SET', KEYS[1], ARGV[1], 'EX', ARGV[2])
return 'put'
""")

_GET = Script("""
-- KEYS[1] session
return redis.call('GET', KEYS[1])
""")

_DELETE = Script("""
-- KEYS[1] session
return redis.call('DEL', KEYS[1])
""")


class RedisSessions:
    """Implements oauth.sessions.SessionStore."""

    def __init__(self, redis: Redis) -> None:
        self._redis = redis

    def put(self, key: str, sealed: str, *, lifetime: int) -> None:
        """Keep a text for `lifetime` seconds, in place of any that was there."""
        self._redis.run(_PUT, [_session(key)], [sealed, lifetime])

    def get(self, key: str) -> str | None:
        """The text, as often as one asks, or None."""
        found = self._redis.run(_GET, [_session(key)])
        return None if found is None else str(found)

    def delete(self, key: str) -> None:
        """Forget the text, if there is one."""
        self._redis.run(_DELETE, [_session(key)])


class RedisLogins:
    """Implements oauth.sign_in.LoginStore."""

    def __init__(self, redis: Redis) -> None:
        self._redis = redis

    def put(self, key: str, sealed: str, *, lifetime: int) -> None:
        """Keep a text for `lifetime` seconds."""
        self._redis.run(_PUT, [_login(key)], [sealed, lifetime])

    def take(self, key: str) -> str | None:
        """Read and delete at once: of many callers one gets the text, the others None."""
        # Sent once: a second GETDEL after a lost reply would say that there never was a login.
        found = self._redis.call("GETDEL", _login(key))
        return None if found is None else str(found)


def _session(key: str) -> str:
    return f"mcp:sess:{{{key}}}"


def _login(key: str) -> str:
    return f"mcp:login:{{{key}}}"
