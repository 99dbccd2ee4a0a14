"""Whether the store is the kind of Redis that connections can be entrusted to, and lets us do what we do."""

import secrets
import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from app.adapters import redis_keys
from app.adapters.redis_approvals import RedisApprovalStore
from app.adapters.redis_connection import Redis
from app.adapters.redis_flows import RedisFlowStore
from app.adapters.redis_limits import RedisRateLimits
from app.adapters.redis_once import RedisOnceStore
from app.adapters.redis_sessions import RedisLogins, RedisSessions
from app.adapters.redis_vault import RedisVaultStore
from app.errors import Unavailable
from app.oauth.flow import TABLE, Event
from app.ports import FlowPointer, Mark, Transition, VaultEntry
from app.redis_settings import RedisSettings
from infra.doctor.finding import Finding, fail, ok, warn

OLDEST: Final = (6, 2)
SLOW_MS: Final = 20
ACL_RULE: Final = (
    "~mcp:* -@all +@read +@write +@scripting +@connection -@dangerous +info "
    "+cluster|slots +cluster|shards +cluster|nodes"
)
"""What an ACL user needs: no more than our keys, our commands and the topology of a cluster."""
_ROUND_TRIPS: Final = 20


def check_store(configured: RedisSettings, open_redis: Callable[[RedisSettings], Redis]) -> Iterator[Finding]:
    """Every property of the store that something here relies on. Writes a few keys, and deletes them."""
    yield _check_transport(configured)
    redis = open_redis(configured)
    try:
        yield from _check_server(redis, configured, open_redis)
    finally:
        redis.close()


def _check_server(
    redis: Redis, configured: RedisSettings, open_redis: Callable[[RedisSettings], Redis]
) -> Iterator[Finding]:
    try:
        milliseconds = _round_trip(redis)
    except Unavailable as error:
        yield _unreachable(error, configured, open_redis)
        return
    speed = f"A round trip takes {milliseconds:.1f} ms from here"
    if milliseconds > SLOW_MS:
        yield warn("store latency", f"{speed}: put the functions and the store into one region.")
    else:
        yield ok("store latency", f"{speed}.")
    try:
        yield from check_info(_info(redis), configured)
    except Unavailable as error:
        yield warn(
            "store properties",
            f"INFO is refused ({error.reason}): allow +info, or check by hand that the version is 6.2 or newer and "
            "that the eviction policy is noeviction.",
        )
    yield _check_permissions(redis)


def _round_trip(redis: Redis) -> float:
    def once() -> float:
        started = time.perf_counter()
        redis.call("PING")
        return (time.perf_counter() - started) * 1000

    once()
    return statistics.median(once() for _ in range(_ROUND_TRIPS))


def _unreachable(
    error: Unavailable, configured: RedisSettings, open_redis: Callable[[RedisSettings], Redis]
) -> Finding:
    reason, kinds = error.reason, _kinds(error)
    if configured.cluster and _answers_as_one_server(configured, open_redis):
        return fail("store cluster mode", "The server is not in cluster mode: leave MCP_REDIS_CLUSTER out.")
    if {"AuthenticationError", "NoPermissionError"} & kinds:
        remedy = "correct user and password in MCP_REDIS_URL, or the IAM user, its grant elasticache:Connect and clock"
        return fail("store", f"The store refuses our credentials ({reason}): {remedy}.")
    return fail(
        "store",
        f"The store cannot be reached ({reason}): check host, port and TLS in MCP_REDIS_URL, and that security groups "
        "let this machine through.",
    )


def _kinds(error: BaseException | None) -> set[str]:
    """What kinds of error led to this one: a cluster's client wraps what a node answered."""
    found = set()
    while error is not None:
        found.add(type(error).__name__)
        error = error.__cause__
    return found


def _answers_as_one_server(configured: RedisSettings, open_redis: Callable[[RedisSettings], Redis]) -> bool:
    single = open_redis(RedisSettings(configured.url, cluster=False, iam=configured.iam))
    try:
        return str(_info(single).get("cluster_enabled")) == "0"
    except Unavailable:
        return False
    finally:
        single.close()


def _info(redis: Redis) -> Mapping[str, Any]:
    found = redis.call("INFO")
    # A cluster's client answers for each node; what matters here is the same on all of them.
    nodes = [each for each in found.values() if isinstance(each, dict) and "redis_version" in each]
    info: Mapping[str, Any] = nodes[0] if nodes else found
    return info


def _check_transport(configured: RedisSettings) -> Finding:
    if configured.url.startswith("rediss://"):
        return ok("store TLS", "The connection is encrypted, and the server's certificate verified.")
    if configured.is_loopback:
        return ok("store TLS", "The connection stays on this machine.")
    return warn("store TLS", "The connection is not encrypted: use rediss:// in MCP_REDIS_URL.")


def check_info(info: Mapping[str, Any], configured: RedisSettings) -> Iterator[Finding]:
    version = str(info.get("redis_version", ""))
    name = f"{info.get('server_name', 'redis')} {info.get('valkey_version', version)}"
    if _version(version) < OLDEST:
        yield fail("store version", f"{name} is too old: upgrade to Valkey, or to Redis 6.2 or newer.")
    else:
        yield ok("store version", f"{name}.")
    in_cluster = str(info.get("cluster_enabled", "0")) == "1"
    if in_cluster and not configured.cluster:
        yield fail("store cluster mode", "The server is in cluster mode: set MCP_REDIS_CLUSTER=1.")
    else:
        yield ok("store cluster mode", f"The server is {'' if in_cluster else 'not '}in cluster mode, as configured.")
    policy = info.get("maxmemory_policy")
    if policy is None:
        yield warn("store eviction policy", "The server does not tell its eviction policy: make sure it is noeviction.")
    elif policy != "noeviction":
        yield fail(
            "store eviction policy",
            f"The eviction policy is {policy}: a full server would drop marks of what was done already, and "
            "connections. Set maxmemory-policy to noeviction.",
        )
    else:
        yield ok("store eviction policy", "noeviction: a full server refuses instead of forgetting.")
    saved = str(info.get("aof_enabled", "0")) == "1"
    yield ok(
        "store persistence",
        "The server keeps what it is told (append-only file)."
        if saved
        else "What is written since the last snapshot is lost with the server: its users connect again, no more.",
    )


def _version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(".")[:2] if part.isdigit())


def _check_permissions(redis: Redis) -> Finding:
    try:
        _do_everything(redis, secrets.token_urlsafe(32))
    except Unavailable as error:
        return fail(
            "store permissions",
            f"The store does not let us do what we do ({error.reason}): give the user these rules: {ACL_RULE}",
        )
    return ok("store permissions", "Every command that we send is allowed.")


def _do_everything(redis: Redis, name: str) -> None:
    """Take every kind of step once, under a name that nobody else has, and leave nothing behind."""
    now = time.time()
    soon = int(now) + 60
    flows, vault = RedisFlowStore(redis), RedisVaultStore(redis)
    flows.create(name, {"status": "pending", "attempts": "0"}, lifetime=60)
    begin = TABLE[Event.BEGIN]
    flows.move(name, Transition(step=name, sources=begin.sources, target=begin.target, attempt_cap=5), now=now)
    flows.read(name)
    flows.delete(name)
    vault.put(name, "doctor", VaultEntry("1", "sealed"), replaces=None)
    vault.lock(name, "doctor", name, seconds=10)
    vault.unlock(name, "doctor", name)
    vault.point(name, name, FlowPointer(name, "sealed", soon), replaces=None, limit=8, now=now)
    vault.look(name, "doctor", name)
    vault.settle(name, name, name)
    vault.unpoint(name, name, name)
    vault.delete(name, "doctor", version="1")
    sessions, logins = RedisSessions(redis), RedisLogins(redis)
    sessions.put(name, "sealed", lifetime=60)
    sessions.get(name)
    sessions.delete(name)
    logins.put(name, "sealed", lifetime=60)
    logins.take(name)
    once, approvals, limits = RedisOnceStore(redis), RedisApprovalStore(redis), RedisRateLimits(redis)
    once.claim(name, Mark(name, name, soon), lifetime=60)
    once.release(name, name)
    approvals.keep(name, name, "sealed", asked_at=int(now), expires_at=soon, limit=8, now=now)
    approvals.withdraw(name, name, at=int(now), until=soon)
    limits.take(name, name, count=1, seconds=60, now=now)
    for key in (redis_keys.approvals(name), redis_keys.rate(name)):
        redis.call("DEL", key)
