"""Access tokens through the endpoint: which are taken, which are not, why, and what the caller is told."""

import json
import math
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.authorization import access_token
from app.authorization.access_token import TokenRules
from app.authorization.jwks import Jwks
from app.errors import InvalidRequest, InvalidToken, MissingCredentials
from app.http import HttpRequest, join_headers
from app.principal import AccessToken, Principal
from app.testing import CLIENT_ID, ISSUER, RESOURCE, Clock, Issuer, Reply, Server
from app.toolkit import Context, tool
from tests.authorization.signing import (
    Sign,
    SigningKey,
    base64url,
    compact,
    ec_key,
    hs256,
    okp_key,
    rsa_key,
    unsigned,
)

NOW = 1_790_000_000
RSA, RSA_1024, RSA_PSS, EC, ED = rsa_key(), rsa_key(1024), rsa_key(2048, "PS256"), ec_key(), okp_key()
RESOURCE_METADATA = "https://mcp.example.com/.well-known/oauth-protected-resource/mcp"
KEYS: list[Any] = [
    RSA.jwk("rsa"),
    RSA.jwk("rsa without alg", alg=...),
    RSA_PSS.jwk("pss"),
    RSA_PSS.jwk("pss without alg", alg=...),
    RSA_1024.jwk("rsa 1024"),
    EC.jwk("ec"),
    EC.jwk("ec without alg", alg=...),
    ec_key("P-384").jwk("ec 384"),
    ec_key("secp256k1").jwk("koblitz"),
    ED.jwk("ed"),
    okp_key("Ed448").jwk("ed448"),
    ec_key(number=1).jwk("for encryption", use="enc"),
    {"kty": "oct", "kid": "oct", "alg": "HS256", "k": base64url(b"s" * 32)},
    RSA.jwk("duplicate"),
    EC.jwk("duplicate"),
    RSA.jwk(""),
    EC.jwk("x" * 256),
    EC.jwk("x" * 257),
]


@tool(scopes=["reports:delete"])
def erase(ctx: Context) -> str:
    """Erase the reports, as whoever calls."""
    return f"{ctx.principal.subject} by {ctx.principal.client_id}, {' '.join(sorted(ctx.scopes))}"


@pytest.fixture(scope="module")
def server() -> Server:
    server = Server([erase], instances=1, clock=Clock(NOW))
    server.issuer.documents[f"{ISSUER}/jwks"] = {"keys": KEYS}
    return server


def claims(**changes: Any) -> dict[str, Any]:
    """Claims of a good token. A claim given as `...` is left out."""
    good = {
        "iss": ISSUER,
        "sub": "alice",
        "aud": RESOURCE,
        "client_id": CLIENT_ID,
        "scope": "reports:delete",
        "iat": NOW,
        "exp": NOW + 3600,
    }
    return {name: value for name, value in {**good, **changes}.items() if value is not ...}


def header(key: SigningKey = EC, kid: str = "ec", **changes: Any) -> dict[str, Any]:
    good = {"alg": key.alg, "typ": "at+jwt", "kid": kid}
    return {name: value for name, value in {**good, **changes}.items() if value is not ...}


def token(
    payload: Mapping[str, Any] | bytes | None = None,
    *,
    key: SigningKey = EC,
    kid: str = "ec",
    sign: Sign | None = None,
    **changes: Any,
) -> str:
    """A token; `changes` go to its header."""
    return compact(header(key, kid, **changes), claims() if payload is None else payload, sign or key.sign)


def call(server: Server, authorization: str | None, *, method: str = "tools/call") -> Reply:
    params = {"name": "erase", "arguments": {}} if method == "tools/call" else {}
    return server.client().request(method, params, authorization=authorization)


def assert_accepted(server: Server, sent: str) -> str:
    reply = call(server, f"Bearer {sent}")
    assert reply.status == 200, reply.http.facts
    return reply.text


def assert_refused(server: Server, sent: str, reason: str) -> None:
    """401 `invalid_token`, for the right reason, and with nothing of the token or the reason."""
    reply = call(server, f"Bearer {sent}")
    assert (reply.status, reply.http.facts["reason"]) == (401, reason)
    challenge = f'Bearer error="invalid_token", resource_metadata="{RESOURCE_METADATA}"'
    assert reply.http.headers["www-authenticate"] == challenge
    assert reply.http.body == b'{"error":"invalid_token"}'


# Signatures


@pytest.mark.parametrize(
    ("key", "kid"),
    [
        (RSA, "rsa"),
        (RSA, "rsa without alg"),
        (RSA_PSS, "pss"),
        (RSA_PSS, "pss without alg"),
        (EC, "ec"),
        (EC, "ec without alg"),
        (ED, "ed"),
        (RSA, "duplicate"),
        (EC, "duplicate"),
        (EC, "x" * 256),
    ],
)
def test_a_token_signed_with_a_published_key_is_taken(server: Server, key: SigningKey, kid: str) -> None:
    """SECURITY 4.1 and 4.2: RS256, PS256, ES256, EdDSA; every key with the kid is tried."""
    assert assert_accepted(server, token(key=key, kid=kid)) == f"alice by {CLIENT_ID}, reports:delete"


def jwk_text(key: SigningKey, kid: str) -> bytes:
    return json.dumps(key.jwk(kid)).encode()


@pytest.mark.parametrize(
    ("forged", "reason"),
    [
        pytest.param(token(alg="none", sign=unsigned), "shape", id="60: none, with an empty signature"),
        pytest.param(token(alg="none", sign=lambda _: b"x"), "alg", id="60: none"),
        pytest.param(token(alg="None", sign=lambda _: b"x"), "alg", id="60: None"),
        pytest.param(token(alg=..., sign=lambda _: b"x"), "alg", id="60: no alg"),
        pytest.param(token(alg=None), "alg", id="60: alg null"),
        pytest.param(token(alg=["ES256"]), "alg", id="60: alg as a list"),
        pytest.param(token(alg="es256"), "alg", id="60: alg in lower case"),
        pytest.param(token(kid="rsa", alg="HS256", sign=hs256(RSA.pem())), "alg", id="61: HS256, public PEM"),
        pytest.param(token(kid="rsa", alg="HS256", sign=hs256(RSA.pem().strip())), "alg", id="61: HS256, PEM stripped"),
        pytest.param(token(kid="rsa", alg="HS256", sign=hs256(RSA.der())), "alg", id="61: HS256, public DER"),
        pytest.param(token(kid="rsa", alg="HS256", sign=hs256(jwk_text(RSA, "rsa"))), "alg", id="61: HS256, JWK text"),
        pytest.param(
            token(kid="rsa", alg="HS256", sign=hs256(RSA.members["n"].encode())), "alg", id="61: HS256, modulus"
        ),
        pytest.param(token(kid="oct", alg="HS256", sign=hs256(b"s" * 32)), "alg", id="67: HS256, key of kty oct"),
        pytest.param(token(kid="oct"), "unknown kid", id="67: kid of a key of kty oct"),
        pytest.param(token(key=RSA, kid="ec"), "signature", id="62: RS256, kid of an EC key"),
        pytest.param(token(key=EC, kid="rsa"), "signature", id="62: ES256, kid of an RSA key"),
        pytest.param(token(key=ED, kid="ec"), "signature", id="62: EdDSA, kid of an EC key"),
        pytest.param(token(key=RSA_PSS, kid="rsa"), "signature", id="63: PS256, key for RS256"),
        pytest.param(token(key=RSA, kid="pss"), "signature", id="63: RS256, key for PS256"),
        pytest.param(token(kid="rsa", alg="RS384", key=RSA), "alg", id="63: RS384"),
        pytest.param(token(kid="rsa", alg="RS512", key=RSA), "alg", id="63: RS512"),
        pytest.param(token(kid="ec", alg="ES512"), "alg", id="63: ES512"),
        pytest.param(token(key=RSA_1024, kid="rsa 1024"), "unknown kid", id="68: RSA 1024"),
        pytest.param(token(key=ec_key("P-384"), kid="ec 384"), "unknown kid", id="68: P-384"),
        pytest.param(token(key=ec_key("secp256k1"), kid="koblitz"), "unknown kid", id="68: secp256k1"),
        pytest.param(token(key=okp_key("Ed448"), kid="ed448"), "unknown kid", id="68: Ed448"),
        pytest.param(token(key=ec_key(number=1), kid="for encryption"), "unknown kid", id="69: a key for encryption"),
        pytest.param(token(key=ec_key(number=2)), "signature", id="another key of the same kind"),
        pytest.param(token(sign=lambda _: b"\x00" * 64), "signature", id="ES256 with r = s = 0"),
        pytest.param(token(sign=lambda _: b"\x00"), "signature", id="a signature of one byte"),
        pytest.param(token(sign=lambda m: EC.sign(m) + b"\x00"), "signature", id="a signature too long"),
    ],
)
def test_a_forged_signature_is_refused(server: Server, forged: str, reason: str) -> None:
    """SECURITY 4.1, 4.2 and items 60 to 69; RFC 8725 sections 2.1 and 3.1."""
    assert_refused(server, forged, reason)


def test_a_key_in_the_token_is_not_a_key_of_the_issuer(server: Server) -> None:
    """SECURITY 1, SSRF: `jku`, `x5u`, `jwk` and `x5c` are ignored, and nothing is fetched."""
    mine = ec_key(number=3)
    assert_accepted(server, token())
    fetched = list(server.issuer.fetched)
    assert_refused(server, token(key=mine, jku="https://evil.example/jwks"), "signature")
    assert_refused(server, token(key=mine, x5u="https://evil.example/cert"), "signature")
    assert_refused(server, token(key=mine, jwk=mine.jwk("ec")), "signature")
    assert_refused(server, token(key=mine, x5c=[base64url(mine.der())]), "signature")
    assert_accepted(server, token(jku="https://evil.example/jwks", jwk=mine.jwk("ec")))
    assert server.issuer.fetched == fetched


# The header


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        pytest.param({"kid": 1}, "kid", id="70: kid 1"),
        pytest.param({"kid": ...}, "kid", id="70: no kid"),
        pytest.param({"kid": None}, "kid", id="70: kid null"),
        pytest.param({"kid": ["ec"]}, "kid", id="70: kid as a list"),
        pytest.param({"kid": {"a": 1}}, "kid", id="70: kid as an object"),
        pytest.param({"kid": True}, "kid", id="70: kid true"),
        pytest.param({"kid": ""}, "kid", id="70: kid empty, although a key has that id"),
        pytest.param({"kid": "x" * 257}, "kid", id="70: a kid of 257 characters"),
        pytest.param({"kid": "x" * 4000}, "kid", id="70: a kid of 4000 characters"),
        pytest.param({"kid": "../../x"}, "unknown kid", id="70: a path as kid"),
        pytest.param({"kid": "EC"}, "unknown kid", id="70: kid in another case"),
        pytest.param({"kid": "ec\x00"}, "unknown kid", id="70: kid and NUL"),
        pytest.param({"kid": "' OR 1=1 --"}, "unknown kid", id="70: an injection as kid"),
        pytest.param({"crit": ["x"]}, "crit", id="71: crit"),
        pytest.param({"crit": []}, "crit", id="71: crit empty"),
        pytest.param({"crit": None}, "crit", id="71: crit null"),
        pytest.param({"crit": ["b64"], "b64": False}, "crit", id="71: crit b64"),
        pytest.param({"b64": False}, "crit", id="71: b64 false"),
        pytest.param({"b64": True}, "crit", id="71: b64 true"),
        pytest.param({"typ": "id+jwt"}, "typ", id="72: an ID token"),
        pytest.param({"typ": "logout+jwt"}, "typ", id="79: a logout token"),
        pytest.param({"typ": "dpop+jwt"}, "typ", id="72: a DPoP proof"),
        pytest.param({"typ": "secevent+jwt"}, "typ", id="72: a security event"),
        pytest.param({"typ": "at+jwt "}, "typ", id="72: a space after typ"),
        pytest.param({"typ": ""}, "typ", id="72: typ empty"),
        pytest.param({"typ": None}, "typ", id="72: typ null"),
        pytest.param({"typ": 5}, "typ", id="72: typ 5"),
        pytest.param({"typ": ["at+jwt"]}, "typ", id="72: typ as a list"),
        pytest.param({"typ": {"at+jwt": 1}}, "typ", id="72: typ as an object"),
    ],
)
def test_a_header_with_more_or_less_than_it_may_have_is_refused(
    server: Server, changes: dict[str, Any], reason: str
) -> None:
    """SECURITY 4.1, items 70 to 72; RFC 7515 section 4.1.11; RFC 8725 section 3.11."""
    assert_refused(server, token(**changes), reason)


@pytest.mark.parametrize("typ", [..., "JWT", "jwt", "at+jwt", "AT+JWT", "application/at+jwt"])
def test_the_types_of_an_access_token_are_taken(server: Server, typ: Any) -> None:
    """SECURITY 4.1: many issuers do not set the type of RFC 9068 yet."""
    assert_accepted(server, token(typ=typ))


@pytest.mark.parametrize(
    ("typ", "taken"), [("at+jwt", True), ("application/at+jwt", True), ("JWT", False), (..., False)]
)
def test_the_type_of_rfc_9068_can_be_required(typ: Any, taken: bool) -> None:
    """SECURITY 4.1; RFC 9068 section 4."""
    rules = TokenRules(ISSUER, RESOURCE, require_at_jwt=True)
    if taken:
        assert verified(token(typ=typ), rules).principal.subject == "alice"
    else:
        with pytest.raises(InvalidToken, match="typ"):
            verified(token(typ=typ), rules)


def raw_header(text: bytes) -> str:
    return compact(text, claims(), EC.sign)


@pytest.mark.parametrize(
    ("sent", "reason"),
    [
        pytest.param(raw_header(b"not JSON"), "header: not JSON", id="no JSON"),
        pytest.param(raw_header(b'["ES256"]'), "header: not an object", id="a list"),
        pytest.param(raw_header(b'"ES256"'), "header: not an object", id="a text"),
        pytest.param(raw_header(b"\xff"), "header: not JSON", id="no UTF-8"),
        pytest.param(raw_header(b'{"alg":"none","alg":"ES256","kid":"ec"}'), "header: not JSON", id="alg twice"),
        pytest.param(raw_header(b'{"alg":"ES256","kid":"ec","k\\u0069d":"rsa"}'), "header: not JSON", id="kid twice"),
        pytest.param(raw_header(b'{"a":' * 1000), "header: not JSON", id="a thousand objects"),
        pytest.param(
            raw_header(b'{"id":9223372036854775808,"a":' + b"[" * 4000), "header: not JSON", id="a big id, then depth"
        ),
        pytest.param(
            raw_header(b'{"alg":"ES256","kid":"ec","x":1e999}'), "header: not JSON", id="a number beyond range"
        ),
        pytest.param("A." + token().split(".", 1)[1], "header: not Base64", id="a header of one character"),
    ],
)
def test_a_header_that_is_no_json_object_is_refused(server: Server, sent: str, reason: str) -> None:
    """SECURITY 0.6: never 500, whatever an unauthenticated caller sends."""
    assert_refused(server, sent, reason)


# The shape


GOOD = token()


@pytest.mark.parametrize(
    "sent",
    [
        pytest.param(GOOD + "=", id="80: one padding character"),
        pytest.param(GOOD + "==", id="80: two padding characters"),
        pytest.param(GOOD + "\n", id="80: a newline"),
        pytest.param(GOOD + "\x00", id="80: a NUL"),
        pytest.param("\t" + GOOD, id="80: a tab"),
        pytest.param(GOOD + ".", id="80: an empty fourth segment"),
        pytest.param(GOOD + ".AAAA.AAAA", id="80: five segments, a JWE"),
        pytest.param(GOOD.rsplit(".", 1)[0], id="80: two segments"),
        pytest.param(GOOD.rsplit(".", 1)[0] + ".", id="80: no signature"),
        pytest.param("." + GOOD.split(".", 1)[1], id="80: no header"),
        pytest.param(GOOD.split(".")[0] + ".." + GOOD.split(".")[2], id="80: detached payload"),
        pytest.param("A" * 100_000, id="80: 100 KB"),
        pytest.param("A." * 50_000, id="80: 50,000 segments"),
        pytest.param(GOOD.replace(".", "\uff0e"), id="80: full-width dots"),
        pytest.param(GOOD + "é", id="80: a letter outside ASCII"),
        pytest.param(GOOD[:-1] + "\u0661", id="80: an Arabic digit"),
        pytest.param(GOOD.replace(".", "+", 1), id="80: the other Base64 alphabet"),
        pytest.param("opaque-token", id="80: an opaque token"),
        pytest.param("{}", id="80: JSON serialisation"),
        pytest.param("undefined", id="80: undefined"),
    ],
)
def test_only_a_compact_jws_is_looked_at(server: Server, sent: str) -> None:
    """SECURITY 4 and item 80: one spelling, at most 8 KiB."""
    assert_refused(server, sent, "shape")


def test_the_size_limit_is_exact(server: Server) -> None:
    """SECURITY 4: 8 KiB."""

    def of_size(size: int) -> str:
        filler = 0
        while len(sent := token(claims(filler="x" * filler))) < size:
            filler += max(1, (size - len(sent)) * 3 // 4 - 2)
        return sent

    assert len(of_size(8192)) == 8192
    assert_accepted(server, of_size(8192))
    assert_refused(server, of_size(8193), "shape")


@settings(deadline=None, max_examples=150)
@given(data=st.data())
def test_an_edited_token_is_refused(data: st.DataObject) -> None:
    """RFC 7515: what was not signed is not verified."""
    start = data.draw(st.integers(0, len(GOOD) - 2))
    end = data.draw(st.integers(start, min(len(GOOD) - 1, start + 8)))
    inserted = data.draw(st.text(alphabet="ABab01-_.= \n\u0661", max_size=6))
    edited = GOOD[:start] + inserted + GOOD[end:]
    if edited != GOOD:
        with pytest.raises(InvalidToken):
            verified(edited)


# The claims


def raw_claims(text: str) -> str:
    """Claims with a member written by hand in front: what a JSON library would not write."""
    return compact(header(), b"{" + text.encode() + b"," + json.dumps(claims()).encode()[1:], EC.sign)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        # exp, iat and nbf
        pytest.param({"exp": ...}, "exp, iat and nbf must be numbers", id="74: no exp"),
        pytest.param({"iat": ...}, "exp, iat and nbf must be numbers", id="74: no iat"),
        *[
            pytest.param({claim: value}, "exp, iat and nbf must be numbers", id=f"74: {claim} {value!r:.20}")
            for claim in ("exp", "iat", "nbf")
            for value in (None, str(NOW + 60), True, False, [NOW + 60], {"at": NOW}, 2**53, 1e300)
        ],
        pytest.param({"exp": NOW - 31}, "expired", id="73: exp 31 s ago"),
        pytest.param({"exp": NOW - 30}, "expired", id="73: exp 30 s ago"),
        pytest.param({"exp": 0}, "expired", id="73: exp 0"),
        pytest.param({"exp": -1, "iat": -2}, "expired", id="73: exp below zero"),
        pytest.param({"iat": NOW + 31}, "not yet valid", id="74: iat in 31 s"),
        pytest.param({"iat": NOW + 300}, "not yet valid", id="101: iat in 5 min"),
        pytest.param({"nbf": NOW + 31}, "not yet valid", id="74: nbf in 31 s"),
        pytest.param({"exp": NOW + 86_401}, "lives too long", id="75: a life of a day and a second"),
        pytest.param({"exp": 2**53 - 1}, "lives too long", id="75: an exp far away"),
        pytest.param({"iat": NOW - 86_400, "exp": NOW + 1}, "lives too long", id="75: issued a day ago"),
        pytest.param({"iat": 0}, "lives too long", id="75: issued in 1970"),
        pytest.param({"iat": -(10**15)}, "lives too long", id="75: issued before the stars"),
        # iss
        pytest.param({"iss": "https://evil.example"}, "iss", id="76: another issuer"),
        pytest.param({"iss": ISSUER + "/"}, "iss", id="76: a trailing slash"),
        pytest.param({"iss": ISSUER.upper()}, "iss", id="76: another case"),
        pytest.param({"iss": ISSUER.replace("https", "http")}, "iss", id="76: http"),
        pytest.param({"iss": [ISSUER]}, "iss", id="76: a list"),
        pytest.param({"iss": None}, "iss", id="76: null"),
        pytest.param({"iss": ...}, "iss", id="76: missing"),
        # sub
        *[
            pytest.param({"sub": value}, "sub", id=f"77: sub {value!r:.24}")
            for value in (..., "", 5, None, True, ["alice"], {"id": 1}, "a\nb", "a\x00", "a\x7f", "a\x85b", "x" * 256)
        ],
        # aud
        *[
            pytest.param({"aud": value}, "aud", id=f"102: aud {str(value)[:60]}")
            for value in (
                ...,
                None,
                "",
                [],
                {},
                5,
                True,
                CLIENT_ID,
                RESOURCE + "/",
                RESOURCE + "/tools",
                RESOURCE[:-1],
                RESOURCE.upper(),
                RESOURCE.replace("https", "http"),
                RESOURCE.replace(".com", ".com:443"),
                RESOURCE + "?x=1",
                RESOURCE + " ",
                f"{RESOURCE} {CLIENT_ID}",
                "https://mcp.example.com",
                "https://mcp.example.com/",
                "https://other.example.com/mcp",
                "*",
                [RESOURCE + "/"],
                [[RESOURCE]],
                {RESOURCE: 1},
                [CLIENT_ID],
                [RESOURCE, 5],
                [RESOURCE, None],
                [{"a": 1}, RESOURCE],
                [RESOURCE] * 17,
            )
        ],
        # client
        *[
            pytest.param({"client_id": value}, "client_id", id=f"client_id {value!r:.24}")
            for value in (..., "", None, 5, ["x"], "a\nb", "x" * 256)
        ],
        pytest.param({"client_id": None, "azp": CLIENT_ID}, "client_id", id="client_id null, azp set"),
        pytest.param({"client_id": ..., "azp": ""}, "client_id", id="azp empty"),
        # what is not a bearer access token
        pytest.param({"cnf": {"jkt": "x"}}, "cnf", id="81: bound to a DPoP key"),
        pytest.param({"cnf": {"x5t#S256": "x"}}, "cnf", id="81: bound to a certificate"),
        pytest.param({"cnf": None}, "cnf", id="81: cnf null"),
        pytest.param({"cnf": {}}, "cnf", id="81: cnf empty"),
        pytest.param({"aud": CLIENT_ID, "nonce": "n"}, "aud", id="79: an ID token"),
        pytest.param({"token_use": "id"}, "not an access token", id="79: an ID token of Cognito"),
        pytest.param({"typ": "ID"}, "not an access token", id="79: an ID token of Keycloak"),
        pytest.param({"typ": "Refresh"}, "not an access token", id="79: a refresh token of Keycloak"),
    ],
)
def test_claims_that_do_not_say_what_they_must_are_refused(
    server: Server, changes: dict[str, Any], reason: str
) -> None:
    """SECURITY 4.3 to 4.6, items 73 to 81; CASES 101 and 102: each with a good signature."""
    assert_refused(server, token(claims(**changes)), reason)


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"exp": NOW - 29}, id="73: exp 29 s ago"),
        pytest.param({"exp": NOW - 29.5}, id="73: exp 29.5 s ago"),
        pytest.param({"exp": NOW + 0.5}, id="exp a fraction"),
        pytest.param({"iat": NOW + 29}, id="74: iat in 29 s"),
        pytest.param({"nbf": NOW + 29}, id="74: nbf in 29 s"),
        pytest.param({"nbf": 0}, id="nbf long ago"),
        pytest.param({"iat": NOW + 20}, id="101: iat in 20 s"),
        pytest.param({"exp": NOW + 86_400}, id="75: a life of a day"),
        pytest.param({"aud": [RESOURCE]}, id="78: aud as a list"),
        pytest.param({"aud": [CLIENT_ID, RESOURCE, "https://other.example.com"]}, id="102: aud among others"),
        pytest.param({"aud": [RESOURCE] * 16}, id="78: sixteen audiences"),
        pytest.param({"sub": "x" * 255}, id="77: a sub of 255 characters"),
        pytest.param({"sub": "auth0|us\u00e9r 😀"}, id="77: a sub in any script"),
        pytest.param({"client_id": ..., "azp": CLIENT_ID}, id="azp for client_id"),
        pytest.param({"azp": "another"}, id="client_id before azp"),
        pytest.param({"token_use": "access"}, id="an access token of Cognito"),
        pytest.param({"typ": "Bearer"}, id="an access token of Keycloak"),
        pytest.param({"unknown": {"a": [1, None]}, "jti": "x", "auth_time": 1}, id="claims that we do not know"),
    ],
)
def test_claims_at_the_edge_are_taken(server: Server, changes: dict[str, Any]) -> None:
    """SECURITY 4.3 to 4.5: a leeway of 30 s, a life of a day, aud as text or list."""
    assert CLIENT_ID in assert_accepted(server, token(claims(**changes)))


@pytest.mark.parametrize(
    "sent",
    [
        pytest.param(raw_claims('"sub":"mallory"'), id="sub twice"),
        pytest.param(raw_claims('"s\\u0075b":"mallory"'), id="sub in two spellings"),
        pytest.param(raw_claims(f'"exp":{NOW + 9999}'), id="exp twice"),
        pytest.param(raw_claims('"x":{"a":1,"a":2}'), id="a duplicate deep inside"),
        pytest.param(raw_claims('"nbf":NaN'), id="nbf NaN"),
        pytest.param(raw_claims('"nbf":1e400'), id="nbf beyond range"),
        pytest.param(raw_claims('"nbf":' + "9" * 4400), id="75: an nbf of 4400 digits"),
        pytest.param(raw_claims('"nbf":9223372036854775808'), id="nbf 2^63"),
        pytest.param(raw_claims('"x":"\\ud800"'), id="77: a lone surrogate"),
        pytest.param(raw_claims('"x":' + "[" * 65 + "]" * 65), id="65 lists"),
        pytest.param(
            compact(header(), b"\xef\xbb\xbf" + json.dumps(claims()).encode(), EC.sign), id="a byte order mark"
        ),
        pytest.param(compact(header(), json.dumps(claims()).encode("utf-16"), EC.sign), id="UTF-16"),
        pytest.param(compact(header(), b"no JSON", EC.sign), id="no JSON"),
    ],
)
def test_claims_that_are_no_strict_json_are_refused(server: Server, sent: str) -> None:
    """SECURITY 4.7: two readers of one payload must not see two subjects."""
    assert_refused(server, sent, "claims: not JSON")


@pytest.mark.parametrize("payload", [b"[]", b'"alice"', b"5", b"null"])
def test_claims_that_are_no_object_are_refused(server: Server, payload: bytes) -> None:
    """RFC 7519 section 7.2."""
    assert_refused(server, compact(header(), payload, EC.sign), "claims: not an object")


class Keys:
    """A source of one key set."""

    def fetch(self, url: str) -> object:
        return {"keys": KEYS}


RULES = TokenRules(ISSUER, RESOURCE)


def verified(sent: str, rules: TokenRules = RULES, *, now: float = NOW) -> AccessToken:
    return access_token.verify(sent, Jwks(Keys(), issuer=ISSUER, jwks_url=f"{ISSUER}/jwks"), rules, now=now)


def test_a_clock_that_is_no_number_accepts_nothing() -> None:
    """STYLE 4.10: acceptance is stated positively."""
    keys = Jwks(Keys(), issuer=ISSUER, jwks_url=f"{ISSUER}/jwks")
    access_token.verify(token(), keys, RULES, now=NOW)
    with pytest.raises(InvalidToken, match="expired"):
        access_token.verify(token(), keys, RULES, now=math.nan)


def test_a_verified_token_tells_who_what_and_until_when() -> None:
    """DESIGN 6: Principal(issuer, subject, client_id)."""
    assert verified(token()) == AccessToken(
        Principal(ISSUER, "alice", CLIENT_ID), frozenset({"reports:delete"}), NOW + 3600
    )


def test_the_user_can_be_named_by_another_claim() -> None:
    """SECURITY 3, Pairwise sub: `oid` where `sub` differs per client. `sub` is required all the same."""
    rules = TokenRules(ISSUER, RESOURCE, subject_claim="oid")
    assert verified(token(claims(oid="o-1")), rules).principal.subject == "o-1"
    for changes in ({}, {"oid": ""}, {"oid": 5}, {"oid": None}, {"oid": "o-1", "sub": ...}, {"oid": "a\x00"}):
        with pytest.raises(InvalidToken, match="sub"):
            verified(token(claims(**changes)), rules)


@pytest.mark.parametrize(
    ("changes", "scopes"),
    [
        ({"scope": "a b"}, {"a", "b"}),
        ({"scope": "  a  b "}, {"a", "b"}),
        ({"scope": ""}, set()),
        ({"scope": ...}, set()),
        ({"scope": ..., "scp": "a b"}, {"a", "b"}),
        ({"scope": ..., "scp": ["a", "b"]}, {"a", "b"}),
        ({"scope": ..., "scp": []}, set()),
        ({"scope": ..., "scp": ["a", 5]}, set()),
        ({"scope": ..., "scp": {"a": 1}}, set()),
        ({"scope": ..., "scp": 5}, set()),
        ({"scope": ["a"]}, set()),
        ({"scope": {"a": 1}}, set()),
        ({"scope": True}, set()),
        ({"scope": "a", "scp": ["b"]}, {"a"}),
        ({"scope": "a\tb\u2003c"}, {"a\tb\u2003c"}),
        ({"scope": "A"}, {"A"}),
    ],
)
def test_scopes_are_read_from_their_standard_forms_only(changes: dict[str, Any], scopes: set[str]) -> None:
    """SECURITY 4.5: RFC 6749 section 3.3 separates by the space; `scp` is how Entra and Okta say it."""
    assert verified(token(claims(**changes))).scopes == scopes


@pytest.mark.parametrize(
    "changes", [{"scope": "reports:read"}, {"scope": ["reports:delete"]}, {"scope": "reports:deleted"}, {"scope": ...}]
)
def test_a_token_without_the_scope_gets_403_with_all_that_is_needed(server: Server, changes: dict[str, Any]) -> None:
    """SECURITY item 82; RFC 6750 section 3.1."""
    reply = call(server, f"Bearer {token(claims(**changes))}")
    assert reply.status == 403
    assert reply.http.headers["www-authenticate"] == (
        f'Bearer error="insufficient_scope", resource_metadata="{RESOURCE_METADATA}", scope="reports:delete"'
    )


# The Authorization header


@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER", "bEaReR"])
def test_the_scheme_is_case_insensitive(server: Server, scheme: str) -> None:
    """RFC 9110 section 11.1."""
    assert call(server, f"{scheme} {token()}").status == 200


@pytest.mark.parametrize(
    "authorization",
    [
        pytest.param(None, id="no header"),
        pytest.param("", id="an empty header"),
        pytest.param("Basic YTpi", id="Basic"),
        pytest.param('Digest username="a", realm="b"', id="Digest, whose commas separate parameters"),
        pytest.param("DPoP " + GOOD, id="81: DPoP"),
        pytest.param(GOOD, id="a token without a scheme"),
        pytest.param("Bearer\t" + GOOD, id="a tab after the scheme"),
        pytest.param("Token " + GOOD, id="another scheme"),
    ],
)
def test_without_a_bearer_token_the_challenge_has_no_error(server: Server, authorization: str | None) -> None:
    """RFC 6750 section 3.1: no error code for a request without authentication information."""
    reply = call(server, authorization)
    assert reply.status == 401
    assert reply.http.headers["www-authenticate"] == f'Bearer resource_metadata="{RESOURCE_METADATA}"'


@pytest.mark.parametrize(
    "authorization",
    [
        pytest.param("Bearer", id="no token"),
        pytest.param("Bearer ", id="an empty token"),
        pytest.param("Bearer  " + GOOD, id="two spaces"),
        pytest.param(f"Bearer {GOOD} ", id="a space after"),
        pytest.param(f"Bearer {GOOD} {GOOD}", id="two tokens"),
        pytest.param(f"Bearer {GOOD},Bearer {GOOD}", id="59: two headers"),
        pytest.param(f"Bearer {GOOD}, Bearer x", id="59: two credentials"),
        pytest.param(f"Bearer {GOOD},Basic YTpi", id="59: two schemes"),
        pytest.param(f"Bearer {GOOD},", id="59: a comma after"),
    ],
)
def test_a_malformed_or_repeated_header_is_400(server: Server, authorization: str) -> None:
    """SECURITY item 59; RFC 6750 section 3.1, invalid_request."""
    reply = call(server, authorization)
    assert reply.status == 400
    assert reply.http.headers["www-authenticate"] == (
        f'Bearer error="invalid_request", resource_metadata="{RESOURCE_METADATA}"'
    )


def test_two_headers_never_become_one_token() -> None:
    """SECURITY item 59: a duplicate never hides behind its first value, whichever scheme comes first."""
    for pair in (("Bearer a", "Bearer b"), ("Basic a", "Bearer b"), ("Bearer a", "Basic b")):
        headers = join_headers([("Authorization", pair[0]), ("authorization", pair[1])])
        with pytest.raises((InvalidRequest, MissingCredentials)):
            access_token.bearer_token(headers)


@pytest.mark.parametrize("place", ["query", "cookie", "body", "x-access-token"])
def test_a_token_counts_in_the_authorization_header_only(server: Server, place: str) -> None:
    """SECURITY item 58; MCP basic/authorization: never in the query."""
    headers = {"content-type": "application/json", "accept": "*/*"}
    if place in ("cookie", "x-access-token"):
        headers[place] = f"access_token={GOOD}"
    body = json.dumps({"access_token": GOOD}).encode() if place == "body" else b"{}"
    query = f"access_token={GOOD}" if place == "query" else ""
    reply = server.respond(HttpRequest("POST", "/mcp", headers, body, query))
    assert reply.status == 401
    assert "error=" not in reply.http.headers["www-authenticate"]


# What nobody may see


LEAKS: list[Callable[[], str]] = [
    lambda: token(claims(sub="sentinel\n")),
    lambda: token(claims(aud="https://sentinel.example")),
    lambda: token(kid="sentinel"),
    lambda: token(claims(iss="sentinel")),
    lambda: "sentinel",
    lambda: token(key=ec_key(number=4)),
]


@pytest.mark.parametrize("leak", LEAKS)
def test_a_refusal_repeats_nothing_of_the_token(server: Server, leak: Callable[[], str]) -> None:
    """SECURITY 4, Responses: neither in a header nor in the body nor in what is logged."""
    sent = leak()
    reply = call(server, f"Bearer {sent}")
    shown = f"{dict(reply.http.headers)} {reply.http.body!r} {dict(reply.http.facts)}"
    assert "sentinel" not in shown
    assert not any(part in shown for part in sent.split(".") if len(part) > 8)


def test_the_issuer_of_the_kit_and_the_signer_by_hand_agree(server: Server) -> None:
    """The kit's tokens are made by PyJWT; if one of both were wrong the tests would prove nothing."""
    kit = Issuer(Clock(NOW))
    keys = Jwks(kit, issuer=ISSUER)
    assert access_token.verify(kit.mint(scope="reports:delete"), keys, RULES, now=NOW) == verified(token())
