"""The doctor at the pages: cookies and headers as our own pages set them, and every attribute that may get lost."""

import pytest

from app.web.site import Site
from infra.doctor.finding import Level
from infra.doctor.pages import check_cookies, check_page_headers

HTTPS = Site("https://mcp.example.com")
LOOPBACK = Site("http://127.0.0.1:8000")
COOKIE = HTTPS.set_cookie("mcp_login", "secret", max_age=300)


def test_what_our_pages_set_is_right() -> None:
    """RFC 6265bis; SECURITY section 3."""
    assert check_cookies([COOKIE], secure=True).level is Level.OK
    assert check_cookies([LOOPBACK.set_cookie("mcp_login", "secret", max_age=300)], secure=False).level is Level.OK
    assert check_page_headers(HTTPS.headers(), secure=True).level is Level.OK
    assert check_page_headers(LOOPBACK.headers(), secure=False).level is Level.OK


def test_pages_that_think_they_are_on_a_loopback_address_are_found_behind_https() -> None:
    """The application with a wrong MCP_RESOURCE_URL: cookies without Secure, and no HSTS."""
    found = check_cookies([LOOPBACK.set_cookie("mcp_login", "secret", max_age=300)], secure=True)
    assert (found.level, "Secure" in found.text, "__Host-" in found.text) == (Level.FAIL, True, True)
    assert "secret" not in found.text
    found = check_page_headers(LOOPBACK.headers(), secure=True)
    assert (found.level, "Strict-Transport-Security" in found.text) == (Level.FAIL, True)


@pytest.mark.parametrize(
    ("old", "new", "named"),
    [
        ("; Secure", "", "Secure"),
        ("; HttpOnly", "", "HttpOnly"),
        ("SameSite=Lax", "SameSite=None", "SameSite=Lax"),
        ("Path=/", "Path=/auth", "Path=/"),
        ("; Secure", "; Secure; Domain=example.com", "no Domain"),
        ("__Host-", "", "__Host-"),
    ],
)
def test_a_cookie_that_lost_an_attribute_is_found(old: str, new: str, named: str) -> None:
    """RFC 6265bis, The __Host- prefix."""
    found = check_cookies([COOKIE, COOKIE.replace(old, new)], secure=True)
    assert (found.level, named in found.text) == (Level.FAIL, True)


def test_a_sign_in_without_a_cookie_is_found() -> None:
    """A CDN that takes Set-Cookie away."""
    assert check_cookies([], secure=True).level is Level.FAIL


@pytest.mark.parametrize(
    "name",
    [
        *("content-security-policy", "x-content-type-options", "referrer-policy", "cache-control"),
        "strict-transport-security",
    ],
)
def test_a_page_that_lost_a_header_is_found(name: str) -> None:
    """OWASP Secure Headers."""
    headers = {each: value for each, value in HTTPS.headers().items() if each != name}
    found = check_page_headers(headers, secure=True)
    assert (found.level, name in found.text.lower()) == (Level.FAIL, True)
