"""The doctor at the store: real servers, each with one thing wrong."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from app.redis_settings import RedisSettings
from app.wiring.connections import open_redis
from infra.doctor.finding import Finding, Level
from infra.doctor.store import ACL_RULE, check_info, check_store
from tests.adapters.contracts.valkey import Server, running


def findings(url: str, *, cluster: bool = False) -> list[Finding]:
    return list(check_store(RedisSettings(url, cluster=cluster, iam=None), lambda each: open_redis(each)[0]))


def wrong(url: str, *, cluster: bool = False) -> list[tuple[str, str, str]]:
    found = findings(url, cluster=cluster)
    return [(each.level.value, each.subject, each.text) for each in found if each.level is not Level.OK]


@pytest.fixture(params=["single", "cluster"])
def server(request: pytest.FixtureRequest) -> Server:
    server: Server = request.getfixturevalue(request.param)
    return server


@contextmanager
def user(server: Server, rules: str) -> Iterator[str]:
    """The URL of a store for a user of these rules."""
    server.admin.execute_command("ACL", "SETUSER", "app", "on", ">p4ssw0rd", *rules.split())
    try:
        yield server.url.replace("redis://", "redis://app:p4ssw0rd@")
    finally:
        server.admin.execute_command("ACL", "DELUSER", "app")


@contextmanager
def configured(server: Server, name: str, value: str) -> Iterator[None]:
    (before,) = server.admin.config_get(name).values()
    server.admin.config_set(name, value)
    try:
        yield
    finally:
        server.admin.config_set(name, before)


def test_a_good_store_has_nothing_wrong_and_nothing_left_in_it(server: Server) -> None:
    """Everything that we do to a store is done once."""
    assert wrong(server.url, cluster=server.cluster) == []
    assert server.admin.keys("*") == []


def test_the_rules_that_the_doctor_names_are_enough(server: Server) -> None:
    """PLATFORM section 7: no other keys, and nothing dangerous."""
    with user(server, ACL_RULE) as url:
        assert wrong(url, cluster=server.cluster) == []
        found = "".join(map(str, findings(url, cluster=server.cluster)))
    assert "p4ssw0rd" not in found


@pytest.mark.parametrize("policy", ["allkeys-lru", "volatile-ttl"])
def test_a_policy_that_evicts_is_found(server: Server, policy: str) -> None:
    """CASES B.7: marks and connections go, and nobody is told."""
    with configured(server, "maxmemory-policy", policy):
        ((level, subject, text),) = wrong(server.url, cluster=server.cluster)
    assert (level, subject) == ("fail", "store eviction policy")
    assert policy in text
    assert "noeviction" in text


@pytest.mark.parametrize("cluster", [False, True])
def test_a_wrong_cluster_flag_is_found(single: Server, cluster: Server | bool, request: pytest.FixtureRequest) -> None:
    """A client of one kind talks to no server of the other."""
    server: Server = request.getfixturevalue("shared_cluster" if cluster else "shared_single")
    ((level, subject, text),) = wrong(server.url, cluster=not cluster)
    assert (level, subject) == ("fail", "store cluster mode")
    assert "MCP_REDIS_CLUSTER" in text


@pytest.mark.parametrize(
    ("without", "level", "subject"),
    [
        ("-hset", "fail", "store permissions"),
        ("-getdel", "fail", "store permissions"),
        ("-zadd", "fail", "store permissions"),
        ("-@scripting", "fail", "store permissions"),
        ("resetkeys ~other:*", "fail", "store permissions"),
        ("-info", "warn", "store properties"),
    ],
)
def test_a_permission_that_is_missing_is_found(server: Server, without: str, level: str, subject: str) -> None:
    """Found before a user finds it."""
    with user(server, f"{ACL_RULE} {without}") as url:
        ((found_level, found_subject, _),) = wrong(url, cluster=server.cluster)
    assert (found_level, found_subject) == (level, subject)


def test_a_wrong_password_is_found_and_not_printed(server: Server) -> None:
    """CWE-532."""
    with user(server, ACL_RULE) as url:
        ((level, subject, text),) = wrong(url.replace("p4ssw0rd", "wr0ng"), cluster=server.cluster)
    assert (level, subject) == ("fail", "store")
    assert "refuses our credentials" in text
    assert "wr0ng" not in text


@pytest.mark.parametrize("cluster", [False, True])
def test_a_store_that_is_not_there_is_one_failure(cluster: bool) -> None:
    """Nothing else can be said about it."""
    with running() as server:
        url = server.url
    ((level, subject, text),) = wrong(url, cluster=cluster)
    assert (level, subject) == ("fail", "store")
    assert "cannot be reached" in text


@pytest.mark.parametrize(
    ("info", "level", "subject"),
    [
        ({"redis_version": "6.0.16"}, "fail", "store version"),
        ({"redis_version": ""}, "fail", "store version"),
        ({"redis_version": "6.2.0"}, "ok", "store version"),
        ({"maxmemory_policy": None}, "warn", "store eviction policy"),
    ],
)
def test_what_a_server_says_of_itself_is_judged(info: dict[str, Any], level: str, subject: str) -> None:
    """GETDEL came with Redis 6.2; a managed server may keep its policy to itself."""
    good = {"redis_version": "7.2.4", "maxmemory_policy": "noeviction", "cluster_enabled": 0}
    found = check_info({**good, **info}, RedisSettings("rediss://cache:6379", cluster=False, iam=None))
    assert {each.subject: each.level.value for each in found}[subject] == level


def test_a_connection_in_clear_is_pointed_out() -> None:
    """MCP_REDIS_ALLOW_PLAINTEXT allows it; a reader of the report should know."""
    first, *_ = check_store(
        RedisSettings("redis://192.0.2.1:6379", cluster=False, iam=None), lambda each: open_redis(each)[0]
    )
    assert (first.level, first.subject) == (Level.WARN, "store TLS")
