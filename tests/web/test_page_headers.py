"""What every page carries, wherever it comes from: headers, cookies, and links that no request can move."""

import re
from urllib.parse import urlencode

import httpx2
import pytest

from app.http import join_headers
from app.web.application import create_app
from app.web.pages import client_host
from app.web.site import Site, csp_source
from app.web.visit import MalformedRequest, Visit
from tests.oauth.authorization_server import ISSUER
from tests.web.world import ALICE, ORIGIN, PROVIDER_ORIGIN, World

POLICY = "default-src 'none'; style-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'"


@pytest.fixture
def world() -> World:
    return World()


def pages(world: World) -> dict[str, httpx2.Response]:
    """One response of every kind."""
    alice, bob, nobody = world.browser("alice"), world.browser("bob"), world.browser()
    link = world.link()
    consent = alice.open(link)
    found = {
        "sign-in": nobody.get(link),
        "consent": consent,
        "secret": alice.open(world.secret_link()),
        "wrong account": bob.get(link),
        "unknown": nobody.get(f"/connect/{'A' * 43}"),
        "method": alice.get(f"{link}/start"),
        "no token": alice.post(f"{link}/start", {"csrf_token": ""}),
        "no session": nobody.post(f"{link}/start", {"csrf_token": ""}),
        "refused callback": alice.get("/oauth/callback/notes?code=x&state=x"),
        "refused sign-in": nobody.get("/auth/callback?code=x&state=x"),
        "approved": alice.submit(consent, "/start"),
    }
    query = world.issuer.sign_in(found["sign-in"].headers["location"])
    found["signed in"] = nobody.get(f"/auth/callback?{urlencode(query)}")
    callback = world.provider.authorize(found["approved"].headers["location"])
    found |= {
        "completed": alice.get(callback),
        "again": alice.get(callback),
        "done": alice.get("/connect/done"),
        "used": alice.get(link),
        "connections": alice.get("/connections"),
    }
    found["disconnected"] = alice.submit(found["connections"], "/disconnect")
    found["signed out"] = alice.submit(found["connections"], "/sign-out")
    found["signed-out page"] = alice.get("/auth/signed-out")
    world.break_sessions()
    found["outage"] = alice.get("/connections")
    return found


def test_every_response_has_the_security_headers(world: World) -> None:
    """SECURITY section 3, step 5."""
    for name, response in pages(world).items():
        policy = response.headers["content-security-policy"]
        assert policy.startswith(POLICY), name
        assert policy.removeprefix(POLICY) == (f" {PROVIDER_ORIGIN}" if name == "consent" else ""), name
        assert response.headers["cache-control"] == "no-store", name
        assert response.headers["x-content-type-options"] == "nosniff", name
        assert response.headers["referrer-policy"] == "same-origin", name
        assert response.headers["cross-origin-opener-policy"] == "same-origin", name
        assert response.headers["strict-transport-security"] == "max-age=31536000", name


def test_a_redirect_is_always_303(world: World) -> None:
    """RFC 9700 section 4.12: 307 would send our form on."""
    redirects = [response for response in pages(world).values() if response.is_redirect]

    assert len(redirects) >= 5
    assert {response.status_code for response in redirects} == {303}
    for response in redirects:
        assert re.match(f"({ORIGIN}|{ISSUER}|{PROVIDER_ORIGIN})/", response.headers["location"])


def test_every_cookie_is_as_strict_as_it_can_be(world: World) -> None:
    """SECURITY section 3, steps 2 and 3; public cases 91 and 111; RFC 6265bis section 4.1.3.2."""
    cookies = [cookie for response in pages(world).values() for cookie in response.headers.get_list("set-cookie")]

    assert len(cookies) >= 6
    for cookie in cookies:
        name, *attributes = cookie.split("; ")
        assert re.match(r"__Host-mcp_(sid|notice|login_[A-Za-z0-9_-]{8})=[A-Za-z0-9_.-]*$", name)
        assert attributes[1:] == ["Path=/", "HttpOnly", "SameSite=Lax", "Secure"]
        assert re.match(r"Max-Age=(0|300|1800)$", attributes[0])


def test_no_page_runs_anything(world: World) -> None:
    """No script, no inline style, no event handler, nothing of another site."""
    for name, response in pages(world).items():
        for forbidden in ("<script", "javascript:", " style=", "<style", " onclick", "<iframe", "<img"):
            assert forbidden not in response.text, name
        assert re.findall(r'(?:src|href|action)="(?!/)', response.text) == [], name


def test_a_crash_is_a_page_like_others(world: World, caplog: pytest.LogCaptureFixture) -> None:
    """The framework's own answer to an exception has no headers of ours and tells what it is."""

    def broken(_: object) -> None:
        raise KeyError("secret detail")

    for pages in world.pages:
        pages.routes["/connections"]["GET"] = broken  # type: ignore[index]
    response = world.browser().get("/connections")

    assert response.status_code == 500
    assert response.headers["content-security-policy"] == POLICY
    assert "secret detail" not in response.text
    assert world.log[-1]["outcome"] == "crashed"
    assert "Traceback" in caplog.text


def test_the_style_sheet_may_be_cached_and_says_nothing(world: World) -> None:
    """The one response that is the same for everybody."""
    response = world.browser().get("/static/style.css")

    assert response.status_code == 200
    assert response.headers["content-type"] == "text/css; charset=utf-8"
    assert response.headers["cache-control"] == "public, max-age=300"
    assert "prefers-color-scheme: dark" in response.text
    # No url(): the policy would stop it, and the page would look broken.
    assert "url(" not in response.text


def test_a_head_request_is_a_get_without_a_body(world: World) -> None:
    """RFC 9110 section 9.3.2; link scanners use it."""
    assert world.browser().http.head("/connect/done").status_code == 200
    assert world.browser().http.head(world.link()).status_code == 303


def test_what_is_no_page_goes_to_the_endpoint(world: World) -> None:
    """One function may serve both."""
    for path in ("/", "/mcp", "/auth", "/oauth", "/static/../app", "/connectx"):
        response = world.browser().get(path)
        assert response.headers["content-type"] == "application/json", path


def test_without_pages_there_is_no_browser_side(world: World) -> None:
    """Tools that never connect a third party need no session store."""
    browser = world.browser()
    bare = create_app(world._mcp, world._log)
    world.app = bare  # type: ignore[method-assign]

    assert type(browser)(world).get("/connections").headers["content-type"] == "application/json"


# Where the site is


def test_a_base_path_is_in_every_address() -> None:
    """Public case 17: a stage or a base path in front."""
    world = World(f"{ORIGIN}/v1")
    browser = world.browser()
    link = world.link()
    assert link.startswith("/v1/connect/")
    page = browser.open(link)
    assert re.findall(r'(?:href|action)="(?!/v1/)', page.text) == []
    assert browser.get("/v1/static/style.css").status_code == 200
    url = browser.submit(page, "/start").headers["location"]
    callback = world.provider.authorize(url)

    assert callback.startswith(f"{ORIGIN}/v1/oauth/callback/notes?")
    assert browser.get(callback).headers["location"] == f"{ORIGIN}/v1/connect/done"
    # A front door may have taken it off.
    assert browser.get("/connect/done").text == browser.get("/v1/connect/done").text


def test_on_a_loopback_address_the_cookies_have_a_plain_name() -> None:
    """`__Host-` and Secure need https; only a laptop goes without."""
    site = Site("http://127.0.0.1:8000")

    assert site.set_cookie("mcp_sid", "x", max_age=5) == "mcp_sid=x; Max-Age=5; Path=/; HttpOnly; SameSite=Lax"
    assert "strict-transport-security" not in site.headers()


@pytest.mark.parametrize("base_url", ["http://mcp.example.com", "mcp.example.com", "ftp://127.0.0.1", ""])
def test_any_other_address_without_tls_is_refused(base_url: str) -> None:
    """The remedy is in the message."""
    with pytest.raises(ValueError, match="must be an https URL"):
        Site(base_url)


@pytest.mark.parametrize(
    ("origin", "source"),
    [
        ("https://notes.example", "https://notes.example"),
        ("http://127.0.0.1:9500", "http://127.0.0.1:9500"),
        ("http://[::1]:9500", "http:"),
        ("https:", "https:"),
    ],
)
def test_an_origin_is_named_as_a_policy_may_name_it(origin: str, source: str) -> None:
    """CSP Level 3 section 2.3.1: host-source has no IPv6 syntax."""
    assert csp_source(origin) == source


def test_a_form_may_lead_to_several_origins() -> None:
    """CSP Level 3 section 6.4.2: Chromium checks every redirect after a POST, also the provider's own."""
    policy = Site(ORIGIN).headers(form_action="https://a.example https://b.example/path")["content-security-policy"]

    assert policy == f"{POLICY} https://a.example https://b.example"


@pytest.mark.parametrize(
    ("client_id", "host"),
    [
        ("https://desk.example/client.json", "desk.example"),
        ("https://bank.example@evil.example/", "evil.example"),
        ("https://DESK.example:8443/", "desk.example"),
        ("https://bänk.example/", "xn--bnk-qla.example"),
        ("http://desk.example/", None),
        ("desk", None),
        ("https://", None),
        ("https://[::1", None),
        (f"https://{'a' * 64}.example/", None),
    ],
)
def test_the_host_of_a_client_is_the_one_that_published_it(client_id: str, host: str | None) -> None:
    """Client/elicitation, Phishing: what the page shows in bold is not what the client writes in front."""
    assert client_host(client_id) == host


def test_text_of_a_client_is_escaped(world: World) -> None:
    """XSS through client_id."""
    mallory = ALICE._replace(client_id='"><script>alert(1)</script>\u202e')
    page = world.browser().open(world.link(mallory))

    assert "<script" not in page.text
    assert "&lt;script&gt;" in page.text


# Cookies as they come in


@pytest.mark.parametrize(
    ("header", "value"),
    [
        ("a=1; mcp_sid=x; b=2", "x"),
        ("mcp_sid=x; mcp_sid=y", None),
        ("mcp_sid=", None),
        ("mcp_sid", None),
        ('mcp_sid="x"', None),
        ("mcp_sid=x\x00", None),
        ("xmcp_sid=x", None),
        ("", None),
    ],
)
def test_a_cookie_is_read_in_one_way_only(header: str, value: str | None) -> None:
    """Of a name that came twice, one was planted: cookie tossing."""
    visit = Visit("GET", {}, join_headers([("Cookie", header)]))

    assert visit.cookie("mcp_sid") == value


def test_a_long_query_is_not_even_parsed() -> None:
    """SECURITY section 3, step 7: 8 KiB."""
    assert Visit("GET", {}, {}, query="a=" + "x" * 8000).query_pairs()
    with pytest.raises(MalformedRequest, match="too long"):
        Visit("GET", {}, {}, query="a=" + "x" * 8192).query_pairs()


def test_a_cookie_header_that_came_in_parts_is_one(world: World) -> None:
    """RFC 9113 section 8.2.3: HTTP/2 may split it."""
    browser = world.browser("alice")
    [session] = [cookie for cookie in browser.http.cookies.jar if cookie.name == "__Host-mcp_sid"]
    headers = [("cookie", "a=1"), ("cookie", f"{session.name}={session.value}"), ("cookie", "b=2")]

    assert type(browser)(world).http.get("/connections", headers=headers).status_code == 200
