"""Connecting a third party in the browser: consent, who may finish what, and every way to end."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest

from app.http import TokenEndpointReply
from app.oauth.connections import Connected, Ended, Pending, Stored
from app.web.connect import NEVER_MATCHED
from tests.oauth.authorization_server import ISSUER
from tests.web.world import ALICE, BOB, ORIGIN, PROVIDER_ORIGIN, Browser, World, form_of, heading


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def alice(world: World) -> Browser:
    return world.browser("alice")


def query_of(url: str) -> dict[str, str]:
    return dict(parse_qsl(urlsplit(url).query))


# The way through


def test_a_user_connects_and_the_tool_goes_on(world: World) -> None:
    """SECURITY section 3, steps 1 to 7."""
    browser = world.browser()
    link = world.link()
    response = browser.finish(link)

    assert response.status_code == 303
    # The code is out of the address bar and the history.
    assert response.headers["location"] == f"{ORIGIN}/connect/done"
    done = browser.get("/connect/done")
    assert heading(done) == "Notes is connected"
    assert "Connected as" in done.text
    assert "al</bdi>" in done.text
    assert isinstance(world.connect(response="accept"), Connected)


def test_the_page_says_who_asks_for_what_as_whom(world: World, alice: Browser) -> None:
    """Client/elicitation, Phishing; security best practices, confused deputy."""
    page = alice.open(world.link())

    for text in (
        "Connect Notes?",
        ">desk.example</bdi>",
        ">https://desk.example/client.json</bdi>",
        "Read your notes",
        "notes:read",
        ">alice</bdi>",
        "Approve</button>",
        "Deny</button>",
    ):
        assert text in page.text


def test_a_get_never_leads_to_the_third_party(world: World, alice: Browser) -> None:
    """SECURITY section 1, silent authorisation: the click is on our page, whatever cookie the provider holds."""
    link = world.link()
    for path in (link, f"{link}/start", f"{link}/decline", f"{link}/secret", "/connections/notes/disconnect"):
        response = alice.get(path)
        assert PROVIDER_ORIGIN not in response.headers.get("location", "")
    assert alice.get(f"{link}/start").status_code == 405
    assert alice.get(f"{link}/start").headers["allow"] == "POST"


def test_opening_a_link_often_changes_nothing(world: World) -> None:
    """Link scanners and prefetch: GET has no side effect. The flow's owner still finishes."""
    link = world.link()
    for _ in range(20):
        assert world.browser().get(link).status_code == 303
        assert world.browser("bob").open(link, user="bob").status_code == 403

    assert world.browser().finish(link).status_code == 303


def test_the_authorization_request_is_exact(world: World, alice: Browser) -> None:
    """SECURITY 130: S256, an unguessable state, the provider's own redirect_uri, and nothing of the user."""
    asked = query_of(alice.approve(world.link()))

    assert len(asked.pop("code_challenge")) == 43
    assert len(asked.pop("state")) >= 43
    assert asked == {
        "response_type": "code",
        "client_id": "roundtrip",
        "redirect_uri": f"{ORIGIN}/oauth/callback/notes",
        "code_challenge_method": "S256",
        "scope": "notes:read",
    }


def test_a_reload_of_the_done_page_says_the_same(world: World, alice: Browser) -> None:
    """The page is static: nothing in its address, nothing used up."""
    alice.finish(world.link())

    assert alice.get("/connect/done").text == alice.get("/connect/done").text
    world.advance(300)
    assert heading(alice.get("/connect/done")) == "There is nothing to do here"


def test_nobody_else_can_make_the_done_page_say_something(world: World, alice: Browser) -> None:
    """The notice is sealed: a planted cookie says nothing."""
    response = alice.get("/connect/done?title=Bank", cookie="__Host-mcp_notice=rs1.AAAA")

    assert heading(response) == "There is nothing to do here"
    assert "Bank" not in response.text


def test_a_second_client_needs_consent_and_no_provider(world: World, alice: Browser) -> None:
    """SECURITY 137: a new client_id of the same user."""
    alice.finish(world.link())
    second = type(ALICE)(ALICE.issuer, ALICE.subject, "another-client")
    page = alice.open(world.link(second))

    assert heading(page) == "Share Notes with one more application?"
    assert "another-client" in page.text
    response = alice.submit(page, "/start")
    assert response.headers["location"] == f"{ORIGIN}/connect/done"
    assert isinstance(world.connect(second), Connected)
    assert len(world.provider.exchanges) == 1


# Who may finish what


def test_another_user_gets_nowhere_and_the_owner_still_finishes(world: World) -> None:
    """SECURITY 118; public case 87: Bob opens Alice's link with his own login."""
    link = world.link(ALICE)
    bob = world.browser("bob")
    page = bob.open(link, user="bob")

    assert page.status_code == 403
    assert heading(page) == "This link was created for another account"
    assert "location" not in page.headers
    # No hint of whose, and no way on.
    assert "alice" not in page.text.lower()
    assert "Notes" not in page.text
    assert "/start" not in page.text
    assert {"outcome": "refused", "reason": "wrong_user"}.items() <= world.log[-1].items()

    assert world.browser().finish(link).status_code == 303


@pytest.mark.parametrize("step", ["start", "decline", "secret"])
def test_another_users_form_is_checked_again(world: World, step: str) -> None:
    """SECURITY section 3, step 6: same user again. Bob has a token of his own page for the handle."""
    link = world.secret_link(ALICE) if step == "secret" else world.link(ALICE)
    bob = world.browser("bob")
    own = bob.open(world.secret_link(BOB) if step == "secret" else world.link(BOB), user="bob")
    token = form_of(own, f"/{step}").fields["csrf_token"]

    refused = bob.post(f"{link}/{step}", {"csrf_token": token, "value": "x"})
    assert refused.status_code == 403
    assert world.provider.exchanges == []
    assert world.browser().open(link).status_code == 200


def test_the_callback_needs_the_browser_session_that_began(world: World) -> None:
    """SECURITY section 1, phisher (2), and 121: Alice approves herself, then sends Bob the provider's URL."""
    link = world.link(ALICE)
    alice = world.browser("alice")
    callback = world.provider.authorize(alice.approve(link))

    for victim, status in (
        (world.browser("bob"), 403),
        (world.browser(), 403),
        (world.browser("alice"), 403),
    ):
        response = victim.get(callback)
        assert response.status_code == status
        assert heading(response) == "This does not belong to anything you started here"
    forged = world.browser().get(callback, cookie=f"__Host-mcp_sid={'A' * 43}")
    assert forged.status_code == 403
    assert world.provider.exchanges == []

    assert alice.get(callback).status_code == 303


def test_a_session_that_is_about_to_end_is_renewed_before_the_user_leaves(world: World, alice: Browser) -> None:
    """Otherwise the callback of a slow sign-in at the provider would find no session."""
    world.advance(1300)
    link = world.link()

    assert alice.get(link).headers["location"].startswith(ISSUER)
    assert alice.finish(link).status_code == 303


def test_a_form_after_the_session_has_ended_is_refused(world: World, alice: Browser) -> None:
    """SECURITY 119: POST without a session. It is no redirect: browsers would not follow it (form-action)."""
    page = alice.open(world.link())
    world.advance(1800)
    response = alice.submit(page, "/start")

    assert response.status_code == 403
    assert heading(response) == "You are not signed in any more"


REFUSED_FORMS: dict[str, dict[str, str]] = {
    "cross-site": {"sec_fetch_site": "cross-site"},
    "same-site": {"sec_fetch_site": "same-site"},
    "typed in": {"sec_fetch_site": "none"},
    "another origin": {"origin": "https://evil.example"},
    "another origin, old browser": {"origin": "https://evil.example", "sec_fetch_site": ""},
    "another port, old browser": {"origin": f"{ORIGIN}:8443", "sec_fetch_site": ""},
    "null origin, old browser": {"origin": "null", "sec_fetch_site": ""},
}


@pytest.mark.parametrize("name", REFUSED_FORMS)
@pytest.mark.parametrize("step", ["start", "decline"])
def test_a_form_that_another_site_sent_is_refused(world: World, alice: Browser, name: str, step: str) -> None:
    """SECURITY 119, with the right CSRF token even."""
    page = alice.open(world.link())
    form = form_of(page, f"/{step}")
    response = alice.post(form.action, form.fields, **REFUSED_FORMS[name])

    assert response.status_code == 403
    assert heading(response) == "The form was not accepted"
    assert alice.submit(page, "/start").status_code == 303


@pytest.mark.parametrize("headers", [{"sec_fetch_site": "", "origin": ""}, {"origin": "null"}, {"origin": ""}])
def test_a_form_of_an_old_or_shy_browser_is_accepted(world: World, alice: Browser, headers: dict[str, str]) -> None:
    """SECURITY section 3, step 5: the CSRF token decides."""
    form = form_of(alice.open(world.link()), "/start")

    assert alice.post(form.action, form.fields, **headers).status_code == 303


def test_a_form_needs_the_token_of_this_session_and_this_link(world: World, alice: Browser) -> None:
    """SECURITY 119: without CSRF token, with another session's, with another link's."""
    link = world.link()
    action = f"{link}/start"
    other_session = form_of(world.browser("alice").open(link), "/start").fields["csrf_token"]
    other_link = form_of(alice.open(world.link(ALICE, "other")), "/start").fields["csrf_token"]
    sign_out = form_of(alice.open(link), "/sign-out").fields["csrf_token"]

    for token in ("", "x", other_session, other_link, sign_out):
        assert alice.post(action, {"csrf_token": token}).status_code == 403
    assert alice.post(action).status_code in (403, 415)
    assert alice.submit(alice.open(link), "/start").status_code == 303


def test_the_operator_is_told_when_sign_ins_never_match() -> None:
    """SECURITY section 3, step 3, pairwise sub: nobody ever gets past the same-user check of an instance."""
    world = World(instances=1)
    pages = [world.browser("pairwise").open(world.link(), user="pairwise") for _ in range(NEVER_MATCHED)]

    assert ["MCP_SUBJECT_CLAIM" in page.text for page in pages] == [False, False, True]
    assert world.log[-1]["reason"] == "wrong_user_always"

    world.browser().open(world.link())
    assert "MCP_SUBJECT_CLAIM" not in world.browser("bob").open(world.link(), user="bob").text


# Links


@pytest.mark.parametrize(
    "path",
    [
        "/connect/" + "A" * 42,
        "/connect/" + "A" * 44,
        "/connect/" + "A" * 42 + "%00",
        "/connect/" + "A" * 42 + "%0A",
        "/connect/" + "A" * 43 + "%0A",
        "/connect/" + "%C3%A9" * 43,
        "/connect/" + "A" * 42 + "=",
        "/connect/" + "A" * 43,
        "/connect/" + "A" * 43 + "/",
        "/connect/%2e%2e%2fadmin",
        "/connect/%252e",
        "/connect/",
        "/connect/a/b/c",
    ],
)
@pytest.mark.parametrize("user", [None, "alice"])
def test_a_link_that_is_none_is_404_for_everybody(world: World, path: str, user: str | None) -> None:
    """SECURITY 14 and 116: and nobody signs in for it."""
    assert world.browser(user).get(path).status_code == 404


@pytest.mark.parametrize("length", [42, 44])
def test_a_form_for_a_link_that_is_none_is_404(world: World, length: int) -> None:
    """SECURITY 116: before any store is asked."""
    world.break_sessions()

    assert world.browser().post(f"/connect/{'A' * length}/start").status_code == 404


@pytest.mark.parametrize("user", [None, "alice", "bob"])
def test_an_expired_link_is_404_for_everybody(world: World, user: str | None) -> None:
    """SECURITY 116: a wrong link and an old one cannot be told apart."""
    link = world.link()
    world.advance(900)
    response = world.browser(user).get(link)

    assert response.status_code == 404
    assert heading(response) == "This link is not valid, or not any more"


def test_a_new_call_gets_the_same_link_while_it_is_open(world: World, alice: Browser) -> None:
    """SECURITY 115."""
    link = world.link()
    alice.approve(link)

    assert world.link() == link


def test_a_used_link_says_how_it_ended(world: World, alice: Browser) -> None:
    """Public case 86: the handle is used twice."""
    done = world.link()
    alice.finish(done)
    assert (alice.get(done).status_code, heading(alice.get(done))) == (410, "This link has done its work")

    declined = world.link(ALICE, "other")
    alice.submit(alice.open(declined), "/decline")
    assert (alice.get(declined).status_code, heading(alice.get(declined))) == (410, "This link has been used up")


@pytest.mark.parametrize(
    "path",
    ["/connect/done", "/connections", "{link}", "/auth/signed-out"],
)
@pytest.mark.parametrize(
    "parameters", ["return_to=//evil.example", "redirect_uri=https://evil.example", "next=https%3A%2F%2Fevil.example"]
)
def test_no_parameter_of_the_address_is_honoured(world: World, alice: Browser, path: str, parameters: str) -> None:
    """SECURITY 128, open redirect: also from the Host and the forwarding headers."""
    link = world.link()
    response = alice.get(
        f"{path.format(link=link)}?{parameters}",
        host="evil.example",
        x_forwarded_host="evil.example",
        referer="https://evil.example/",
    )

    assert response.status_code == 200
    assert "evil" not in response.text
    assert "evil" not in str(response.headers)


def test_redirects_never_follow_the_host_header(world: World) -> None:
    """SECURITY section 1, open redirect: Location is built from the configuration."""
    link = world.link()
    browser = world.browser()
    sign_in = browser.get(link, host="evil.example")

    assert query_of(sign_in.headers["location"])["redirect_uri"] == f"{ORIGIN}/auth/callback"


# How it ends


def test_a_user_who_declines_here_is_not_asked_by_the_provider(world: World, alice: Browser) -> None:
    """DESIGN promise 4: decline is an answer."""
    page = alice.open(world.link())
    response = alice.submit(page, "/decline")

    assert response.headers["location"] == f"{ORIGIN}/connect/done"
    assert heading(alice.get("/connect/done")) == "You said no"
    ended = world.connect(response="accept")
    assert isinstance(ended, Ended)
    assert ended.reason == "declined"
    assert alice.submit(page, "/start").status_code == 410


def test_a_user_who_denies_there_gets_a_page_and_the_tool_hears_it(world: World, alice: Browser) -> None:
    """SECURITY 127; public case 95: access_denied is not "missing code"."""
    url = alice.approve(world.link())
    response = alice.get(world.provider.authorize(url, code=None, error="access_denied", error_description="<b>x"))

    assert response.status_code == 200
    assert heading(response) == "Notes was not connected"
    ended = world.connect(response="accept")
    assert isinstance(ended, Ended)
    assert ended.reason == "denied"


@pytest.mark.parametrize("text", ["<script>alert(1)</script>", "'\"><img src=x>"])
def test_no_text_of_the_callback_is_repeated(world: World, alice: Browser, text: str) -> None:
    """SECURITY 127: XSS through error and error_description."""
    url = alice.approve(world.link())
    response = alice.get(world.provider.authorize(url, code=None, error=text, error_description=text, error_uri=text))

    assert response.status_code == 400
    assert heading(response) == "Notes could not be connected"
    assert "<script" not in response.text
    assert "<img" not in response.text
    assert text not in str(world.log)


def test_a_failed_exchange_can_be_tried_again_with_the_same_link(world: World, alice: Browser) -> None:
    """SECURITY section 3, state table: failed, attempts left."""
    link = world.link()
    world.provider.reply = TokenEndpointReply(500, "text/html", b"<h1>")
    response = alice.finish(link)
    assert response.status_code == 400
    assert heading(response) == "Notes could not be connected"
    assert "open the link from your application once more" in response.text

    world.provider.reply = None
    assert alice.finish(link).status_code == 303


def test_a_link_that_failed_too_often_is_used_up(world: World, alice: Browser) -> None:
    """SECURITY section 3, step 6: attempt cap 5."""
    link = world.link()
    world.provider.reply = TokenEndpointReply(400, "application/json", b'{"error":"invalid_grant"}')
    texts = [alice.finish(link).text for _ in range(5)]

    assert ["used up" in text for text in texts] == [False] * 4 + [True]
    assert alice.get(link).status_code == 410


def test_a_callback_counts_once(world: World, alice: Browser) -> None:
    """SECURITY 122; public case 83: 50 at the same time, one exchange."""
    callback = world.provider.authorize(alice.approve(world.link()))
    with ThreadPoolExecutor(8) as pool:
        statuses = list(pool.map(lambda _: alice.get(callback).status_code, range(50)))

    assert statuses.count(303) == 1
    assert set(statuses) <= {303, 200, 400}
    assert len(world.provider.exchanges) == 1
    again = alice.get(callback)
    assert (again.status_code, heading(again)) == (200, "Notes is already connected")


def test_a_second_start_makes_the_first_one_void(world: World, alice: Browser) -> None:
    """SECURITY section 3, step 6: a second tab's start invalidates the first state."""
    link = world.link()
    first = world.provider.authorize(alice.approve(link))
    second = world.provider.authorize(alice.approve(link))

    assert alice.get(first).status_code == 400
    assert alice.get(second).status_code == 303


def test_two_connections_finish_in_reverse_order(world: World, alice: Browser) -> None:
    """Public case 93: one verifier for all flows."""
    second_client = type(ALICE)(ALICE.issuer, ALICE.subject, "second")
    first, second = (alice.approve(world.link(who)) for who in (ALICE, second_client))

    assert alice.get(world.provider.authorize(second)).status_code == 303
    assert alice.get(world.provider.authorize(first)).status_code == 303


BAD_CALLBACKS: dict[str, dict[str, str | None]] = {
    "no state": {"state": None},
    "an empty state": {"state": ""},
    "a made-up state": {"state": f"{'A' * 43}.{'B' * 43}"},
    "an error with a made-up state": {"state": "x", "code": None, "error": "access_denied"},
    "no code": {"code": None},
    "an empty code": {"code": ""},
    "a code and an error": {"error": "access_denied"},
    "20 KB": {"padding": "x" * 20_000},
}


@pytest.mark.parametrize("name", BAD_CALLBACKS)
def test_a_malformed_or_stray_callback_is_400_and_the_real_one_still_works(
    world: World, alice: Browser, name: str
) -> None:
    """SECURITY 125; public case 109: state is checked before error."""
    url = alice.approve(world.link())
    response = alice.get(world.provider.authorize(url, **BAD_CALLBACKS[name]))

    assert response.status_code == 400
    assert heading(response) == "This does not belong to anything you started here"
    assert world.provider.exchanges == []
    assert alice.get(world.provider.authorize(url)).status_code == 303


@pytest.mark.parametrize("name", ["state", "code", "iss"])
def test_a_parameter_that_comes_twice_is_400(world: World, alice: Browser, name: str) -> None:
    """SECURITY 125; RFC 6749 section 3.1."""
    callback = world.provider.authorize(alice.approve(world.link()))

    assert alice.get(f"{callback}&{name}={query_of(callback)[name]}").status_code == 400
    assert alice.get(callback).status_code == 303


@pytest.mark.parametrize("changes", [{"iss": None}, {"iss": "https://evil.example"}, {"iss": PROVIDER_ORIGIN + "/"}])
def test_a_response_of_another_issuer_fails(world: World, alice: Browser, changes: dict[str, str | None]) -> None:
    """SECURITY section 1, mix-up; RFC 9207 section 2.4. The code is not sent anywhere."""
    response = alice.get(world.provider.authorize(alice.approve(world.link()), **changes))

    assert response.status_code == 400
    assert world.provider.exchanges == []


def test_a_state_for_one_provider_at_the_path_of_another_fails(world: World, alice: Browser) -> None:
    """SECURITY 124."""
    callback = world.provider.authorize(alice.approve(world.link())).replace("/callback/notes", "/callback/other")

    assert alice.get(callback).status_code == 400
    assert world.provider.exchanges == []


@pytest.mark.parametrize("provider", ["nobody", "NOTES", "..%2f", "a" * 65, "%00"])
def test_a_callback_of_no_provider_is_refused(world: World, alice: Browser, provider: str) -> None:
    """Only configured names are paths."""
    assert alice.get(f"/oauth/callback/{provider}?code=x&state=y").status_code in (400, 404)


# A value that the user types


def test_a_typed_value_reaches_the_tool_and_nobody_else(world: World, alice: Browser) -> None:
    """DESIGN promise 3: neither the client, the model, a URL nor a log sees it."""
    page = alice.open(world.secret_link())
    assert 'type="password"' in page.text
    assert 'autocomplete="off"' in page.text
    assert '<label for="value">Stripe API key</label>' in page.text

    response = alice.submit(page, "/secret", value="  sk_live_0123456789\n")
    assert response.headers["location"] == f"{ORIGIN}/connect/done"
    done = alice.get("/connect/done")
    assert heading(done) == "Stripe API key is saved"
    assert world.secret() == Stored("sk_live_0123456789")
    for text in (page.text, done.text, str(response.headers), str(world.log)):
        assert "sk_live" not in text


@pytest.mark.parametrize("value", ["", "   ", "x" * 4097])
def test_a_value_that_cannot_be_kept_is_asked_again_without_repeating_it(
    world: World, alice: Browser, value: str
) -> None:
    """WCAG 3.3.1: the problem is said in text, next to the field."""
    page = alice.open(world.secret_link())
    response = alice.submit(page, "/secret", value=value)

    assert response.status_code == 422
    assert 'role="alert"' in response.text
    assert 'aria-describedby="problem"' in response.text
    assert "x" * 20 not in response.text
    assert alice.submit(response, "/secret", value="right").status_code == 303


def test_a_value_is_taken_once(world: World, alice: Browser) -> None:
    """A replayed form does not replace what was kept."""
    page = alice.open(world.secret_link())
    alice.submit(page, "/secret", value="first")

    assert alice.submit(page, "/secret", value="second").status_code == 410
    assert world.secret() == Stored("first")


def test_a_connect_link_takes_no_value_and_a_secret_link_starts_nothing(world: World, alice: Browser) -> None:
    """Each kind of link has its own step."""
    connect = form_of(alice.open(world.link()), "/start")
    assert alice.post(connect.action.replace("/start", "/secret"), connect.fields | {"value": "x"}).status_code == 404
    secret = form_of(alice.open(world.secret_link()), "/secret")
    assert alice.post(secret.action.replace("/secret", "/start"), secret.fields).status_code == 404


# Forms as such


@pytest.mark.parametrize(
    ("body", "media_type", "status"),
    [
        (b"csrf_token=x", "text/plain", 415),
        (b"csrf_token=x", "multipart/form-data; boundary=x", 415),
        (b"csrf_token=\xff", "application/x-www-form-urlencoded", 400),
        (b"csrf_token=%FF", "application/x-www-form-urlencoded", 400),
        (b"csrf_token=a&csrf_token=b", "application/x-www-form-urlencoded", 400),
        (b"a=1&" * 40, "application/x-www-form-urlencoded", 400),
        (b"value=" + b"x" * 40_000, "application/x-www-form-urlencoded", 413),
    ],
)
def test_a_form_that_has_no_single_reading_is_refused(
    world: World, alice: Browser, body: bytes, media_type: str, status: int
) -> None:
    """SECURITY section 1, parser differentials and oversized bodies."""
    action = f"{world.link()}/start"
    response = alice.http.post(action, content=body, headers={"content-type": media_type, "origin": ORIGIN})

    assert response.status_code == status


# Outages


def test_without_the_session_store_every_page_says_when_to_come_back(world: World, alice: Browser) -> None:
    """Public case 99, fails closed: 503 and Retry-After, and no redirect."""
    page = alice.open(world.link())
    world.break_sessions()

    for response in (alice.get(world.link()), alice.submit(page, "/start"), alice.get("/connections")):
        assert response.status_code == 503
        assert int(response.headers["retry-after"]) > 0
        assert heading(response) == "This is not available just now"


def test_without_the_authorization_server_a_signed_in_user_still_connects(world: World, alice: Browser) -> None:
    """Its metadata is not needed for the pages of somebody who is here already."""
    world.issuer.down = True

    assert alice.finish(world.link()).status_code == 303


def test_nothing_secret_is_logged(world: World) -> None:
    """SECURITY 131: the log of a whole flow, searched for everything that was used in it."""
    browser = world.browser()
    link = world.link()
    url = browser.approve(link)
    callback = world.provider.authorize(url)
    browser.get(callback)
    secrets = [
        link.removeprefix("/connect/"),
        *query_of(url).values(),
        *query_of(callback).values(),
        *(cookie.value for cookie in browser.http.cookies.jar if cookie.value),
        *world.provider.access_tokens,
        "s3cret",
    ]
    secrets = [each for each in secrets if len(each) > 20 or each == "s3cret"]

    assert len(secrets) > 6
    for each in secrets:
        assert each not in str(world.log)


def test_the_store_holds_nothing_usable(world: World) -> None:
    """SECURITY section 1, stolen Redis dump, for what the browser side keeps."""
    browser = world.browser()
    browser.approve(world.link())
    dump: Any = [store.dump() for store in world.memory]

    for cookie in browser.http.cookies.jar:
        assert cookie.value is None or cookie.value not in str(dump)
    assert "alice" not in str(dump)


def test_a_pending_link_stays_the_same_for_the_client(world: World, alice: Browser) -> None:
    """DESIGN promise 1: a retry that comes too early gets the same URL."""
    link = world.link()
    alice.approve(link)

    assert world.connect(response="accept") == Pending(ORIGIN + link)
