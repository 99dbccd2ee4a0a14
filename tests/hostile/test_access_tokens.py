"""Access tokens that somebody made, found, stretched or bent. Each would be the token of the one who may erase."""

import json
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Final, TypeAlias
from uuid import uuid4

import pytest

from tests.authorization.signing import compact, ec_key, hs256, rsa_key, unsigned
from tests.hostile.draft import Draft, request
from tests.hostile.key_server import Keys
from tests.hostile.laboratory import CLIENT_ID, SCOPES, Laboratory
from tests.hostile.refusals import Erasure, Refusal, assert_refused, assert_tells_nothing, erasure
from tests.hostile.rows import each, shows
from tests.hostile.wire import exchange, wire

Claims: TypeAlias = dict[str, Any]
ENVIRONMENTS: Final = 2
RSA, EC = {"alg": "RS256", "kid": "rsa", "typ": "at+jwt"}, {"alg": "ES256", "kid": "ec", "typ": "at+jwt"}


def _now(offset: float) -> int:
    return int(time.time() + offset)


def _signed(header: dict[str, Any] | None = None, /, **changes: Any) -> Callable[[Claims], str]:
    """Signed by a key that the issuer publishes, with other claims; `...` leaves one out."""

    def make(claims: Claims) -> str:
        changed = {name: each() if callable(each) else each for name, each in changes.items()}
        kept = {name: each for name, each in {**claims, **changed}.items() if each is not ...}
        return compact(RSA | (header or {}), kept, rsa_key().sign)

    return make


def _jwk_text(claims: Claims) -> bytes:
    return json.dumps(rsa_key().jwk("rsa")).encode()


@dataclass(frozen=True)
class Forgery:
    """A token, and the status that it gets."""

    row: int
    name: str
    make: Callable[[Claims], str]
    status: int = 401

    def __str__(self) -> str:
        return f"{self.row}: {self.name}"


def _with_doubled_claim(claims: Claims) -> str:
    text = json.dumps(claims)
    return compact(RSA, f'{{"aud": "https://other.example", {text[1:]}'.encode(), rsa_key().sign)


FORGERIES: Final = (
    Forgery(61, "PEM as the secret", lambda c: compact(RSA | {"alg": "HS256"}, c, hs256(rsa_key().pem()))),
    Forgery(61, "DER as the secret", lambda c: compact(RSA | {"alg": "HS256"}, c, hs256(rsa_key().der()))),
    Forgery(61, "the JWK as the secret", lambda c: compact(RSA | {"alg": "HS256"}, c, hs256(_jwk_text(c)))),
    Forgery(61, "no signature", lambda c: compact(RSA | {"alg": "none"}, c, unsigned).rstrip(".") + ".AA"),
    Forgery(61, "none in capitals", lambda c: compact(RSA | {"alg": "NONE"}, c, unsigned) + "AA"),
    Forgery(61, "another's key", lambda c: compact(EC, c, ec_key(number=99).sign)),
    Forgery(61, "a key of the token's own", lambda c: compact(
        EC | {"jwk": ec_key(number=99).jwk("ec"), "jku": "http://127.0.0.1:9/jwks", "x5u": "http://127.0.0.1:9/x"},
        c, ec_key(number=99).sign)),
    Forgery(62, "RS256 and an EC key", lambda c: compact(RSA | {"kid": "ec"}, c, rsa_key().sign)),
    Forgery(62, "ES256 and an RSA key", lambda c: compact(EC | {"kid": "rsa"}, c, ec_key().sign)),
    Forgery(62, "PS256 of a key for RS256", lambda c: compact(RSA | {"alg": "PS256"}, c, rsa_key(alg="PS256").sign)),
    Forgery(67, "symmetric", lambda c: compact({"alg": "HS256", "kid": "symmetric"}, c, hs256(b"k" * 32))),
    Forgery(67, "for encryption", _signed({"kid": "encryption"})),
    Forgery(67, "no longer private", lambda c: compact(EC | {"kid": "private"}, c, ec_key(number=7).sign)),
    Forgery(67, "another curve", lambda c: compact(EC | {"kid": "curve"}, c, ec_key("secp256k1").sign)),
    Forgery(68, "1024 bits", lambda c: compact(RSA | {"kid": "weak"}, c, rsa_key(1024).sign)),
    Forgery(70, "a number", _signed({"kid": 1})),
    Forgery(70, "absent", lambda c: compact({"alg": "RS256", "typ": "at+jwt"}, c, rsa_key().sign)),
    Forgery(70, "empty", _signed({"kid": ""})),
    Forgery(70, "5 KB", _signed({"kid": "x" * 5000})),
    Forgery(70, "a path", _signed({"kid": "../../rsa"})),
    Forgery(70, "a list", _signed({"kid": ["rsa"]})),
    Forgery(71, "unknown", _signed({"crit": ["x"], "x": 1})),
    Forgery(71, "empty", _signed({"crit": []})),
    Forgery(71, "b64", _signed({"b64": False})),
    Forgery(73, "31 s ago", _signed(exp=lambda: _now(-31))),
    Forgery(73, "27 s ago", _signed(exp=lambda: _now(-27)), 200),
    Forgery(73, "never", _signed(exp=...)),
    Forgery(73, "as text", _signed(exp=lambda: str(_now(600)))),
    Forgery(73, "true", _signed(exp=True)),
    Forgery(73, "in a thousand years", _signed(exp=lambda: _now(3.2e10))),
    Forgery(73, "in 10^30 seconds", _signed(exp=10**30)),
    Forgery(73, "in 1e300 seconds", _signed(exp=1e300)),
    Forgery(73, "lives two days", _signed(iat=lambda: _now(-3600), exp=lambda: _now(172_800))),
    Forgery(74, "issued in 35 s", _signed(iat=lambda: _now(35))),
    Forgery(74, "issued in 29 s", _signed(iat=lambda: _now(29)), 200),
    Forgery(74, "not before 35 s", _signed(nbf=lambda: _now(35))),
    Forgery(74, "not before 29 s", _signed(nbf=lambda: _now(29)), 200),
    Forgery(74, "issued never", _signed(iat=...)),
    Forgery(76, "another", _signed(iss="https://evil.example")),
    Forgery(76, "absent", _signed(iss=...)),
    Forgery(76, "with a slash", lambda c: _signed(iss=c["iss"] + "/")(c)),
    Forgery(76, "a list with ours", lambda c: _signed(iss=[c["iss"]])(c)),
    Forgery(76, "another audience", _signed(aud="https://other.example/mcp")),
    Forgery(76, "an audience that ours begins with", lambda c: _signed(aud=c["aud"].removesuffix("/mcp"))(c)),
    Forgery(76, "an audience with a slash", lambda c: _signed(aud=c["aud"] + "/")(c)),
    Forgery(76, "no audience", _signed(aud=...)),
    Forgery(76, "no audience in a list", _signed(aud=[])),
    Forgery(76, "17 audiences", lambda c: _signed(aud=[c["aud"]] * 17)(c)),
    Forgery(76, "several audiences, ours too", lambda c: _signed(aud=["https://a.example", c["aud"]])(c), 200),
    Forgery(77, "absent", _signed(sub=...)),
    Forgery(77, "empty", _signed(sub="")),
    Forgery(77, "5", _signed(sub=5)),
    Forgery(77, "null", _signed(sub=None)),
    Forgery(77, "a control character", lambda c: _signed(sub=c["sub"] + "\n")(c)),
    Forgery(77, "a zero byte", lambda c: _signed(sub=c["sub"] + "\0admin")(c)),
    Forgery(77, "a lone surrogate", _signed(sub="\ud800")),
    Forgery(77, "256 characters", _signed(sub="x" * 256)),
    Forgery(77, "no client", _signed(client_id=...)),
    Forgery(77, "a client as a list", lambda c: _signed(client_id=[c["client_id"]])(c)),
    Forgery(79, "an ID token", _signed({"typ": "id+jwt"})),
    Forgery(79, "a logout token", _signed({"typ": "logout+jwt"})),
    Forgery(79, "a type as a number", _signed({"typ": 5})),
    Forgery(79, "for the client", _signed(aud=CLIENT_ID)),
    Forgery(79, "token_use id", _signed(token_use="id")),
    Forgery(79, "Keycloak's ID token", _signed(typ="ID")),
    Forgery(79, "bound to a key", _signed(cnf={"jkt": "x"})),
    Forgery(79, "an audience twice, the second one ours", _with_doubled_claim),
    Forgery(80, "padded", lambda c: _signed()(c) + "=="),
    Forgery(80, "five segments", lambda c: _signed()(c) + ".AA.AA"),
    Forgery(80, "two segments", lambda c: _signed()(c).rpartition(".")[0]),
    Forgery(80, "9 KB", lambda c: _signed(padding="x" * 6600)(c)),
    Forgery(80, "claims that are a list", lambda c: compact(RSA, json.dumps([c]).encode(), rsa_key().sign)),
    Forgery(80, "a header that is a list", lambda c: compact(b'["alg"]', c, rsa_key().sign)),
    Forgery(80, "a header of brackets", lambda c: compact(b"[" * 3000, c, rsa_key().sign)),
    Forgery(80, "a header of NaN", lambda c: compact(b'{"alg":"RS256","kid":"rsa","x":NaN}', c, rsa_key().sign)),
)  # fmt: skip


@pytest.fixture
def flow(lab: Laboratory) -> Iterator[Erasure]:
    """A flow of somebody's own, who finishes it afterwards."""
    begun = erasure(lab, lab.mint(f"owner-{uuid4()}"))
    yield begun
    begun.finishes()


def _presented(flow: Erasure, token: str) -> Draft:
    return flow.finish.header("Authorization", f"Bearer {token}")


@each([forgery for forgery in FORGERIES if forgery.status == 401])
def test_a_forged_token_is_refused_and_told_nothing(lab: Laboratory, flow: Erasure, case: Forgery) -> None:
    """RFC 8725, RFC 9068, RFC 6750 section 3.1: 401 invalid_token, whatever was wrong."""
    token = case.make(flow.claims)
    draft = _presented(flow, token)
    answer = exchange(lab.port, draft.wire())
    assert answer.status == 401, answer.text
    assert answer.json == {"error": "invalid_token"}
    challenge = str(answer.header("www-authenticate"))
    assert challenge.startswith('Bearer error="invalid_token", resource_metadata="')
    assert "\n" not in challenge
    assert_tells_nothing(lab, answer, token)
    draft.judge(answer)


@each([forgery for forgery in FORGERIES if forgery.status == 200])
def test_a_token_at_the_edge_of_what_is_allowed_is_accepted(lab: Laboratory, case: Forgery) -> None:
    """30 seconds are forgiven: clocks disagree."""
    begun = erasure(lab, lab.mint(f"owner-{uuid4()}"))
    token = case.make(begun.claims)
    answer = exchange(lab.port, _presented(begun, token).wire())
    assert answer.result["content"][0]["text"] == f"{begun.target} is erased."


def _token(draft: Draft) -> str:
    return str(dict(draft.headers)["Authorization"]).removeprefix("Bearer ")


def _bare(draft: Draft) -> Draft:
    return draft.header("Authorization", None)


_ABOVE_ASCII: Final = bytes(range(0x80, 0x100))
CREDENTIALS: Final = (
    Refusal(58, "in the query", lambda d: _bare(d).but(target=f"/mcp?access_token={_token(d)}"), 401),
    Refusal(58, "in a cookie", lambda d: _bare(d).header("Cookie", f"access_token={_token(d)}"), 401),
    Refusal(58, "in the body", lambda d: _bare(d).says(access_token=_token(d)), 401),
    Refusal(58, "in another header", lambda d: _bare(d).header("X-Access-Token", _token(d)), 401),
    Refusal(58, "nowhere", lambda d: _bare(d), 401),
    Refusal(59, "two headers", lambda d: d.also("Authorization", f"Bearer {_token(d)}"), (400, 401)),
    Refusal(59, "two in one header", lambda d: d.header("Authorization", f"Bearer {_token(d)},Bearer x"), (400, 401)),
    Refusal(59, "Basic", lambda d: d.header("Authorization", "Basic YWxpY2U6YWxpY2U="), (400, 401)),
    Refusal(59, "DPoP", lambda d: d.header("Authorization", f"DPoP {_token(d)}"), (400, 401)),
    Refusal(59, "no scheme", lambda d: d.header("Authorization", _token(d)), (400, 401)),
    Refusal(59, "no token", lambda d: d.header("Authorization", "Bearer"), (400, 401)),
    Refusal(59, "two spaces", lambda d: d.header("Authorization", f"Bearer  {_token(d)}"), (400, 401)),
    Refusal(59, "bytes above ASCII", lambda d: d.header("Authorization", b"Bearer " + _ABOVE_ASCII), (400, 401)),
    Refusal(80, "100 KB", lambda d: d.header("Authorization", "Bearer " + "A" * 100_000), (401, 431)),
)  # fmt: skip


@each(CREDENTIALS)
def test_a_token_in_another_place_is_none(lab: Laboratory, flow: Erasure, case: Refusal) -> None:
    """RFC 6750 section 2; MCP basic/authorization: in the Authorization header, once, and nowhere else."""
    answer = assert_refused(lab, case, case.change(flow.finish))
    if case.row == 58:
        # RFC 6750 section 3.1: who has shown no credentials gets no error code.
        assert "error=" not in str(answer.header("www-authenticate"))


def test_the_scheme_is_read_without_regard_to_case(lab: Laboratory, flow: Erasure) -> None:
    """RFC 9110 section 11.1."""
    answer = exchange(lab.port, request(_token(flow.finish), "tools/list", {}).wire())
    lower = request(_token(flow.finish), "tools/list", {}).header("Authorization", f"bearer {_token(flow.finish)}")
    assert exchange(lab.port, lower.wire()).result == answer.result


@pytest.mark.parametrize(
    "scopes",
    [
        {"scope": "reports:read"},
        {"scope": ""},
        {"scope": ...},
        {"scope": ["reports:delete", "reports:read"]},
        {"scope": {"reports:delete": True}},
        {"scope": "reports:delete,reports:read"},
        {"scope": "reports:delete\treports:read"},
        {"scope": "REPORTS:DELETE reports:read"},
    ],
    ids=["one of two", "empty", "absent", "a list", "an object", "commas", "a tab", "capitals"],
)
@shows(82)
def test_a_token_without_the_scopes_is_told_all_of_them_and_uses_nothing_up(
    lab: Laboratory, flow: Erasure, scopes: Claims
) -> None:
    """RFC 6750 section 3.1; MCP basic/authorization, Scope Challenge Handling."""
    token = _signed(**scopes)(flow.claims)
    answer = exchange(lab.port, _presented(flow, token).wire())
    assert answer.status == 403, answer.text
    challenge = str(answer.header("www-authenticate"))
    assert 'error="insufficient_scope"' in challenge
    assert 'scope="reports:delete reports:read"' in challenge
    assert_tells_nothing(lab, answer, token)


def _strangers(lab: Laboratory, count: int) -> list[int]:
    """The answers to so many tokens, each under a key id that nobody has heard of."""

    def one(number: int) -> int:
        token = lab.mint("alice", header={"kid": f"unknown-{uuid4()}"})
        return exchange(lab.port, request(token, "tools/list", {}).wire()).status

    with ThreadPoolExecutor(20) as threads:
        return list(threads.map(one, range(count)))


@pytest.mark.parametrize("answer", [Keys.GOOD, Keys.DOWN])
@shows(64, 65)
def test_made_up_key_ids_cost_the_issuer_one_request_and_honest_users_nothing(
    lab: Laboratory, flow: Erasure, answer: Keys
) -> None:
    """Rows 64 and 65: 200 of them, 20 at a time. Each environment asks once in 30 seconds at most,
    and goes on with the keys that it has.
    """
    exchange(lab.port, request(_token(flow.finish), "tools/list", {}).wire())
    before = lab.keys.fetches
    lab.keys.answer = answer
    try:
        started = time.time()
        assert set(_strangers(lab, 200)) == {401}
        periods = 1 + (time.time() - started) // 30
        assert lab.keys.fetches - before <= ENVIRONMENTS * periods
        with wire(lab.port) as connected:
            for _ in range(2 * ENVIRONMENTS):
                honest = connected.send(request(_token(flow.finish), "tools/list", {}).wire())
                assert honest.status == 200, honest.text
    finally:
        lab.keys.answer = Keys.GOOD


def test_what_the_token_says_about_keys_is_never_fetched(lab: Laboratory, flow: Erasure) -> None:
    """RFC 8725 section 3.10: `jku` and `x5u` would let a caller choose what we connect to."""
    before = lab.keys.fetches
    for name in ("jku", "x5u"):
        header = EC | {name: lab.keys.url}
        token = compact(header, flow.claims, ec_key(number=99).sign)
        assert exchange(lab.port, _presented(flow, token).wire()).status == 401
    assert lab.keys.fetches == before


def test_the_published_keys_that_are_good_do_verify(lab: Laboratory) -> None:
    """What the forgeries are compared with: the same claims under the good keys are accepted."""
    begun = erasure(lab, lab.mint(f"owner-{uuid4()}"))
    claims = begun.claims
    for header, key in ((RSA, rsa_key()), (EC, ec_key())):
        token = compact(header, {**claims, "scope": SCOPES}, key.sign)
        answer = exchange(lab.port, request(token, "tools/list", {}).wire())
        assert answer.status == 200, answer.text
    begun.finishes()
