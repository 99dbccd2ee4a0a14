"""Settings: what is read, what is refused, and that a refusal names every problem, each remedy and no secret."""

import os
import re
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from app.errors import ConfigurationError
from app.sealing import Key, Purpose, Seal
from app.settings import Settings

SECRET = bytes(range(200, 232))
OTHER = bytes(range(100, 132))
KEYS = "1:" + urlsafe_b64encode(SECRET).decode()
MINIMAL = {
    "MCP_RESOURCE_URL": "https://mcp.example.com/mcp",
    "MCP_ISSUER": "https://login.example.com",
    "MCP_SEALING_KEYS": KEYS,
}
LOCAL = {
    **MINIMAL,
    "MCP_STAGE": "local",
    "MCP_RESOURCE_URL": "http://127.0.0.1:8000/mcp",
    "MCP_ISSUER": "http://localhost:9000",
}


def problems(environment: Mapping[str, str]) -> tuple[str, ...]:
    """What is wrong. Anything but ConfigurationError fails the test."""
    with pytest.raises(ConfigurationError) as refused:
        Settings.read(environment)
    # The traceback of a start that failed is in the log: the error must not drag another one along.
    assert refused.value.__cause__ is None
    assert refused.value.__context__ is None
    return refused.value.problems


def with_(name: str, value: str, base: Mapping[str, str] = MINIMAL) -> dict[str, str]:
    return {**base, f"MCP_{name}": value}


# What is read


def test_three_variables_are_enough() -> None:
    """DESIGN 8: a deployment has to say where it is, who signs in its users, and with which keys it seals."""
    settings = Settings.read(MINIMAL)
    assert settings.stage == "prod"
    assert settings.resource_url == "https://mcp.example.com/mcp"
    assert settings.issuer == "https://login.example.com"
    assert settings.jwks_url is None
    assert settings.keyring.current.secret == SECRET
    assert settings.keyring.get(2) is None
    assert settings.allowed_origins == settings.required_scopes == ()
    assert settings.subject_claim == "sub"
    assert settings.server_name == "roundtrip"


def test_everything_can_be_said() -> None:
    """The docstring of Settings."""
    settings = Settings.read(
        {
            **MINIMAL,
            "MCP_STAGE": "staging",
            "MCP_JWKS_URL": "https://keys.example.net/certs",
            "MCP_ALLOWED_ORIGINS": "https://app.example.com, http://localhost:6274,",
            "MCP_REQUIRED_SCOPES": " mcp  tickets:read ",
            "MCP_SUBJECT_CLAIM": "oid",
            "MCP_SERVER_NAME": "Tickets",
        }
    )
    assert settings.stage == "staging"
    assert settings.jwks_url == "https://keys.example.net/certs"
    assert settings.allowed_origins == ("https://app.example.com", "http://localhost:6274")
    assert settings.required_scopes == ("mcp", "tickets:read")
    assert settings.subject_claim == "oid"
    assert settings.server_name == "Tickets"


def test_blanks_around_a_value_do_not_count_and_other_variables_do_not_matter() -> None:
    """A line break at the end is what a console and `echo` leave."""
    padded = {name: f" {value}\n" for name, value in MINIMAL.items()}
    settings = Settings.read({**padded, "RESOURCE_URL": "x", "mcp_issuer": "x", "MCP_UNKNOWN": "x"})
    assert settings.resource_url == MINIMAL["MCP_RESOURCE_URL"]
    assert settings.keyring.current.secret == SECRET


def test_the_environment_is_read_once_and_not_held() -> None:
    """A later change of the environment changes no running function."""
    environment = dict(MINIMAL)
    settings = Settings.read(environment)
    environment.clear()
    assert settings.issuer == "https://login.example.com"


# What is refused


def test_every_problem_is_named_at_once() -> None:
    """STYLE 4.13: list all missing settings."""
    told = problems({"MCP_ALLOWED_ORIGINS": "*", "MCP_REQUIRED_SCOPES": 'a"b', "MCP_JWKS_URL": "x"})
    for name in ("RESOURCE_URL", "ISSUER", "JWKS_URL", "ALLOWED_ORIGINS", "REQUIRED_SCOPES", "SEALING_SECRET"):
        assert sum(f"MCP_{name}" in problem.split()[0] for problem in told) == 1, name
    assert len(told) == 6


@pytest.mark.parametrize("value", ["", "  ", "\n"])
@pytest.mark.parametrize("name", ["RESOURCE_URL", "ISSUER", "SEALING_KEYS"])
def test_an_empty_value_is_a_missing_one(name: str, value: str) -> None:
    """A template parameter without a value arrives as an empty string."""
    (problem,) = problems(with_(name, value))
    told = "MCP_SEALING_SECRET is not set, nor MCP_SEALING_KEYS" if name == "SEALING_KEYS" else f"MCP_{name} is not set"
    assert problem.startswith(told)


URLS = [
    "mcp.example.com/mcp",
    "/mcp",
    "http://mcp.example.com/mcp",
    "http://127.0.0.1/mcp",
    "ftp://mcp.example.com/mcp",
    "https:///mcp",
    "https://:443/mcp",
    "https://mcp.example.com/mcp?x=1",
    "https://mcp.example.com/mcp?",
    "https://mcp.example.com/?/mcp",
    "https://mcp.example.com/#/mcp",
    "https://mcp.example.com/mcp#",
    "https://mcp.example.com/a b/mcp",
    'https://mcp.example.com/"/mcp',
    "https://mcp.example.com/\\/mcp",
    "https://mcp.example.com/\x01/mcp",
    "https://mcp.exam\nple.com/mcp",
    "https://mcp.example.com/\t/mcp",
    "https://münchen.example/mcp",
    "https://mcp.example.com/größe/mcp",
    "https://mcp.example.com:abc/mcp",
    "https://mcp.example.com:99999/mcp",
    "https://[::1/mcp",
    "https://[mcp.example.com]/mcp",
    "https://user@mcp.example.com/mcp",
    "https://user:sentinel@mcp.example.com/mcp",
]


@pytest.mark.parametrize("name", ["RESOURCE_URL", "ISSUER", "JWKS_URL"])
@pytest.mark.parametrize("url", URLS)
def test_what_is_no_plain_https_url_is_refused(name: str, url: str) -> None:
    """SECURITY 1, SSRF, and 4: the URL is compared byte by byte, and stands in headers."""
    if name == "JWKS_URL" and re.search(r"\?.", url):
        assert Settings.read(with_(name, url)).jwks_url == url, "some issuers have a query here"
        return
    (problem,) = problems(with_(name, url))
    assert problem.startswith(f"MCP_{name} ")
    assert re.search(r"fragment, like https://\S+ \(http is for a loopback address with MCP_STAGE=local\)\.$", problem)
    assert "sentinel" not in problem


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.1:8000", "localhost:8000", "[::1]:8000"])
def test_http_is_for_a_loopback_address_and_the_local_stage(host: str) -> None:
    """DESIGN 8, Laptop."""
    url = f"http://{host}/mcp"
    assert Settings.read(with_("RESOURCE_URL", url, LOCAL)).resource_url == url
    problems(with_("RESOURCE_URL", url))


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1.evil.example",
        "localhost.evil.example",
        "evil.example",
        "0.0.0.0",
        "10.0.0.1",
        "127.0.0.1@evil.example",
    ],
)
def test_http_to_another_machine_is_refused_in_every_stage(host: str) -> None:
    """SECURITY 1: tokens would travel in clear."""
    problems(with_("RESOURCE_URL", f"http://{host}/mcp", LOCAL))
    problems(with_("ISSUER", f"http://{host}", LOCAL))


@pytest.mark.parametrize("stage", ["prod", "LOCAL", "Local", "localhost", "dev", ""])
def test_only_the_stage_local_is_local(stage: str, key_file: Path) -> None:
    """A misspelt stage is a deployment: nothing is relaxed by mistake."""
    assert len(problems({**LOCAL, "MCP_STAGE": stage})) == 2
    relaxed = {**MINIMAL, "MCP_STAGE": stage, "MCP_SEALING_KEYS": "", "MCP_SEALING_KEY_FILE": str(key_file)}
    assert problems(relaxed)[0].startswith("MCP_SEALING_KEY_FILE is for MCP_STAGE=local")


@pytest.mark.parametrize("path", ["", "/", "/mcp/", "/MCP", "/mcpx", "/mcp/v1", "/xmcp"])
def test_the_resource_is_the_endpoint_itself(path: str) -> None:
    """MCP basic/authorization, Canonical Server URI: the audience is the URL that clients call."""
    assert problems(with_("RESOURCE_URL", f"https://mcp.example.com{path}")) == (
        "MCP_RESOURCE_URL must end in /mcp, the path of the endpoint.",
    )


def test_the_endpoint_may_have_a_base_path_and_the_issuer_any_path() -> None:
    """CASES 17; issuers with a path or a trailing slash are common."""
    assert Settings.read(with_("RESOURCE_URL", "https://example.com/v1/dev/mcp")).resource_url.endswith("/v1/dev/mcp")
    for issuer in ("https://as.example.com/", "https://as.example.com/tenant/v2.0", "https://as.example.com:8443"):
        assert Settings.read(with_("ISSUER", issuer)).issuer == issuer


@pytest.mark.parametrize(
    "origin",
    [
        "*",
        "null",
        "app.example.com",
        "https://app.example.com/",
        "https://app.example.com/app",
        "https://app.example.com?x",
        "https://app.example.com#x",
        "https://user@app.example.com",
        "https://App.example.com",
        "HTTPS://app.example.com",
        "https://*.example.com",
        "https://app.example.com:",
        "https://app.example.com:port",
        "https://app.example.com:443",
        "http://app.example.com:80",
        "https://[::1",
        "https://",
        "https://app.exam\tple.com",
        "https://münchen.example",
        "https://app.example.com https://other.example.com",
    ],
)
def test_an_origin_that_no_browser_would_send_is_refused(origin: str) -> None:
    """RFC 6454 section 6.2: it is compared byte by byte, so a misspelt one would never match."""
    (problem,) = problems(with_("ALLOWED_ORIGINS", f"https://good.example.com,{origin}"))
    assert problem.startswith("MCP_ALLOWED_ORIGINS")
    assert "write it as https://app.example.com, " in problem


@pytest.mark.parametrize(
    "origin",
    [
        "https://app.example.com",
        "https://app.example.com:8443",
        "http://localhost:6274",
        "http://127.0.0.1",
        "http://[::1]:6274",
        "https://xn--mnchen-3ya.example",
        "vscode-webview://0a1b2c3d-4e5f",
        "chrome-extension://abcdefghijklmnop",
    ],
)
def test_an_origin_as_a_browser_sends_it_is_taken(origin: str) -> None:
    """RFC 6454 section 6.2."""
    assert Settings.read(with_("ALLOWED_ORIGINS", origin)).allowed_origins == (origin,)


@pytest.mark.parametrize("scope", ['a"b', "a\\b", "größe", "a\x7fb", "offline_access"])
def test_a_scope_that_no_challenge_may_name_is_refused(scope: str) -> None:
    """RFC 6749 section 3.3; MCP basic/authorization."""
    (problem,) = problems(with_("REQUIRED_SCOPES", f"mcp {scope}"))
    assert problem.startswith("MCP_REQUIRED_SCOPES: ")


# Sealing keys


def spelled(kid: object, secret: bytes = SECRET) -> str:
    return f"{kid}:{urlsafe_b64encode(secret).decode()}"


@pytest.mark.parametrize(
    "keys",
    [
        pytest.param(spelled(1), id="with padding"),
        pytest.param(spelled(1).rstrip("="), id="without padding"),
        pytest.param("1:" + b64encode(SECRET).decode(), id="the other Base64 alphabet, as openssl writes it"),
    ],
)
def test_a_key_is_read_in_its_usual_spellings(keys: str) -> None:
    """SECURITY 2.6: kid:base64."""
    ring = Settings.read(with_("SEALING_KEYS", keys)).keyring
    assert (ring.current.kid, ring.current.secret) == (1, SECRET)


def test_the_first_key_seals_and_the_others_open() -> None:
    """SECURITY 2.6, rotation."""
    before = Settings.read(with_("SEALING_KEYS", spelled(1))).keyring
    after = Settings.read(with_("SEALING_KEYS", f"{spelled(20, OTHER)} , {spelled(1)}")).keyring
    assert (after.current.kid, after.get(1)) == (20, before.current)
    token = Seal(before, Purpose.FLOW).seal({"a": 1}, bound_to=())
    assert Seal(after, Purpose.FLOW).open(token, bound_to=()) == {"a": 1}


@pytest.mark.parametrize(
    ("keys", "told"),
    [
        pytest.param(urlsafe_b64encode(SECRET).decode(), "kid:base64url", id="no kid"),
        pytest.param(spelled(""), "kid:base64url", id="an empty kid"),
        pytest.param(spelled("x"), "kid:base64url", id="a kid of letters"),
        pytest.param(spelled("-1"), "kid:base64url", id="a kid below zero"),
        pytest.param(spelled("+1"), "kid:base64url", id="a kid with a sign"),
        pytest.param(spelled("1_0"), "kid:base64url", id="a kid with an underscore"),
        pytest.param(spelled("\u0661"), "kid:base64url", id="an Arabic digit"),
        pytest.param(spelled("1.0"), "kid:base64url", id="a fraction"),
        pytest.param(spelled("9" * 5000), "kid:base64url", id="5000 digits"),
        pytest.param(spelled(0), "from 1 to", id="kid 0"),
        pytest.param(spelled(2**32), "from 1 to", id="a kid of 33 bits"),
        pytest.param("1:", "has 0 bytes", id="no key"),
        pytest.param(spelled(1, SECRET[:31]), "has 31 bytes", id="31 bytes"),
        pytest.param(spelled(1, SECRET + b"x"), "has 33 bytes", id="33 bytes"),
        pytest.param("1:" + SECRET.hex(), "has 48 bytes", id="hexadecimal"),
        pytest.param("1:" + "!" * 43, "kid:base64url", id="no Base64"),
        pytest.param("1:" + "é" * 43, "kid:base64url", id="no ASCII"),
        pytest.param(KEYS + "\n2:AAAA", "kid:base64url", id="two lines"),
        pytest.param(f"{KEYS},", "kid:base64url", id="a comma at the end"),
        pytest.param(f",{KEYS}", "kid:base64url", id="a comma in front"),
        pytest.param(f"{KEYS};{spelled(2)}", "kid:base64url", id="semicolons"),
        pytest.param(f"{KEYS},{spelled(1, OTHER)}", "its own", id="one kid twice"),
        pytest.param(f"{urlsafe_b64encode(SECRET).decode()}:1", "kid:base64url", id="the wrong way round"),
    ],
)
def test_a_key_that_cannot_be_used_is_refused_with_the_remedy_and_without_itself(keys: str, told: str) -> None:
    """STYLE 4.13 and 4.14."""
    (problem,) = problems(with_("SEALING_KEYS", keys))
    assert told in problem
    encoded = urlsafe_b64encode(SECRET).decode()
    for part in (encoded[:12], encoded[-12:], SECRET.hex()[:12], repr(SECRET)[2:20]):
        assert part not in problem


def test_the_remedy_for_missing_keys_works() -> None:
    """STYLE 4.13: the message ends with a command that makes a key."""
    (problem,) = problems({name: value for name, value in MINIMAL.items() if name != "MCP_SEALING_KEYS"})
    command = re.search(r"python3 -c '(.+)'", problem)
    assert command is not None
    printed: list[str] = []
    exec(command[1], {"print": printed.append})  # noqa: S102
    assert Settings.read(with_("SEALING_KEYS", printed[0])).keyring.current.kid == 1


def test_nothing_prints_a_key() -> None:
    """STYLE 4.14."""
    settings = Settings.read(with_("SEALING_KEYS", f"{spelled(2, OTHER)},{spelled(1)}"))
    text = f"{settings} {settings!r} {settings.keyring!r} {settings.keyring.current!r}"
    assert "Keyring(current=2, retired=[1])" in text
    for secret in (SECRET, OTHER):
        for part in (urlsafe_b64encode(secret).decode()[:12], secret.hex()[:12], repr(secret)[2:20]):
            assert part not in text


# The pepper


def test_the_pepper_names_what_is_stored_while_keys_come_and_go() -> None:
    """The first key, kept under its own name: connections are found again after every rotation."""
    before = Settings.read(MINIMAL).keyring
    rotated = Settings.read({**MINIMAL, "MCP_SEALING_KEYS": spelled(2, OTHER), "MCP_SEALING_PEPPER": KEYS}).keyring
    assert rotated.pepper.secret == before.pepper.secret
    assert rotated.get(1) is None


@pytest.mark.parametrize("pepper", ["x", "1:AAAA", urlsafe_b64encode(SECRET).decode()])
def test_a_pepper_that_is_no_key_is_refused_without_showing_it(pepper: str) -> None:
    """STYLE 4.13 and 4.14."""
    (problem,) = problems(with_("SEALING_PEPPER", pepper))
    assert problem.startswith("MCP_SEALING_PEPPER")
    assert urlsafe_b64encode(SECRET).decode()[:12] not in problem


# The ring that KMS wraps

WRAPPED = {
    **{name: value for name, value in MINIMAL.items() if name != "MCP_SEALING_KEYS"},
    "MCP_SEALING_SECRET": "arn:aws:secretsmanager:eu-central-1:111122223333:secret:roundtrip-keys-AbCdEf",
    "MCP_KMS_KEY": "arn:aws:kms:eu-central-1:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab",
    "MCP_SEALING_APP": "roundtrip",
}


@dataclass(frozen=True)
class Elsewhere:
    """A ring that says where it is, and is never asked for a key."""

    secret_id: str
    kms_key: str
    app: str

    @property
    def current(self) -> Key:
        raise AssertionError

    def get(self, kid: int) -> Key | None:
        raise AssertionError

    @property
    def pepper(self) -> Key:
        raise AssertionError


def wrapped_problems(**changes: str) -> tuple[str, ...]:
    environment = {**WRAPPED, **{f"MCP_{name}": value for name, value in changes.items()}}
    with pytest.raises(ConfigurationError) as refused:
        Settings.read(environment, Elsewhere)
    return refused.value.problems


def test_a_deployment_says_where_its_ring_is_and_the_root_makes_it() -> None:
    """Settings know no AWS: what makes the ring is given, and reading them unwraps nothing."""
    assert Settings.read(WRAPPED, Elsewhere).keyring == Elsewhere(
        WRAPPED["MCP_SEALING_SECRET"], WRAPPED["MCP_KMS_KEY"], "roundtrip"
    )
    assert Settings.read({**WRAPPED, "MCP_SEALING_KEYS": " "}, Elsewhere).keyring.__class__ is Elsewhere


def test_what_the_ring_needs_besides_is_named_at_once() -> None:
    """STYLE 4.13."""
    found = wrapped_problems(KMS_KEY="alias/keys", SEALING_APP=" ", SEALING_PEPPER=KEYS)
    assert [problem.split()[0] for problem in found] == ["MCP_KMS_KEY", "MCP_SEALING_APP", "MCP_SEALING_PEPPER"]
    assert all("MCP_SEALING_SECRET" in problem or "the ring in the secret" in problem for problem in found)
    (problem,) = problems(WRAPPED)
    assert problem.startswith("MCP_SEALING_SECRET needs KMS")


@pytest.mark.parametrize(
    "arn",
    [
        "1234abcd-12ab-34cd-56ef-1234567890ab",
        "arn:aws:kms:eu-central-1:111122223333:alias/keys",
        "arn:aws:kms:eu-central-1:1111:key/1234abcd",
        "arn:aws:s3:::key/1234abcd",
        "arn:aws:kms:eu-central-1:111122223333:key/1234abcd x",
    ],
)
def test_the_kms_key_is_named_by_its_arn(arn: str) -> None:
    """AWS KMS, Decrypt: an alias may come to mean another key, and a policy names keys by their ARN."""
    (problem,) = wrapped_problems(KMS_KEY=arn)
    assert problem.startswith(f"MCP_KMS_KEY is {arn!r}, and must be the ARN")


@pytest.mark.parametrize("partition", ["aws", "aws-cn", "aws-us-gov"])
def test_a_kms_key_may_be_in_any_partition(partition: str) -> None:
    """Multi-Region keys have ids that begin with mrk-."""
    arn = f"arn:{partition}:kms:us-gov-west-1:111122223333:key/mrk-1234abcd12ab34cd56ef1234567890ab"
    assert Settings.read({**WRAPPED, "MCP_KMS_KEY": arn}, Elsewhere).keyring == Elsewhere(
        WRAPPED["MCP_SEALING_SECRET"], arn, "roundtrip"
    )


def test_two_sources_of_keys_are_one_too_many(tmp_path: Path) -> None:
    """Which of them counts would be a guess, and a wrong one makes instances refuse each other's states."""
    file = {"MCP_SEALING_KEY_FILE": str(tmp_path / "keys"), "MCP_STAGE": "local"}
    for environment, named in (
        ({**WRAPPED, "MCP_SEALING_KEYS": KEYS}, "MCP_SEALING_SECRET and MCP_SEALING_KEYS are set"),
        ({**MINIMAL, **file}, "MCP_SEALING_KEYS and MCP_SEALING_KEY_FILE are set"),
        ({**WRAPPED, **file}, "MCP_SEALING_SECRET and MCP_SEALING_KEY_FILE are set"),
    ):
        (problem,) = problems(environment)
        assert problem.startswith(named)
        assert problem.endswith("empty the rest.")


# The key file of the local stage


@pytest.fixture
def key_file(tmp_path: Path) -> Path:
    path = tmp_path / "sealing-keys"
    path.write_text(KEYS + "\n")
    path.chmod(0o600)
    return path


def from_file(path: Path) -> dict[str, str]:
    return {**LOCAL, "MCP_SEALING_KEYS": "", "MCP_SEALING_KEY_FILE": str(path)}


def test_the_local_stage_reads_its_keys_from_a_file(key_file: Path) -> None:
    """DESIGN 5: locally the same interface over a 0600 key file."""
    assert Settings.read(from_file(key_file)).keyring.current.secret == SECRET


@pytest.mark.skipif(os.name != "posix", reason="file modes are POSIX")
@pytest.mark.parametrize("mode", [0o644, 0o640, 0o620, 0o602, 0o604, 0o601, 0o777])
def test_a_key_file_that_others_can_read_or_write_is_refused(key_file: Path, mode: int) -> None:
    """DESIGN 5: readable by its owner alone."""
    key_file.chmod(mode)
    (problem,) = problems(from_file(key_file))
    assert problem.endswith(f"chmod 600 {key_file}")


@pytest.mark.parametrize(
    ("content", "told"),
    [(b"", "is not set"), (b"\xff\xfe\x00", "is no text"), (b"no keys", "kid:base64url"), (SECRET, "is no text")],
)
def test_a_key_file_without_keys_is_refused_without_showing_it(key_file: Path, content: bytes, told: str) -> None:
    """STYLE 4.13 and 4.14: also when it holds the raw key."""
    key_file.write_bytes(content)
    (problem,) = problems(from_file(key_file))
    assert told in problem


def test_a_key_file_that_cannot_be_read_is_refused_with_the_remedy(tmp_path: Path) -> None:
    """STYLE 4.13."""
    for path in (tmp_path / "missing", tmp_path):
        (problem,) = problems(from_file(path))
        assert "cannot be read" in problem
        assert "make run" in problem
