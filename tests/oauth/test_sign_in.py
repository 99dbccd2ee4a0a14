"""Signing in to the browser pages: the requests that we make, and every response that signs nobody in."""

import secrets
from base64 import b64encode
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest

from app.adapters.memory_sessions import MemoryLogins
from app.errors import Refused, Unavailable
from app.http import TokenEndpointReply
from app.oauth import sign_in
from app.oauth.id_token import IdTokenRules
from app.oauth.server_metadata import COOLDOWN, STALE_IF_ERROR, MetadataCache
from app.oauth.sign_in import Begun, OpenIdConnect, PlainOAuth, SignIn, SignInClient, SignInDenied, SignInRefused
from app.principal import User
from app.sealing import Key, Keyring
from tests.oauth.authorization_server import ISSUER, METADATA_URL, TOKEN_URL, AuthorizationServer

NOW = 1_790_000_000.0
KEYRING = Keyring(current=Key(1, bytes(range(32))))
REDIRECT_URI = "https://mcp.example.com/auth/callback"
CLIENT = SignInClient("web", REDIRECT_URI, "s3cret:&% ")
RESOURCE = "https://mcp.example.com/mcp"
ALICE = User(ISSUER, "alice")


class Clock:
    def __init__(self) -> None:
        self.now = NOW

    def __call__(self) -> float:
        return self.now


class Rig:
    """A sign-in against an authorization server of values, with a clock."""

    def __init__(self, **rules: Any) -> None:
        self.clock = Clock()
        self.server = AuthorizationServer(now=NOW)
        self.logins = MemoryLogins(self.clock)
        self.rules = IdTokenRules(ISSUER, "web", **rules)
        self.metadata = MetadataCache(self.server, issuer=ISSUER, locations=[METADATA_URL])
        self.sign_in = self.with_identification(OpenIdConnect(self.rules, self.server.verified_claims))

    def with_identification(self, identification: sign_in.Identification, client: SignInClient = CLIENT) -> SignIn:
        return SignIn(
            client=client,
            metadata=self.metadata,
            tokens=self.server,
            identification=identification,
            logins=self.logins,
            keyring=KEYRING,
            random_text=lambda: secrets.token_urlsafe(32),
        )

    def begin(self) -> Begun:
        return self.sign_in.begin("/connect/x", now=self.clock.now)

    def round_trip(self) -> sign_in.Finished:
        begun = self.begin()
        return self.sign_in.finish(begun.login_id, self.server.sign_in(begun.url), now=self.clock.now)


@pytest.fixture
def rig() -> Rig:
    return Rig()


def asked(begun: Begun) -> dict[str, str]:
    return dict(parse_qsl(urlsplit(begun.url).query))


def test_the_user_who_signed_in_goes_where_they_wanted(rig: Rig) -> None:
    """SECURITY section 3, steps 2 and 3."""
    finished = rig.round_trip()

    assert finished == sign_in.Finished(ALICE, "alice", "/connect/x")


def test_the_authorization_request_is_a_code_request_with_pkce_state_and_nonce(rig: Rig) -> None:
    """RFC 6749 section 4.1.1; RFC 7636 section 4.3; OIDC Core section 3.1.2.1. The response mode stays `query`."""
    begun = rig.begin()
    parameters = asked(begun)

    assert begun.url.startswith(f"{ISSUER}/authorize?")
    assert len(parameters.pop("state")) == len(parameters.pop("nonce")) == 43
    assert len(parameters.pop("code_challenge")) == 43
    assert parameters == {
        "response_type": "code",
        "client_id": "web",
        "redirect_uri": REDIRECT_URI,
        "code_challenge_method": "S256",
        "scope": "openid",
    }


def test_nothing_in_the_request_or_in_the_store_gives_the_login_away(rig: Rig) -> None:
    """SECURITY section 1, stolen Redis dump: SHA-256 keys, sealed values."""
    begun = rig.begin()
    parameters = asked(begun)
    stored = str(rig.logins.dump())

    assert begun.login_id not in begun.url
    for secret in (begun.login_id, parameters["state"], parameters["nonce"], "/connect/x"):
        assert secret not in stored
    assert begun.login_id not in repr(begun)


def test_every_sign_in_has_its_own_secrets(rig: Rig) -> None:
    """RFC 9700 section 2.1.1: one verifier for each transaction."""
    first, second = rig.begin(), rig.begin()

    assert first.login_id != second.login_id
    for name in ("state", "nonce", "code_challenge"):
        assert asked(first)[name] != asked(second)[name]


def test_two_tabs_sign_in_side_by_side_and_finish_in_reverse_order(rig: Rig) -> None:
    """Public case cloudflare/agents#1666: one verifier for all flows."""
    first, second = rig.begin(), rig.begin()

    for begun in (second, first):
        query = rig.server.sign_in(begun.url)
        assert rig.sign_in.tag_of(query) == begun.tag
        assert rig.sign_in.finish(begun.login_id, query, now=NOW).user == ALICE


def test_the_client_secret_is_sent_in_the_header_form_encoded_first(rig: Rig) -> None:
    """RFC 6749 section 2.3.1."""
    rig.round_trip()
    form, headers = rig.server.token_requests[0]

    assert headers["authorization"] == "Basic " + b64encode(b"web:s3cret%3A%26%25%20").decode()
    assert "client_secret" not in form


def test_the_client_secret_is_sent_in_the_body_where_the_server_takes_it_only_there(rig: Rig) -> None:
    """RFC 8414 section 2, token_endpoint_auth_methods_supported."""
    rig.server.metadata["token_endpoint_auth_methods_supported"] = ["client_secret_post"]
    rig.round_trip()
    form, headers = rig.server.token_requests[0]

    assert form["client_secret"] == CLIENT.client_secret
    assert "authorization" not in headers


def test_a_public_client_names_itself_in_the_body(rig: Rig) -> None:
    """RFC 6749 section 3.2.1."""
    rig.sign_in = rig.with_identification(
        OpenIdConnect(rig.rules, rig.server.verified_claims), replace(CLIENT, client_secret=None)
    )
    rig.round_trip()
    form, headers = rig.server.token_requests[0]

    assert form["client_id"] == "web"
    assert "client_secret" not in form
    assert "authorization" not in headers


def test_another_account_can_be_asked_for(rig: Rig) -> None:
    """OIDC Core section 3.1.2.1, prompt."""
    assert "prompt" not in asked(rig.begin())
    assert asked(rig.sign_in.begin("/connect/x", now=NOW, switch_account=True))["prompt"] == "login"


@pytest.mark.parametrize(
    ("claims", "account"),
    [
        ({"email": "a@example.com", "name": "Alice"}, "a@example.com"),
        ({"preferred_username": "al", "name": "Alice"}, "al"),
        ({"email": "a\nb", "name": 5}, "alice"),
    ],
)
def test_the_account_is_called_what_people_recognise(rig: Rig, claims: dict[str, Any], account: str) -> None:
    """SECURITY section 3, step 5: the page names the signed-in account."""
    rig.server.claims = claims

    assert rig.round_trip().account == account


# What signs nobody in


def _without(query: list[tuple[str, str]], name: str) -> list[tuple[str, str]]:
    return [pair for pair in query if pair[0] != name]


FORGED: dict[str, Callable[[list[tuple[str, str]]], list[tuple[str, str]]]] = {
    "no state": lambda query: _without(query, "state"),
    "another state": lambda query: [*_without(query, "state"), ("state", "A" * 43)],
    "an odd state": lambda query: [*_without(query, "state"), ("state", "../x")],
    "state twice": lambda query: [*query, ("state", dict(query)["state"])],
    "code twice": lambda query: [*query, ("code", "other")],
    "iss twice": lambda query: [*query, ("iss", ISSUER)],
    "a stray error": lambda query: [("error", "access_denied"), ("state", "B" * 43)],
    "a long code": lambda query: [*_without(query, "code"), ("code", "c" * 5000)],
}


@pytest.mark.parametrize("name", FORGED)
def test_a_forged_response_neither_signs_in_nor_spoils_the_real_one(rig: Rig, name: str) -> None:
    """Public cases cloudflare/agents#1926, Gitlawb/openclaude#775; RFC 9700 section 4.7."""
    begun = rig.begin()
    query = rig.server.sign_in(begun.url)

    with pytest.raises(SignInRefused):
        rig.sign_in.finish(begun.login_id, FORGED[name](query), now=NOW)
    assert rig.server.token_requests == []

    assert rig.sign_in.finish(begun.login_id, query, now=NOW).user == ALICE


@pytest.mark.parametrize("login_id", [None, "", "x", "C" * 43, "D" * 44])
def test_a_response_in_a_browser_that_did_not_ask_is_refused(rig: Rig, login_id: str | None) -> None:
    """Login CSRF, RFC 9700 section 4.7: the attacker's response in the victim's browser."""
    begun = rig.begin()
    query = rig.server.sign_in(begun.url)

    with pytest.raises(SignInRefused, match="state"):
        rig.sign_in.finish(login_id, query, now=NOW)
    assert rig.server.token_requests == []


def test_a_sign_in_is_finished_once(rig: Rig) -> None:
    """Public case 83: OAuth state reusable. GETDEL, so that of two callbacks one gets the record."""
    begun = rig.begin()
    query = rig.server.sign_in(begun.url)

    def finish() -> bool:
        try:
            rig.sign_in.finish(begun.login_id, query, now=NOW)
        except SignInRefused:
            return False
        return True

    with ThreadPoolExecutor(16) as pool:
        outcomes = list(pool.map(lambda _: finish(), range(32)))

    assert outcomes.count(True) == 1
    assert len(rig.server.token_requests) == 1


def test_a_sign_in_that_took_too_long_is_refused(rig: Rig) -> None:
    """SECURITY section 3: mcp:login lives 300 seconds."""
    begun = rig.begin()
    query = rig.server.sign_in(begun.url)
    rig.clock.now += sign_in.LIFETIME

    with pytest.raises(SignInRefused, match="state"):
        rig.sign_in.finish(begun.login_id, query, now=rig.clock.now)


@pytest.mark.parametrize(
    ("announced", "iss", "accepted"),
    [
        (True, ISSUER, True),
        (True, "https://evil.example", False),
        (True, ISSUER + "/", False),
        (True, None, False),
        (None, ISSUER, True),
        (None, "https://evil.example", False),
        (None, None, True),
        ("true", None, True),
    ],
)
def test_the_issuer_of_the_response_is_compared(rig: Rig, announced: Any, iss: str | None, accepted: bool) -> None:
    """MCP basic/authorization, Authorization Response Validation: the four rows; RFC 9207 section 2.4."""
    rig.server.metadata["authorization_response_iss_parameter_supported"] = announced
    begun = rig.begin()
    query = [*_without(rig.server.sign_in(begun.url), "iss"), *([("iss", iss)] if iss else [])]

    if accepted:
        assert rig.sign_in.finish(begun.login_id, query, now=NOW).user == ALICE
    else:
        with pytest.raises(SignInRefused, match="iss"):
            rig.sign_in.finish(begun.login_id, query, now=NOW)
        assert rig.server.token_requests == []


@pytest.mark.parametrize(
    ("error", "kind"), [("access_denied", SignInDenied), ("server_error", SignInRefused), ("<script>", SignInRefused)]
)
def test_an_error_response_ends_the_sign_in(rig: Rig, error: str, kind: type[Refused]) -> None:
    """RFC 6749 section 4.1.2.1. The description is not even looked at."""
    begun = rig.begin()
    query = [*_without(rig.server.sign_in(begun.url), "code"), ("error", error), ("error_description", "<script>")]

    with pytest.raises(SignInRefused) as refused:
        rig.sign_in.finish(begun.login_id, query, now=NOW)
    assert type(refused.value) is kind
    assert "<" not in refused.value.reason
    assert rig.server.token_requests == []


def test_an_error_of_another_issuer_says_nothing(rig: Rig) -> None:
    """RFC 9207 section 2.4: iss is checked for error responses too."""
    begun = rig.begin()
    query = [("error", "access_denied"), ("state", asked(begun)["state"]), ("iss", "https://evil.example")]

    with pytest.raises(SignInRefused, match="iss"):
        rig.sign_in.finish(begun.login_id, query, now=NOW)


def test_a_code_of_another_sign_in_is_of_no_use(rig: Rig) -> None:
    """Code injection, RFC 9700 section 4.5: PKCE binds the code to the browser that asked for it."""
    attacker = rig.server.sign_in(rig.begin().url, "mallory")
    begun = rig.begin()
    query = [("code", dict(attacker)["code"]), *_without(rig.server.sign_in(begun.url), "code")]

    with pytest.raises(SignInRefused, match="400"):
        rig.sign_in.finish(begun.login_id, query, now=NOW)


BAD_CLAIMS: dict[str, dict[str, Any]] = {
    "iss of another": {"iss": "https://evil.example"},
    "iss with a slash": {"iss": ISSUER + "/"},
    "no iss": {"iss": None},
    "aud of another": {"aud": "other"},
    "aud is the resource": {"aud": RESOURCE},
    "no aud": {"aud": None},
    "aud is a number": {"aud": 5},
    "several aud, no azp": {"aud": ["web", "other"]},
    "several aud, azp of another": {"aud": ["web", "other"], "azp": "other"},
    "azp of another": {"azp": "other"},
    "many aud": {"aud": ["web", *map(str, range(16))], "azp": "web"},
    "expired": {"exp": NOW - 31},
    "no exp": {"exp": None},
    "exp is text": {"exp": str(int(NOW) + 300)},
    "exp is true": {"exp": True},
    "old": {"iat": NOW - 631},
    "from the future": {"iat": NOW + 31},
    "no iat": {"iat": None},
    "not yet": {"nbf": NOW + 31},
    "nbf is true": {"nbf": True},
    "no nonce": {"nonce": None},
    "another nonce": {"nonce": "E" * 43},
    "nonce is a number": {"nonce": 5},
    "no sub": {"sub": None},
    "empty sub": {"sub": ""},
    "sub is a number": {"sub": 5},
    "sub with a line end": {"sub": "a\nb"},
    "long sub": {"sub": "s" * 256},
}


@pytest.mark.parametrize("name", BAD_CLAIMS)
def test_an_id_token_that_is_not_for_this_sign_in_is_refused(rig: Rig, name: str) -> None:
    """OIDC Core section 3.1.3.7; SECURITY section 3, step 3."""
    rig.server.claims = BAD_CLAIMS[name]

    with pytest.raises(SignInRefused, match="id_token"):
        rig.round_trip()


@pytest.mark.parametrize(
    "claims",
    [
        {"aud": ["web"]},
        {"aud": ["web", "other"], "azp": "web"},
        {"exp": NOW - 29},
        {"iat": NOW + 29, "nbf": NOW + 29},
        {"iat": NOW - 600},
    ],
)
def test_an_id_token_at_the_edge_is_accepted(rig: Rig, claims: dict[str, Any]) -> None:
    """Leeway 30 s; public cases mcp-hangar#630, tsidp#73."""
    rig.server.claims = claims

    assert rig.round_trip().user == ALICE


def test_the_subject_claim_is_configurable() -> None:
    """SECURITY section 3, step 3: Entra's `sub` is pairwise, its `oid` is not."""
    rig = Rig(subject_claim="oid")
    rig.server.claims = {"oid": "0f1e", "sub": "pairwise"}
    assert rig.round_trip().user == User(ISSUER, "0f1e")

    rig.server.claims = {}
    with pytest.raises(SignInRefused, match="sub"):
        rig.round_trip()


@pytest.mark.parametrize(
    ("auth_time", "accepted"), [(NOW - 3630, True), (NOW - 3631, False), (None, False), ("x", False)]
)
def test_a_largest_age_of_the_sign_in_is_asked_for_and_enforced(auth_time: Any, accepted: bool) -> None:
    """OIDC Core section 3.1.2.1, max_age: a server may ignore the request."""
    rig = Rig(max_age=3600)
    assert asked(rig.begin())["max_age"] == "3600"
    rig.server.claims = {"auth_time": auth_time}

    if accepted:
        assert rig.round_trip().user == ALICE
    else:
        with pytest.raises(SignInRefused, match=r"auth_time|times"):
            rig.round_trip()


REPLIES = {
    "redirect": TokenEndpointReply(302, "", b""),
    "error": TokenEndpointReply(400, "application/json", b'{"error":"invalid_grant"}'),
    "HTML": TokenEndpointReply(200, "text/html", b"<html>"),
    "a list": TokenEndpointReply(200, "application/json", b"[]"),
    "no id_token": TokenEndpointReply(200, "application/json", b'{"access_token":"x"}'),
    "id_token is a number": TokenEndpointReply(200, "application/json", b'{"id_token":5}'),
    "a made-up id_token": TokenEndpointReply(200, "application/json", b'{"id_token":"a.b.c"}'),
    "duplicate members": TokenEndpointReply(200, "application/json", b'{"id_token":"a","id_token":"b"}'),
}


@pytest.mark.parametrize("name", REPLIES)
def test_a_token_response_that_proves_nothing_signs_nobody_in(rig: Rig, name: str) -> None:
    """SECURITY section 1, malicious third-party AS."""
    rig.server.reply = REPLIES[name]

    with pytest.raises(SignInRefused):
        rig.round_trip()


@pytest.mark.parametrize("status", [500, 503, 429])
def test_a_token_endpoint_in_trouble_is_not_the_users_fault(rig: Rig, status: int) -> None:
    """503 and Retry-After, not "you are not signed in"."""
    rig.server.reply = TokenEndpointReply(status, "", b"")

    with pytest.raises(Unavailable):
        rig.round_trip()


def test_a_login_record_moved_to_another_key_does_not_open(rig: Rig) -> None:
    """SECURITY section 1, Redis write access: values are bound to their key."""
    victim, attacker = rig.begin(), rig.begin()
    first, second = rig.logins.dump()
    rig.logins.put(first, rig.logins.dump()[second], lifetime=60)

    with pytest.raises(SignInRefused, match="tag"):
        rig.sign_in.finish(victim.login_id, rig.server.sign_in(victim.url), now=NOW)
    assert rig.sign_in.finish(attacker.login_id, rig.server.sign_in(attacker.url), now=NOW).user == ALICE


# The plain OAuth variant


@pytest.fixture
def plain() -> Rig:
    rig = Rig()
    identification = PlainOAuth(
        resource=RESOURCE, client_id="web", verify=rig.server.verified_access_token, scope="tickets:read"
    )
    rig.sign_in = rig.with_identification(identification)
    return rig


def test_without_openid_connect_an_access_token_for_ourselves_names_the_user(plain: Rig) -> None:
    """SECURITY section 3, step 3; RFC 8707: the resource is in both requests."""
    parameters = asked(plain.begin())

    assert parameters["resource"] == RESOURCE
    assert parameters["scope"] == "tickets:read"
    assert "nonce" not in parameters
    assert plain.round_trip().user == ALICE
    assert plain.server.token_requests[0][0]["resource"] == RESOURCE


def test_an_access_token_that_another_client_got_signs_nobody_in(plain: Rig) -> None:
    """Token substitution, RFC 9700 section 4.9.2."""
    plain.server.client_id = "somebody-else"

    with pytest.raises(SignInRefused, match="client_id"):
        plain.round_trip()


# Metadata


BAD_METADATA: dict[str, dict[str, Any]] = {
    "another issuer": {"issuer": "https://evil.example"},
    "no PKCE": {"code_challenge_methods_supported": None},
    "plain PKCE only": {"code_challenge_methods_supported": ["plain"]},
    "no token endpoint": {"token_endpoint": None},
    "token endpoint without TLS": {"token_endpoint": "http://login.example.com/token"},
    "token endpoint on loopback": {"token_endpoint": "http://127.0.0.1/token"},
    "script as authorization endpoint": {"authorization_endpoint": "javascript:alert(1)"},
    "user name in the URL": {"authorization_endpoint": "https://login.example.com@evil.example/"},
}


@pytest.mark.parametrize("name", BAD_METADATA)
def test_no_sign_in_begins_at_a_server_that_cannot_do_what_we_need(rig: Rig, name: str) -> None:
    """RFC 8414 section 3.3; MCP basic/authorization: MUST refuse without S256."""
    rig.server.metadata = BAD_METADATA[name]

    with pytest.raises(Unavailable):
        rig.begin()
    assert rig.logins.dump() == {}


def test_an_outage_of_the_metadata_costs_one_request_in_thirty_seconds(rig: Rig) -> None:
    """SECURITY section 0, item 9: the cooldown counts attempts, not successes."""
    rig.server.down = True
    for _ in range(5):
        with pytest.raises(Unavailable):
            rig.begin()
    assert rig.server.fetches == 1

    rig.server.down = False
    rig.clock.now += COOLDOWN
    rig.begin()


def test_known_metadata_serves_for_a_day_of_outage(rig: Rig) -> None:
    """Stale-if-error."""
    rig.begin()
    rig.server.down = True
    rig.clock.now += STALE_IF_ERROR - 1
    rig.begin()

    rig.clock.now += 1
    with pytest.raises(Unavailable):
        rig.begin()


def test_an_authorization_endpoint_may_have_a_query(rig: Rig) -> None:
    """RFC 6749 section 3.1."""
    rig.server.metadata["authorization_endpoint"] = f"{ISSUER}/authorize?tenant=t"

    assert rig.begin().url.startswith(f"{ISSUER}/authorize?tenant=t&")


def test_the_code_goes_to_the_token_endpoint_of_the_metadata_only(rig: Rig) -> None:
    """Mix-up, RFC 9700 section 4.4."""
    seen: list[str] = []

    class Watched(AuthorizationServer):
        def post(self, url: str, form: Mapping[str, str], headers: Mapping[str, str]) -> TokenEndpointReply:
            seen.append(url)
            return super().post(url, form, headers)

    rig.server = Watched(now=NOW)
    rig.sign_in = rig.with_identification(OpenIdConnect(rig.rules, rig.server.verified_claims))
    rig.round_trip()

    assert seen == [TOKEN_URL]
