"""What needs the store of a deployment: all problems at once, each with its remedy, no secret in any message."""

import base64
import json

import pytest

from app.adapters.aws_client import AwsClients
from app.adapters.kms import KmsKeyring
from app.connection_settings import ConnectionSettings, are_asks_limited
from app.connections_secret import with_secret
from app.effects.limits import DEFAULTS, Kind, Limit
from app.errors import ConfigurationError
from app.redis_settings import RedisIam
from app.settings import Settings

KEY = base64.urlsafe_b64encode(b"1" * 32).decode()
OTHER = base64.urlsafe_b64encode(b"2" * 32).decode()
BASE = {
    "MCP_RESOURCE_URL": "https://mcp.example.com/v1/mcp",
    "MCP_ISSUER": "https://login.example.com",
    "MCP_SEALING_KEYS": f"1:{KEY}",
}
GOOD = {
    "MCP_REDIS_URL": "rediss://user:p4ssw0rd@cache.example.com:6379",
    "MCP_OIDC_CLIENT_ID": "web",
    "MCP_PROVIDERS": json.dumps({"github": {"client_id": "gh"}}),
    "MCP_PROVIDER_GITHUB_SECRET": "gh-s3cret",
}


def read(**changes: str) -> ConnectionSettings | None:
    environment = {**BASE, **GOOD, **changes}
    return ConnectionSettings.read(environment, Settings.read(environment))


def problems(**changes: str) -> tuple[str, ...]:
    with pytest.raises(ConfigurationError) as caught:
        read(**changes)
    return caught.value.problems


def test_a_good_configuration_is_read_and_shows_no_secret() -> None:
    """The pages are where the endpoint is, without /mcp."""
    configured = read()
    assert configured is not None
    assert configured.base_url == "https://mcp.example.com/v1"
    assert configured.providers["github"].client_secret == "gh-s3cret"
    assert configured.openid
    assert "p4ssw0rd" not in repr(configured)
    assert "s3cret" not in repr(configured)


def test_without_a_store_there_is_no_url_mode() -> None:
    """Forms need no store."""
    assert read(MCP_REDIS_URL="", MCP_PROVIDERS="") is None
    assert problems(MCP_REDIS_URL="") == ("MCP_PROVIDERS needs a store: set MCP_REDIS_URL, like rediss://cache:6379.",)


def test_every_problem_is_named_at_once() -> None:
    """A missing setting is not found one deployment at a time."""
    found = problems(MCP_REDIS_URL="cache:6379", MCP_OIDC_CLIENT_ID="", MCP_SIGN_IN="saml", MCP_PROVIDERS="{")
    assert len(found) == 4
    assert any("https://mcp.example.com/v1/auth/callback" in each for each in found)
    for name in ("REDIS_URL", "OIDC_CLIENT_ID", "SIGN_IN", "PROVIDERS"):
        assert any(each.startswith(f"MCP_{name}") for each in found), name


def test_a_ring_of_several_keys_needs_its_pepper_at_start() -> None:
    """A rotation must not rename what is stored, and the first user must not be the one to find out."""
    two = {"MCP_SEALING_KEYS": f"2:{OTHER},1:{KEY}"}
    assert any("never change it" in each for each in problems(**two))
    rotated = read(**two, MCP_SEALING_PEPPER=f"1:{KEY}")
    alone = read()
    assert rotated is not None
    assert alone is not None
    assert rotated.keyring.pepper.secret == alone.keyring.pepper.secret


def test_a_ring_that_kms_wraps_is_asked_for_nothing_at_start() -> None:
    """SECURITY 2.6: a pepper that is unwrapped in INIT would be in the snapshot. The ring in the secret has its own."""
    wrapped = {
        **BASE,
        **GOOD,
        "MCP_SEALING_KEYS": "",
        "MCP_SEALING_SECRET": "roundtrip-keys",
        "MCP_KMS_KEY": "arn:aws:kms:eu-central-1:111122223333:key/1234abcd",
        "MCP_SEALING_APP": "roundtrip",
    }
    asked: list[str] = []
    aws = AwsClients(asked.append)
    settings = Settings.read(wrapped, lambda *where: KmsKeyring(*where, aws=aws))
    configured = ConnectionSettings.read(wrapped, settings)
    assert configured is not None
    assert configured.keyring is settings.keyring
    assert asked == []


@pytest.mark.parametrize(
    "url",
    [
        "cache:6379",
        "rediss://",
        "rediss://[cache:6379",
        "rediss://cache:p4ssw0rd",
        "rediss://user:p4ss/w0rd@cache:6379",
        "rediss://user:p4ss#w0rd@cache:6379",
        "rediss://user:p4ss?w0rd@cache:6379",
        "rediss://cache:6379?ssl_cert_reqs=none",
        "rediss://cache:6379/0?socket_timeout=60",
        "unix:///tmp/redis.sock",
    ],
)
def test_a_store_url_that_is_not_exactly_one_is_refused_and_not_quoted(url: str) -> None:
    """redis-py lets options in the URL win, and takes what follows a "/" in a password for a path."""
    (problem,) = problems(MCP_REDIS_URL=url)
    assert problem.startswith("MCP_REDIS_URL must be a URL")
    assert "percent-encoded" in problem
    assert not [part for part in ("p4ss", "w0rd", "socket_timeout", "[cache") if part in problem]


@pytest.mark.parametrize(
    ("changes", "allowed"),
    [
        ({"MCP_REDIS_URL": "redis://cache.example.com:6379"}, False),
        ({"MCP_REDIS_URL": "redis://cache.example.com:6379", "MCP_REDIS_ALLOW_PLAINTEXT": "1"}, True),
        ({"MCP_REDIS_URL": "redis://cache.example.com:6379", "MCP_STAGE": "local"}, True),
        ({"MCP_REDIS_URL": "redis://127.0.0.1:6379"}, True),
        ({"MCP_REDIS_URL": "redis://[::1]:6379"}, True),
        ({"MCP_REDIS_URL": "redis://127.0.0.1.example.com:6379"}, False),
    ],
)
def test_a_store_without_tls_is_on_this_machine_or_allowed_by_name(changes: dict[str, str], allowed: bool) -> None:
    """CWE-319: the password, and sessions that would open somebody's pages."""
    if allowed:
        assert read(**changes) is not None
    else:
        assert [each for each in problems(**changes) if "MCP_REDIS_ALLOW_PLAINTEXT=1" in each]


def test_a_cluster_has_one_database() -> None:
    """Valkey cluster specification: SELECT is refused (until 9.0)."""
    assert problems(MCP_REDIS_URL="rediss://cache:6379/1", MCP_REDIS_CLUSTER="1") == (
        "MCP_REDIS_URL names a database, and a cluster has only 0: leave it out.",
    )
    assert read(MCP_REDIS_URL="rediss://cache:6379/1") is not None
    assert read(MCP_REDIS_URL="rediss://cache:6379/0", MCP_REDIS_CLUSTER="1") is not None


IAM = {"MCP_REDIS_IAM_USER": "mcp", "MCP_REDIS_CACHE_NAME": "roundtrip", "AWS_REGION": "eu-central-1"}


@pytest.mark.parametrize(
    ("host", "serverless"),
    [
        ("roundtrip-x1y2z3.serverless.euc1.cache.amazonaws.com", True),
        ("clustercfg.roundtrip.x1y2z3.euc1.cache.amazonaws.com", False),
        ("master.roundtrip.x1y2z3.euc1.cache.amazonaws.com", False),
    ],
)
def test_the_endpoint_says_what_kind_of_cache_the_token_is_for(host: str, serverless: bool) -> None:
    """ElastiCache, Authenticating with IAM: ResourceType=ServerlessCache is for a serverless cache alone."""
    configured = read(MCP_REDIS_URL=f"rediss://{host}:6379", **IAM)
    assert configured is not None
    assert configured.redis.iam == RedisIam("mcp", "roundtrip", "eu-central-1", serverless)


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"MCP_REDIS_CACHE_NAME": ""}, "MCP_REDIS_CACHE_NAME must"),
        ({"MCP_REDIS_IAM_USER": ""}, "MCP_REDIS_IAM_USER must"),
        ({"MCP_REDIS_IAM_USER": "Mcp"}, "MCP_REDIS_IAM_USER must"),
        ({"MCP_REDIS_CACHE_NAME": "cache/other"}, "MCP_REDIS_CACHE_NAME must"),
        ({"AWS_REGION": ""}, "AWS_REGION"),
        ({"MCP_REDIS_URL": "rediss://user:p4ssw0rd@cache:6379"}, "MCP_REDIS_URL has a user or password"),
        ({"MCP_REDIS_URL": "redis://cache:6379", "MCP_STAGE": "local"}, "MCP_REDIS_IAM_USER needs TLS"),
    ],
)
def test_signing_in_with_iam_needs_all_of_its_settings(changes: dict[str, str], named: str) -> None:
    """ElastiCache, Authenticating with IAM: user id equal to user name, lower case, in-transit encryption."""
    (problem,) = problems(**{"MCP_REDIS_URL": "rediss://cache:6379", **IAM, **changes})
    assert problem.startswith(named)
    assert "p4ssw0rd" not in problem


def test_the_secret_is_set_over_the_environment() -> None:
    """Each member stands for the variable of its name; PROVIDERS may be an object, as its JSON would be."""
    secret = {
        "REDIS_URL": "rediss://:other@cache.example.com:6379",
        "OIDC_CLIENT_ID": "pages",
        "OIDC_CLIENT_SECRET": "oidc-s3cret",
        "PROVIDERS": {"github": {"client_id": "gh"}},
        "PROVIDER_GITHUB_SECRET": "new-s3cret",
    }
    environment = with_secret({**BASE, **GOOD, "MCP_SIGN_IN": "oauth"}, json.dumps(secret))
    configured = ConnectionSettings.read(environment, Settings.read(environment))
    assert configured is not None
    assert configured.redis.url == secret["REDIS_URL"]
    assert (configured.client_id, configured.client_secret) == ("pages", "oidc-s3cret")
    assert configured.providers["github"].client_secret == "new-s3cret"
    assert not configured.openid


@pytest.mark.parametrize("text", ["", "s3cret", "{", "[]", '"s3cret"', '{"a": 1, "a": 2}', "\ud800"])
def test_a_secret_that_is_no_object_is_refused_and_not_quoted(text: str) -> None:
    """A secret that was pasted as a bare value must not be found in a log."""
    with pytest.raises(ConfigurationError) as caught:
        with_secret({}, text)
    assert "JSON object" in caught.value.problems[0]
    assert "s3cret" not in str(caught.value)


def test_every_problem_of_a_secret_is_named_at_once_and_no_value_is() -> None:
    """A secret is corrected in one go."""
    members = {"REDIS": "s3cret", "OIDC_CLIENT_SECRET": {"v": "s3cret"}, "REDIS_URL": None, "PROVIDERS": ["s3cret"]}
    with pytest.raises(ConfigurationError) as caught:
        with_secret({}, json.dumps(members))
    assert len(caught.value.problems) == 4
    for name, problem in zip(members, caught.value.problems, strict=True):
        assert f"'{name}'" in problem or f"member {name} " in problem
    assert "s3cret" not in str(caught.value)


def test_what_does_not_stand_in_the_secret_is_checked_at_start() -> None:
    """A function whose configuration cannot work does not start, whatever the secret will say."""
    environment = {**BASE, "MCP_CONNECTIONS_SECRET": "roundtrip/connections"}
    ConnectionSettings.check(environment, Settings.read(environment))
    environment |= {"MCP_SIGN_IN": "saml", "MCP_REDIS_IAM_USER": "mcp"}
    with pytest.raises(ConfigurationError) as caught:
        ConnectionSettings.check(environment, Settings.read(environment))
    assert len(caught.value.problems) == 3


def test_limits_are_counts_in_seconds() -> None:
    """`MCP_ASK_LIMIT=60/600`: 60 questions in ten minutes. Links have a limit of their own by default."""
    configured = read()
    assert configured is not None
    assert configured.limits == DEFAULTS
    configured = read(MCP_ASK_LIMIT="5/60", MCP_FLOW_LIMIT=" 99999/99999 ")
    assert configured is not None
    assert configured.limits == {Kind.ASK: Limit(5, 60), Kind.FLOW: Limit(99_999, 99_999)}


@pytest.mark.parametrize(("text", "counted"), [("", False), (" ", False), ("60/600", True)])
def test_questions_are_counted_where_a_limit_is_set(text: str, counted: bool) -> None:
    """It costs a round trip to the store for each form."""
    assert are_asks_limited({"MCP_ASK_LIMIT": text}) is counted


@pytest.mark.parametrize("name", ["MCP_ASK_LIMIT", "MCP_FLOW_LIMIT"])
@pytest.mark.parametrize(
    "text",
    ["60", "0/600", "60/0", "-1/60", "60/600/1", "1e3/60", "60 / 600", "100000/60", "٦/60", "60/600\n1", "x" * 99],
)
def test_a_limit_that_is_none_is_refused_with_an_example(name: str, text: str) -> None:
    """A limit of nothing would stop everything, and one that is not read would stop nothing."""
    (problem,) = problems(**{name: text})
    assert problem.startswith(f"{name} is ")
    assert problem.endswith("like 60/600.")
    assert len(problem) < 150


@pytest.mark.parametrize("name", ["MCP_ASK_LIMIT", "MCP_FLOW_LIMIT"])
def test_a_limit_without_a_store_is_refused(name: str) -> None:
    """Nobody would count."""
    assert problems(MCP_REDIS_URL="", MCP_PROVIDERS="", **{name: "1/1"}) == (
        f"{name} needs a store: set MCP_REDIS_URL, like rediss://cache:6379.",
    )
