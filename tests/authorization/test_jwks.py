"""The issuer's keys: which are trusted, how often they are fetched, and what an outage does."""

import secrets
from base64 import urlsafe_b64encode
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from threading import Barrier, Event
from typing import Any

import pytest

from app.authorization.jwks import (
    COOLDOWN,
    FRESH,
    MAX_KEYS,
    STALE_IF_ERROR,
    Jwks,
    discover_jwks_url,
    metadata_urls,
    trusted_keys,
)
from app.errors import InvalidToken, Unavailable
from app.testing import ISSUER, Server
from tests.authorization.signing import SigningKey, base64url, ec_key, okp_key, rsa_key

NOW = 1_790_000_000
JWKS_URL = f"{ISSUER}/jwks"
EC, RSA, ED = ec_key(), rsa_key(), okp_key()
WAIT = 10.0
"""Seconds after which a thread that should have gone on is taken for stuck."""


class Source:
    """Documents by URL, and a note of each fetch. What is an exception is raised."""

    def __init__(self, *keys: dict[str, Any]) -> None:
        self.documents: dict[str, object] = {JWKS_URL: {"keys": list(keys or [EC.jwk("known")])}}
        self.fetched: list[str] = []
        self.before: Callable[[], object] = lambda: None

    def fetch(self, url: str) -> object:
        self.fetched.append(url)
        self.before()
        document = self.documents.get(url)
        if document is None:
            raise Unavailable("HTTP 404", retry_after=30)
        if isinstance(document, Exception):
            raise document
        return document

    def fail(self) -> None:
        self.documents = {JWKS_URL: Unavailable("HTTP 500", retry_after=30)}


def jwks(source: Source) -> Jwks:
    return Jwks(source, issuer=ISSUER, jwks_url=JWKS_URL)


# Which keys are trusted


TRUSTED: list[tuple[dict[str, Any], set[str]]] = [
    (RSA.jwk("k"), {"RS256"}),
    (RSA.jwk("k", alg="PS256"), {"PS256"}),
    (RSA.jwk("k", alg=...), {"RS256", "PS256"}),
    (EC.jwk("k"), {"ES256"}),
    (EC.jwk("k", alg=..., use=...), {"ES256"}),
    (EC.jwk("k", key_ops=["verify"]), {"ES256"}),
    (EC.jwk("k", key_ops=["sign", "verify"], use=...), {"ES256"}),
    (EC.jwk("k", x5t="x", x5c=["x"], nbf=1, issuer="x"), {"ES256"}),
    (ED.jwk("k"), {"EdDSA"}),
    (ED.jwk("k", alg=...), {"EdDSA"}),
    (rsa_key(3072).jwk("k"), {"RS256"}),
]


@pytest.mark.parametrize(("jwk", "algorithms"), TRUSTED)
def test_a_key_verifies_under_its_own_algorithms(jwk: dict[str, Any], algorithms: set[str]) -> None:
    """SECURITY 4.2: the algorithm is the key's, or follows from its kind."""
    (key,) = trusted_keys({"keys": [jwk]})["k"]
    assert set(key.by_algorithm) == algorithms


HOSTILE: list[Any] = [
    pytest.param({"kty": "oct", "kid": "k", "alg": "HS256", "k": base64url(b"s" * 32)}, id="symmetric"),
    pytest.param({"kty": "oct", "kid": "k", "k": base64url(b"s" * 32)}, id="symmetric, without alg"),
    pytest.param({"kty": "oct", "kid": "k", "alg": "ES256", "k": base64url(b"s" * 32)}, id="symmetric, says ES256"),
    pytest.param(EC.jwk("k", k=base64url(b"s" * 32)), id="symmetric in disguise"),
    pytest.param(EC.jwk("k", d="AAAA"), id="a private EC key"),
    pytest.param(RSA.jwk("k", d="AAAA"), id="a private RSA key"),
    pytest.param(RSA.jwk("k", p="AAAA"), id="a prime of an RSA key"),
    pytest.param(ED.jwk("k", d="AAAA"), id="a private Ed25519 key"),
    pytest.param(rsa_key(1024).jwk("k"), id="RSA 1024"),
    pytest.param(RSA.jwk("k", e="AQ"), id="RSA with exponent 1"),
    pytest.param(RSA.jwk("k", e="Ag"), id="RSA with exponent 2"),
    pytest.param(RSA.jwk("k", n="AA"), id="RSA with modulus 0"),
    pytest.param(RSA.jwk("k", n=...), id="RSA without modulus"),
    pytest.param(RSA.jwk("k", n=5), id="RSA with a number as modulus"),
    pytest.param(RSA.jwk("k", n=None), id="RSA with a null modulus"),
    pytest.param(RSA.jwk("k", n="\u0661" * 342), id="RSA with Arabic digits"),
    pytest.param(RSA.jwk("k", n="!"), id="RSA with no Base64"),
    pytest.param(RSA.jwk("k", alg="HS256"), id="RSA for HS256"),
    pytest.param(RSA.jwk("k", alg="RS1"), id="RSA for RS1"),
    pytest.param(RSA.jwk("k", alg="none"), id="RSA for none"),
    pytest.param(RSA.jwk("k", alg="RSA-OAEP"), id="RSA for encryption by alg"),
    pytest.param(RSA.jwk("k", alg="ES256"), id="RSA for ES256"),
    pytest.param(EC.jwk("k", alg="RS256"), id="EC for RS256"),
    pytest.param(EC.jwk("k", alg=["ES256"]), id="alg as a list"),
    pytest.param(EC.jwk("k", alg=5), id="alg as a number"),
    pytest.param(EC.jwk("k", alg={}), id="alg as an object"),
    pytest.param(ec_key("P-384").jwk("k", alg=...), id="P-384"),
    pytest.param(ec_key("secp256k1").jwk("k", alg=...), id="secp256k1"),
    pytest.param(EC.jwk("k", crv=...), id="EC without a curve"),
    pytest.param(EC.jwk("k", crv=None), id="EC with a null curve"),
    pytest.param(EC.jwk("k", crv=["P-256"]), id="EC with a list as curve"),
    pytest.param(EC.jwk("k", crv="Ed25519"), id="EC on Ed25519"),
    pytest.param(EC.jwk("k", x="AAAA"), id="EC with a short x"),
    pytest.param(EC.jwk("k", x=base64url(b"\x01" * 32)), id="EC with a point off the curve"),
    pytest.param(EC.jwk("k", y=...), id="EC without y"),
    pytest.param(EC.jwk("k", x=5), id="EC with a number as x"),
    pytest.param(EC.jwk("k", x=["AAAA"]), id="EC with a list as x"),
    pytest.param(ED.jwk("k", x="AAAA"), id="Ed25519 with a short x"),
    pytest.param(ED.jwk("k", x=...), id="Ed25519 without x"),
    pytest.param(ED.jwk("k", crv="X25519"), id="X25519"),
    pytest.param(okp_key("Ed448").jwk("k"), id="Ed448"),
    pytest.param(EC.jwk("k", use="enc"), id="for encryption"),
    pytest.param(EC.jwk("k", use=None), id="use null"),
    pytest.param(EC.jwk("k", use=["sig"]), id="use as a list"),
    pytest.param(EC.jwk("k", key_ops=[]), id="for no operation"),
    pytest.param(EC.jwk("k", key_ops=["encrypt"]), id="for another operation"),
    pytest.param(EC.jwk("k", key_ops=None), id="key_ops null"),
    pytest.param(EC.jwk("k", key_ops=5), id="key_ops a number"),
    pytest.param(EC.jwk("k", key_ops="verify"), id="key_ops a text"),
    pytest.param(EC.jwk("k", key_ops={"verify": 1}), id="key_ops an object"),
    pytest.param(EC.jwk("k", kid=...), id="without kid"),
    pytest.param(EC.jwk("k", kid=None), id="kid null"),
    pytest.param(EC.jwk("k", kid=5), id="kid a number"),
    pytest.param(EC.jwk("k", kid=["k"]), id="kid a list"),
    pytest.param(EC.jwk("k", kid="k" * 257), id="kid of 257 characters"),
    pytest.param(EC.jwk("k", kty="ec"), id="kty in lower case"),
    pytest.param(EC.jwk("k", kty=...), id="without kty"),
    pytest.param(EC.jwk("k", kty=["EC"]), id="kty a list"),
    pytest.param({}, id="an empty object"),
    pytest.param(None, id="null"),
    pytest.param("EC", id="a text"),
    pytest.param(5, id="a number"),
    pytest.param([["kty", "EC"]], id="a list"),
]


@pytest.mark.parametrize("jwk", HOSTILE)
def test_a_hostile_key_is_left_out_and_its_neighbours_stay(jwk: object) -> None:
    """SECURITY 1, JWKS poisoning, and 4.2; RFC 7517 section 4: only good keys verify."""
    kept = trusted_keys({"keys": [EC.jwk("before"), jwk, RSA.jwk("after")]})
    assert {kid: [set(key.by_algorithm) for key in keys] for kid, keys in kept.items()} == {
        "before": [{"ES256"}],
        "after": [{"RS256"}],
    }


def test_every_key_of_a_duplicate_kid_is_kept() -> None:
    """SECURITY 0.9: PyJWKClient takes the first one only."""
    kept = trusted_keys({"keys": [EC.jwk("k"), RSA.jwk("k"), ec_key(number=1).jwk("k")]})
    assert [set(key.by_algorithm) for key in kept["k"]] == [{"ES256"}, {"RS256"}, {"ES256"}]


def test_ten_thousand_keys_cost_no_more_than_thirty_two(monkeypatch: pytest.MonkeyPatch) -> None:
    """SECURITY 1, JWKS poisoning: at most 32 keys are looked at."""
    looked_at: list[object] = []
    monkeypatch.setattr("app.authorization.jwks._trusted", looked_at.append)
    assert trusted_keys({"keys": [{"kid": str(number)} for number in range(10_000)]}) == {}
    assert len(looked_at) == MAX_KEYS


NO_KEY_SETS: list[Any] = [
    None,
    True,
    5,
    "keys",
    [],
    [EC.jwk("known")],
    {},
    {"keys": None},
    {"keys": {}},
    {"keys": {"known": EC.jwk("known")}},
    {"keys": "keys"},
    {"keys": []},
    {"keys": [None, 5, "x", []]},
    {"KEYS": [EC.jwk("known")]},
    {"keys": [{"kty": "oct", "kid": "known", "k": "AAAA"}]},
]


@pytest.mark.parametrize("document", NO_KEY_SETS, ids=repr)
def test_what_is_no_key_set_is_an_outage_and_replaces_nothing(document: object) -> None:
    """SECURITY 4.2, stale-if-error: an HTML page or an empty set must not lock everybody out."""
    source = Source()
    keys = jwks(source)
    (held,) = keys.get("known", now=NOW)
    source.documents[JWKS_URL] = document
    assert keys.get("known", now=NOW + FRESH) == (held,)
    assert len(source.fetched) == 2
    keys.forget()
    with pytest.raises(Unavailable):
        keys.get("known", now=NOW + FRESH)


# How often they are fetched


def in_parallel(tasks: list[Callable[[], object]]) -> list[object]:
    """Run all at once, each in its own thread, and collect the result or the exception of each."""
    barrier = Barrier(len(tasks))

    def run(task: Callable[[], object]) -> object:
        barrier.wait(WAIT)
        try:
            return task()
        except (InvalidToken, Unavailable) as error:
            return error

    with ThreadPoolExecutor(len(tasks)) as threads:
        return list(threads.map(run, tasks))


def random_kids(keys: Jwks, *, now: float, count: int = 200) -> list[Callable[[], object]]:
    return [partial(keys.get, secrets.token_hex(8), now=now) for _ in range(count)]


def test_two_hundred_made_up_kids_in_parallel_cost_one_fetch() -> None:
    """SECURITY item 64, at a cold start and after the cooldown."""
    source = Source()
    keys = jwks(source)
    for now, fetches in ((NOW, 1), (NOW + COOLDOWN - 1, 1), (NOW + COOLDOWN, 2)):
        results = in_parallel(random_kids(keys, now=now))
        assert [type(each) for each in results] == [InvalidToken] * 200
        assert len(source.fetched) == fetches


def test_made_up_kids_during_an_outage_cost_one_fetch_in_thirty_seconds() -> None:
    """SECURITY item 65: and Alice's token is good all the while."""
    source = Source()
    keys = jwks(source)
    (held,) = keys.get("known", now=NOW)
    source.fail()
    for period in range(1, 5):
        for second in (0, 15, 29):
            now = NOW + FRESH + period * COOLDOWN + second
            alice: list[Callable[[], object]] = [partial(keys.get, "known", now=now)] * 5
            results = in_parallel(random_kids(keys, now=now, count=20) + alice)
            assert results[-5:] == [(held,)] * 5
            assert [type(each) for each in results[:-5]] == [InvalidToken] * 20
        assert len(source.fetched) == 1 + period


def test_a_cold_start_during_an_outage_costs_one_fetch() -> None:
    """SECURITY 0.9: PyJWKClient makes one fetch for each request then."""
    source = Source()
    source.fail()
    keys = jwks(source)
    known: list[Callable[[], object]] = [partial(keys.get, "known", now=NOW)] * 20
    results = in_parallel(known + random_kids(keys, now=NOW, count=20))
    assert [type(each) for each in results] == [Unavailable] * 40
    assert source.fetched == [JWKS_URL]


@pytest.mark.parametrize(("after", "retry_after"), [(0, 30), (0.25, 30), (1, 29), (28.5, 2), (29, 1), (29.75, 1)])
def test_an_outage_says_when_the_next_attempt_will_be(after: float, retry_after: int) -> None:
    """RFC 9110 section 10.2.3: whole seconds, and never a moment at which nothing would be tried."""
    source = Source()
    source.fail()
    keys = jwks(source)
    with pytest.raises(Unavailable):
        keys.get("known", now=NOW)
    with pytest.raises(Unavailable) as unavailable:
        keys.get("known", now=NOW + after)
    assert unavailable.value.retry_after == retry_after
    assert len(source.fetched) == 1
    with pytest.raises(Unavailable):
        keys.get("known", now=NOW + after + retry_after)
    assert len(source.fetched) == 2


KEYS, REFUSED, OUT = "keys", "unknown kid", "no verification keys"


@pytest.mark.parametrize(
    ("age", "up", "known", "unknown", "fetches"),
    [
        pytest.param(0, True, KEYS, REFUSED, 0, id="just fetched"),
        pytest.param(29, True, KEYS, REFUSED, 0, id="within the cooldown"),
        pytest.param(30, True, KEYS, REFUSED, 1, id="after the cooldown"),
        pytest.param(30, False, KEYS, REFUSED, 1, id="after the cooldown, outage"),
        pytest.param(FRESH - 1, True, KEYS, REFUSED, 1, id="the last fresh second"),
        pytest.param(FRESH, True, KEYS, REFUSED, 1, id="stale"),
        pytest.param(FRESH, False, KEYS, REFUSED, 1, id="stale, outage"),
        pytest.param(STALE_IF_ERROR - 1, False, KEYS, REFUSED, 1, id="a day less a second, outage"),
        pytest.param(STALE_IF_ERROR, False, OUT, OUT, 1, id="a day, outage"),
        pytest.param(STALE_IF_ERROR, True, KEYS, REFUSED, 1, id="a day"),
        pytest.param(10 * STALE_IF_ERROR, True, KEYS, REFUSED, 1, id="ten days"),
    ],
)
def test_the_table_of_the_key_set_holds(age: int, up: bool, known: str, unknown: str, fetches: int) -> None:
    """SECURITY 4.2: soft 10 min, stale-if-error 24 h, 30 s between attempts."""

    def outcome(kid: str) -> str:
        try:
            keys.get(kid, now=NOW + age)
        except (InvalidToken, Unavailable) as error:
            return error.reason.split(":")[0]
        return KEYS

    source = Source()
    keys = jwks(source)
    keys.get("known", now=NOW)
    if not up:
        source.fail()
    assert (outcome("unknown"), outcome("known")) == (unknown, known)
    assert len(source.fetched) == 1 + fetches


def test_a_fresh_key_is_used_without_asking_anybody() -> None:
    """SECURITY 4.2: no background task, and no fetch within ten minutes."""
    source = Source()
    keys = jwks(source)
    for second in range(0, FRESH, 20):
        keys.get("known", now=NOW + second)
    assert len(source.fetched) == 1


def test_a_rotated_key_is_found_and_the_old_one_forgotten() -> None:
    """SECURITY 4.2: an unknown kid refreshes the set, once the cooldown allows it."""
    source = Source(EC.jwk("old"))
    keys = jwks(source)
    keys.get("old", now=NOW)
    source.documents[JWKS_URL] = {"keys": [EC.jwk("new")]}
    with pytest.raises(InvalidToken):
        keys.get("new", now=NOW + COOLDOWN - 1)
    assert keys.get("new", now=NOW + COOLDOWN)
    with pytest.raises(InvalidToken):
        keys.get("old", now=NOW + COOLDOWN)


def test_nothing_is_left_after_a_restore() -> None:
    """SECURITY 2.6, SnapStart: drop the JWKS cache, and the cooldown with it."""
    source = Source()
    keys = jwks(source)
    keys.get("known", now=NOW)
    keys.forget()
    keys.get("known", now=NOW + 1)
    assert len(source.fetched) == 2


# Threads


def slowed(source: Source) -> tuple[Event, Event]:
    """The source tells when a fetch has begun, and answers when it is told to."""
    fetching, answer = Event(), Event()

    def wait() -> None:
        fetching.set()
        answer.wait(WAIT)

    source.before = wait
    return fetching, answer


def test_who_holds_a_key_waits_for_nobody_s_fetch() -> None:
    """SECURITY 0.9: PyJWKClient makes every thread wait during a blocking fetch."""
    source = Source()
    keys = jwks(source)
    (held,) = keys.get("known", now=NOW)
    fetching, answer = slowed(source)
    with ThreadPoolExecutor(1) as threads:
        slow = threads.submit(keys.get, "known", now=NOW + FRESH)
        assert fetching.wait(WAIT)
        try:
            assert keys.get("known", now=NOW + FRESH) == (held,)
            assert not slow.done()
        finally:
            answer.set()
        assert len(slow.result(WAIT)) == 1
    assert len(source.fetched) == 2


def test_who_needs_a_new_key_waits_for_the_fetch_under_way() -> None:
    """SECURITY 4.2: one fetch in flight, whose result serves all."""
    source = Source()
    keys = jwks(source)
    fetching, answer = slowed(source)
    with ThreadPoolExecutor(8) as threads:
        first = threads.submit(keys.get, "known", now=NOW)
        assert fetching.wait(WAIT)
        others = [threads.submit(keys.get, "known", now=NOW) for _ in range(7)]
        assert not any(each.done() for each in others)
        answer.set()
        assert [each.result(WAIT) for each in others] == [first.result(WAIT)] * 7
    assert len(source.fetched) == 1


def test_a_fetch_that_crashes_does_not_block_the_next_one() -> None:
    """The lock is released whatever the source raises."""
    source = Source()
    keys = jwks(source)
    source.documents[JWKS_URL] = ZeroDivisionError()
    with pytest.raises(ZeroDivisionError):
        keys.get("known", now=NOW)
    source.documents[JWKS_URL] = {"keys": [EC.jwk("known")]}
    assert keys.get("known", now=NOW + COOLDOWN)


# Discovery


@pytest.mark.parametrize(
    ("issuer", "urls"),
    [
        (
            "https://as.example.com",
            [
                "https://as.example.com/.well-known/oauth-authorization-server",
                "https://as.example.com/.well-known/openid-configuration",
            ],
        ),
        (
            "https://as.example.com/",
            [
                "https://as.example.com/.well-known/oauth-authorization-server",
                "https://as.example.com/.well-known/openid-configuration",
            ],
        ),
        (
            "https://as.example.com:8443/tenant/one",
            [
                "https://as.example.com:8443/.well-known/oauth-authorization-server/tenant/one",
                "https://as.example.com:8443/.well-known/openid-configuration/tenant/one",
                "https://as.example.com:8443/tenant/one/.well-known/openid-configuration",
            ],
        ),
        (
            "https://as.example.com/tenant/",
            [
                "https://as.example.com/.well-known/oauth-authorization-server/tenant",
                "https://as.example.com/.well-known/openid-configuration/tenant",
                "https://as.example.com/tenant/.well-known/openid-configuration",
            ],
        ),
    ],
)
def test_metadata_is_looked_for_where_the_specification_says(issuer: str, urls: list[str]) -> None:
    """MCP basic/authorization/authorization-server-discovery; RFC 8414 section 3.1."""
    assert metadata_urls(issuer) == urls


FIRST, SECOND = metadata_urls(ISSUER)


@pytest.mark.parametrize(
    ("first", "found"),
    [
        pytest.param({"issuer": ISSUER, "jwks_uri": JWKS_URL}, True, id="as it should be"),
        pytest.param({"issuer": ISSUER + "/", "jwks_uri": JWKS_URL}, False, id="issuer with a slash"),
        pytest.param({"issuer": "https://evil.example", "jwks_uri": JWKS_URL}, False, id="another issuer"),
        pytest.param({"issuer": [ISSUER], "jwks_uri": JWKS_URL}, False, id="issuer as a list"),
        pytest.param({"jwks_uri": JWKS_URL}, False, id="no issuer"),
        pytest.param({"issuer": ISSUER}, False, id="no jwks_uri"),
        *[
            pytest.param({"issuer": ISSUER, "jwks_uri": uri}, False, id=f"jwks_uri {uri!r:.50}")
            for uri in (
                None,
                5,
                [JWKS_URL],
                "",
                "/jwks",
                "//login.example.com/jwks",
                "https://evil.example/jwks",
                "https://login.example.com.evil.example/jwks",
                "https://login.example.com@evil.example/jwks",
                "https://evil.example#@login.example.com/jwks",
                "https://x@login.example.com/jwks",
                "https://login.example.com:8443/jwks",
                "http://login.example.com/jwks",
                "file:///etc/passwd",
                "https://[::1/jwks",
                "https://[login.example.com]/jwks",
                "https://169.254.169.254/latest/meta-data",
            )
        ],
        pytest.param([], False, id="a list"),
        pytest.param("<html>", False, id="a text"),
        pytest.param(None, False, id="nothing"),
        pytest.param(Unavailable("HTTP 500", retry_after=30), False, id="an error"),
    ],
)
def test_keys_come_from_the_issuer_s_own_metadata_and_host(first: object, found: bool) -> None:
    """SECURITY 1, SSRF, and 4.2; RFC 8414 section 3.3. What does not fit is skipped, and the next place tried."""
    source = Source()
    source.documents = {FIRST: first}
    if found:
        assert discover_jwks_url(source, ISSUER) == JWKS_URL
        assert source.fetched == [FIRST]
    else:
        with pytest.raises(Unavailable):
            discover_jwks_url(source, ISSUER)
        assert source.fetched == [FIRST, SECOND]
        source.documents[SECOND] = {"issuer": ISSUER, "jwks_uri": JWKS_URL}
        assert discover_jwks_url(source, ISSUER) == JWKS_URL


def test_a_discovered_url_is_kept_and_a_configured_one_never_looked_for() -> None:
    """SECURITY 4.2: an attempt costs the issuer one request."""
    source = Source()
    source.documents[FIRST] = {"issuer": ISSUER, "jwks_uri": JWKS_URL}
    discovering = Jwks(source, issuer=ISSUER)
    discovering.get("known", now=NOW)
    discovering.get("known", now=NOW + FRESH)
    assert source.fetched == [FIRST, JWKS_URL, JWKS_URL]
    source.fetched.clear()
    Jwks(source, issuer=ISSUER, jwks_url=JWKS_URL).get("known", now=NOW)
    assert source.fetched == [JWKS_URL]


def test_a_configured_url_may_be_on_another_host() -> None:
    """SECURITY 4.2: same host unless configured, as with issuers who serve their keys from elsewhere."""
    source = Source()
    source.documents["https://keys.example.net/certs"] = source.documents.pop(JWKS_URL)
    keys = Jwks(source, issuer=ISSUER, jwks_url="https://keys.example.net/certs")
    assert keys.get("known", now=NOW)


@pytest.mark.parametrize(
    ("documents", "told"),
    [
        ({}, "no authorization server metadata"),
        ({FIRST: {"issuer": ISSUER, "jwks_uri": "https://keys.example.net/certs"}}, "MCP_JWKS_URL"),
        ({FIRST: {"issuer": ISSUER + "/", "jwks_uri": JWKS_URL}}, "MCP_ISSUER"),
        ({FIRST: {"issuer": ISSUER, "jwks_uri": JWKS_URL}}, "HTTP 404"),
        ({FIRST: {"issuer": ISSUER, "jwks_uri": JWKS_URL}, JWKS_URL: {"keys": []}}, "no key that can be trusted"),
    ],
)
def test_the_log_can_tell_why_there_are_no_keys(documents: dict[str, object], told: str) -> None:
    """STYLE 4.13: the reason of an Unavailable goes to the log, with what to change."""
    source = Source()
    source.documents = documents
    keys = Jwks(source, issuer=ISSUER)
    for now in (NOW, NOW + 1):
        with pytest.raises(Unavailable) as unavailable:
            keys.get("known", now=now)
        assert told in unavailable.value.reason
        assert unavailable.value.reason.startswith("no verification keys: ")


# Through the endpoint


@pytest.fixture
def server() -> Server:
    return Server([], instances=1)


def test_an_issuer_that_is_down_at_the_start_is_503_and_not_a_login(server: Server) -> None:
    """SECURITY 4, Responses: 401 would send every client into a login loop."""
    client = server.client()
    url = f"{ISSUER}/jwks"
    published = server.issuer.documents[url]
    server.issuer.documents[url] = Unavailable("HTTP 500", retry_after=30)
    for _ in range(5):
        reply = client.request("tools/list")
        assert (reply.status, reply.http.headers["retry-after"]) == (503, "30")
        assert "www-authenticate" not in reply.http.headers
        assert reply.http.body == b'{"error":"temporarily_unavailable"}'
    assert server.issuer.fetched.count(url) == 1
    server.issuer.documents[url] = published
    server.clock.advance(29)
    assert client.request("tools/list").status == 503
    server.clock.advance(1)
    assert client.request("tools/list").status == 200


def test_a_day_of_outage_goes_unnoticed_by_who_has_a_known_key(server: Server) -> None:
    """SECURITY item 65 and 4.2, stale-if-error."""
    client = server.client()
    assert client.request("tools/list").status == 200
    server.issuer.documents = {}
    for hours in range(1, 24):
        server.clock.advance(3600)
        client.token = server.issuer.mint()
        assert client.request("tools/list").status == 200, hours
    server.clock.advance(3600)
    client.token = server.issuer.mint()
    assert client.request("tools/list").status == 503


def test_each_instance_has_its_own_cooldown() -> None:
    """SECURITY 4.2: instances share nothing, so the bound is for each."""
    server = Server([], instances=3)
    client = server.client()
    client.token = server.issuer.mint(headers={"kid": "made-up"})
    for _ in range(30):
        assert client.request("tools/list").status == 401
    assert server.issuer.fetched.count(f"{ISSUER}/jwks") == 3


def test_tokens_that_no_key_could_verify_cost_no_fetch(server: Server) -> None:
    """SECURITY 4.1: the algorithm is checked before any key is looked for."""
    client = server.client()
    for alg in ("none", "HS256", "RS1"):
        head = urlsafe_b64encode(f'{{"alg":"{alg}","kid":"x"}}'.encode()).decode().rstrip("=")
        client.token = f"{head}.e30.AAAA"
        assert client.request("tools/list").status == 401
    client.token = "opaque"
    assert client.request("tools/list").status == 401
    assert server.issuer.fetched == []


def test_the_keys_of_this_file_are_different() -> None:
    """If two were equal, a test of a wrong key would prove nothing."""
    keys: list[SigningKey] = [EC, ec_key(number=1), ec_key(number=2), RSA, rsa_key(3072), ED]
    assert len({key.der() for key in keys}) == len(keys)
