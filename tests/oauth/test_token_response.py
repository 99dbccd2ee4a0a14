"""Reading what a token endpoint says (RFC 6749 section 5)."""

import json

import pytest

from app.http import TokenEndpointReply
from app.oauth import token_response
from app.oauth.token_response import MAX_ACCOUNT, MAX_LIFETIME, NoTokens, Tokens
from tests.oauth.world import reply

NOW = 1_800_000_000.7
ASKED = frozenset(("read", "write"))
USABLE = {"access_token": "a", "token_type": "bearer"}


def read(document: object, status: int = 200) -> Tokens:
    return token_response.read(reply(document, status), asked=ASKED, now=NOW)


def test_what_is_there_is_read() -> None:
    """RFC 6749 section 5.1."""
    tokens = read({**USABLE, "refresh_token": "r", "expires_in": 3600, "scope": "read"})
    assert tokens == Tokens("a", "r", int(NOW) + 3600, frozenset(("read",)))


def test_what_is_optional_may_be_absent() -> None:
    """RFC 6749 section 5.1: scope OPTIONAL if identical, refresh_token OPTIONAL, expires_in RECOMMENDED."""
    assert read(USABLE) == Tokens("a", None, None, ASKED)


@pytest.mark.parametrize("kind", ["bearer", "Bearer", "BEARER"])
def test_the_token_type_is_case_insensitive(kind: str) -> None:
    """RFC 6749 section 5.1."""
    assert read({**USABLE, "token_type": kind}).access_token == "a"


@pytest.mark.parametrize(
    ("expires_in", "seconds"),
    [(1, 1), ("3600", 3600), (3600.0, 3600), (10**12, MAX_LIFETIME), ("999999999999", MAX_LIFETIME)],
)
def test_lifetimes_are_clamped(expires_in: object, seconds: int) -> None:
    """SECURITY section 3, step 7: 1..10^8 clamped. Some providers send digits as text."""
    if isinstance(expires_in, float):
        with pytest.raises(NoTokens):
            read({**USABLE, "expires_in": expires_in})
    else:
        assert read({**USABLE, "expires_in": expires_in}).expires_at == int(NOW) + seconds


@pytest.mark.parametrize("expires_in", [0, -1, "-1", "", " 60", "1e3", "9" * 13, True, False, 1.5, [60], {}])
def test_a_lifetime_that_is_no_number_of_seconds_is_refused(expires_in: object) -> None:
    """Accepted would be whatever we make of it."""
    with pytest.raises(NoTokens, match="expires_in"):
        read({**USABLE, "expires_in": expires_in})


@pytest.mark.parametrize(
    ("scope", "granted"),
    [
        ("read", {"read"}),
        ("read write extra", {"read", "write", "extra"}),
        ("read,write", {"read", "write"}),
        ("", set()),
        ("  read  ", {"read"}),
        ('with"quote read', {"read"}),
        (["read"], set()),
        (5, set()),
    ],
)
def test_scopes_are_what_was_granted_whatever_was_asked(scope: object, granted: set[str]) -> None:
    """RFC 6749 section 3.3; GitHub separates with commas. A subset or a superset is noted as it is."""
    assert read({**USABLE, "scope": scope}).scopes == granted


@pytest.mark.parametrize("token", ["", "a b", "a\n", "é", None, 5, ["a"], "x" * 16_385])
def test_a_refresh_token_that_is_none_is_left_out(token: object) -> None:
    """The access token is good for a while anyway."""
    assert read({**USABLE, "refresh_token": token}).refresh_token is None


@pytest.mark.parametrize(
    ("document", "status", "reason", "gone"),
    [
        ({"error": "invalid_grant"}, 400, "invalid_grant", True),
        ({"error": "bad_refresh_token"}, 200, "bad_refresh_token", True),
        ({"error": "invalid_client"}, 401, "invalid_client", False),
        ({"error": "Ünknown <b>"}, 400, "unknown_error", False),
        ({"error": 5}, 400, "unknown_error", False),
        ({"error": "x" * 65}, 400, "unknown_error", False),
        ({}, 503, "http_503", False),
        ({**USABLE}, 302, "http_302", False),
        ({"token_type": "bearer"}, 200, "access_token", False),
    ],
)
def test_errors_say_whether_the_grant_is_gone(document: object, status: int, reason: str, gone: bool) -> None:
    """RFC 6749 section 5.2. The reason is of our making: a provider's text reaches neither log nor page."""
    with pytest.raises(NoTokens) as refused:
        read(document, status)
    assert (refused.value.reason, refused.value.grant_is_gone) == (reason, gone)


@pytest.mark.parametrize(
    ("body", "status", "reason"),
    [
        (b"<html>", 200, "not_json"),
        (b"<html>", 502, "http_502"),
        (b"", 200, "not_json"),
        (b"null", 200, "not_an_object"),
        (b'{"error":"invalid_grant","error":"x"}', 400, "http_400"),
        (b"[" * 10_000, 200, "not_json"),
        (b'{"expires_in":' + b"9" * 5000 + b"}", 200, "not_json"),
        (b"\x00" * 65_536, 200, "not_json"),
    ],
)
def test_a_body_that_is_no_json_object_is_no_answer(body: bytes, status: int, reason: str) -> None:
    """SECURITY section 1: huge, slow, odd. In particular an ambiguous invalid_grant deletes nothing."""
    with pytest.raises(NoTokens) as refused:
        token_response.read(TokenEndpointReply(status, "text/html", body), asked=ASKED, now=NOW)
    assert (refused.value.reason, refused.value.grant_is_gone) == (reason, False)


def test_tokens_do_not_print() -> None:
    """STYLE section 4, 14."""
    tokens = read({"access_token": "secret-access", "refresh_token": "secret-refresh", "token_type": "bearer"})
    answer = TokenEndpointReply(200, "", b"secret-body")
    assert "secret" not in repr(tokens) + repr(answer)


@pytest.mark.parametrize(
    ("document", "status", "account"),
    [
        ({"email": "alice@acme.example"}, 200, "alice@acme.example"),
        ({"email": "é" * 300}, 200, "é" * MAX_ACCOUNT),
        ({"email": "two\nlines"}, 200, None),
        ({"email": "\u202eright-to-left"}, 200, None),
        ({"email": "  "}, 200, None),
        ({"email": 5}, 200, None),
        ({}, 200, None),
        ([], 200, None),
        ({"email": "alice@acme.example"}, 401, None),
    ],
)
def test_an_account_is_printable_text_or_nothing(document: object, status: int, account: str | None) -> None:
    """It stands on our pages: no line breaks, no direction marks, bounded."""
    answer = TokenEndpointReply(status, "application/json", json.dumps(document).encode())
    assert token_response.read_account(answer, "email") == account
