"""Signing in and out in the browser: cookies, fixation, two tabs, and every response that signs nobody in."""

from urllib.parse import parse_qsl, urlencode, urlsplit

import pytest

from tests.oauth.authorization_server import ISSUER
from tests.web.world import BOB, ORIGIN, Browser, World, form_of, heading


@pytest.fixture
def world() -> World:
    return World()


def session_of(browser: Browser) -> str | None:
    """What the browser holds as its session."""
    return next((cookie.value for cookie in browser.http.cookies.jar if cookie.name == "__Host-mcp_sid"), None)


def sign_in_url(browser: Browser, path: str) -> str:
    """Where a page sends somebody who has not signed in."""
    location = browser.get(path).headers["location"]
    assert location.startswith(f"{ISSUER}/authorize?")
    return location


def callback_of(world: World, url: str, user: str = "alice") -> str:
    return f"/auth/callback?{urlencode(world.issuer.sign_in(url, user))}"


def test_who_is_not_signed_in_signs_in_and_comes_back(world: World) -> None:
    """SECURITY section 3, steps 2 and 3."""
    browser = world.browser()
    link = world.link()
    response = browser.get(callback_of(world, sign_in_url(browser, link)))

    assert response.status_code == 303
    assert response.headers["location"] == ORIGIN + link
    assert browser.get(link).status_code == 200
    names = [cookie.split("=")[0] for cookie in response.headers.get_list("set-cookie")]
    assert names[0] == "__Host-mcp_sid"
    assert any(each.startswith("__Host-mcp_login_") for each in names)
    # The login cookie is gone.
    assert [cookie.name for cookie in browser.http.cookies.jar] == ["__Host-mcp_sid"]


def test_every_sign_in_makes_a_new_session(world: World) -> None:
    """Session fixation: sid after login differs from the one before, and the planted one opens nothing."""
    browser = world.browser()
    planted = "P" * 43
    url = sign_in_url(browser, "/connections")
    login = next(f"{cookie.name}={cookie.value}" for cookie in browser.http.cookies.jar)
    response = browser.get(callback_of(world, url), cookie=f"{login}; __Host-mcp_sid={planted}")

    assert response.status_code == 303
    assert planted not in str(response.headers)
    assert len(session_of(browser) or "") == 43
    thief = world.browser()
    assert thief.get("/connections", cookie=f"__Host-mcp_sid={planted}").status_code == 303


def test_the_attackers_response_signs_nobody_in(world: World) -> None:
    """Login CSRF, SECURITY section 1, phisher (3): a state that is not in the cookie."""
    mallory = world.browser()
    callback = callback_of(world, sign_in_url(mallory, "/connections"), "mallory")
    victim = world.browser()
    sign_in_url(victim, "/connections")
    response = victim.get(callback)

    assert response.status_code == 400
    assert heading(response) == "You are not signed in"
    assert session_of(victim) is None
    # The attacker's own sign-in is not spent by it either.
    assert mallory.get(callback).status_code == 303


def test_two_tabs_sign_in_side_by_side(world: World) -> None:
    """A client may open two links at once."""
    browser = world.browser()
    links = world.link(), world.secret_link()
    callbacks = [callback_of(world, sign_in_url(browser, link)) for link in links]

    for link, callback in reversed(list(zip(links, callbacks, strict=True))):
        assert browser.get(callback).headers["location"] == ORIGIN + link


def test_a_sign_in_counts_once(world: World) -> None:
    """Public case 83."""
    browser = world.browser()
    callback = callback_of(world, sign_in_url(browser, "/connections"))
    cookies = "; ".join(f"{cookie.name}={cookie.value}" for cookie in browser.http.cookies.jar)
    assert browser.get(callback).status_code == 303

    assert world.browser().get(callback, cookie=cookies).status_code == 400
    assert len(world.issuer.token_requests) == 1


def test_giving_up_at_the_authorization_server_is_told_as_such(world: World) -> None:
    """RFC 6749 section 4.1.2.1."""
    browser = world.browser()
    asked = dict(parse_qsl(urlsplit(sign_in_url(browser, "/connections")).query))
    query = {"error": "access_denied", "error_description": "<script>", "state": asked["state"], "iss": ISSUER}
    response = browser.get(f"/auth/callback?{urlencode(query)}")

    assert response.status_code == 403
    assert "given up" in response.text
    assert "<script" not in response.text


@pytest.mark.parametrize("query", ["", "code=x", "state=x", "%FF=1", "code=x&state=" + "A" * 43, "a=" + "x" * 9000])
def test_a_stray_response_is_400(world: World, query: str) -> None:
    """SECURITY section 1: /auth/callback with a state not in the cookie."""
    response = world.browser().get(f"/auth/callback?{query}")

    assert response.status_code == 400
    assert "set-cookie" not in response.headers


def test_an_outage_of_the_authorization_server_is_503(world: World) -> None:
    """Not a page that says that the user did something wrong."""
    world.issuer.down = True
    response = world.browser().get(world.link())

    assert response.status_code == 503
    assert response.headers["retry-after"] == "30"


def test_signing_out_ends_the_session_on_the_server(world: World) -> None:
    """A stolen cookie is of no use afterwards."""
    browser = world.browser("alice")
    stolen = session_of(browser)
    response = browser.submit(browser.get("/connections"), "/sign-out")

    assert response.headers["location"] == f"{ORIGIN}/auth/signed-out"
    assert session_of(browser) is None
    assert heading(browser.get("/auth/signed-out")) == "You are signed out"
    assert world.browser().get("/connections", cookie=f"__Host-mcp_sid={stolen}").status_code == 303


def test_signing_out_needs_our_own_form(world: World) -> None:
    """Logout CSRF would make the user sign in as somebody else."""
    browser = world.browser("alice")
    form = form_of(browser.get("/connections"), "/sign-out")

    assert browser.post(form.action, {"csrf_token": "x"}).status_code == 403
    assert browser.post(form.action, form.fields, sec_fetch_site="cross-site").status_code == 403
    assert browser.get(form.action).status_code == 405
    assert browser.get("/connections").status_code == 200


def test_who_signs_out_to_use_another_account_is_asked_for_one(world: World) -> None:
    """The authorization server would sign the same account in again, silently, and the user could never get on."""
    link = world.link(BOB)
    browser = world.browser("alice")
    browser.submit(browser.get(link), "/sign-out")
    page = browser.get("/auth/signed-out")
    assert f'href="{link}"' in page.text

    url = sign_in_url(browser, link)
    assert dict(parse_qsl(urlsplit(url).query))["prompt"] == "login"
    assert browser.get(callback_of(world, url, "bob")).headers["location"] == ORIGIN + link
    assert browser.get(link).status_code == 200
    # Done: the next sign-in is an ordinary one.
    assert [cookie.name for cookie in browser.http.cookies.jar] == ["__Host-mcp_sid"]


@pytest.mark.parametrize("link", ["//evil.example", "https://evil.example", "../x", "A" * 42, ""])
def test_the_way_on_after_signing_out_is_one_of_our_links(world: World, link: str) -> None:
    """Open redirect through a form field."""
    browser = world.browser("alice")
    form = form_of(browser.get("/connections"), "/sign-out")
    browser.post(form.action, {**form.fields, "link": link})
    page = browser.get("/auth/signed-out")

    assert "evil" not in page.text
    assert 'class="button"' not in page.text
