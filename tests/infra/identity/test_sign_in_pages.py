"""The pages a person sees: what they show, how a form counts, and what a browser is told about them."""

from typing import Any

import pytest

from infra.local.identity import Identity, ScriptedBrowser, SignInFailed
from infra.local.identity.scripted_browser import forms_of
from tests.infra.identity.oauth_client import REDIRECT_URI, RESOURCE, Clock, OAuthClient

COOKIE_ATTRIBUTES = {"HttpOnly", "SameSite=lax", "Path=/"}


def test_the_first_page_offers_the_accounts(client: OAuthClient) -> None:
    """Choosing the account is all there is to signing in here."""
    buttons = [
        button for form in forms_of(client.browser.open(client.authorization_url()).text) for button in form.buttons
    ]

    assert buttons == [("user", "alice"), ("user", "bob"), ("decision", "deny")]


def test_the_second_authorization_in_a_browser_asks_for_consent_only(client: OAuthClient) -> None:
    """The browser session remembers who; nothing remembers yes."""
    client.authorize(user="bob")

    page = client.browser.open(client.authorization_url()).text

    assert ("decision", "approve") in [button for form in forms_of(page) for button in form.buttons]
    assert "Approve access?" in page
    assert "bob@example.com" in page


def test_the_consent_page_shows_who_asks_for_what_and_where_it_leads(client: OAuthClient) -> None:
    """MCP authorization, Localhost Redirect URI Risks: MUST clearly display the redirect URI hostname."""
    client.authorize()

    page = client.browser.open(client.authorization_url(scope="tickets:read openid")).text

    for shown in (
        "Test client",
        "it chose its own name",
        "Read your tickets",
        "tickets:read",
        RESOURCE,
        "127.0.0.1:3118",
    ):
        assert shown in page
    assert "Close your tickets" not in page


def test_the_other_account_can_be_chosen_on_the_consent_page(client: OAuthClient) -> None:
    """A shared browser: the session is Alice's, the person is Bob."""
    client.authorize(user="alice")
    code = client.authorize(user="bob", scope="openid tickets:read")["code"]

    assert client.userinfo(client.exchange(code).json()["access_token"]).json()["sub"] == "bob"


def test_an_account_that_does_not_exist_cannot_sign_in(client: OAuthClient) -> None:
    """The scripted browser says so, and never approves as someone else."""
    with pytest.raises(SignInFailed, match="no button for carol"):
        client.authorize(user="carol")
    client.authorize(user="alice")
    with pytest.raises(SignInFailed, match="no button for carol"):
        client.authorize(user="carol")


def test_the_scripted_browser_tells_what_a_refusal_said(client: OAuthClient) -> None:
    """Whoever reads the failure sees the page's reason, and no form field."""
    with pytest.raises(SignInFailed, match=r"\(400\).*made a mistake.*invalid_client"):
        client.authorize(client_id="nobody")


def test_sign_in_can_be_cancelled_before_choosing_an_account(client: OAuthClient) -> None:
    """RFC 6749 §4.1.2.1."""
    response = _post(client, "deny")

    assert "error=access_denied" in response.headers["location"]


def test_a_session_ends_after_eight_hours(client: OAuthClient, clock: Clock) -> None:
    """The consent page of a browser left open does not approve for ever."""
    client.authorize()
    clock.advance(8 * 3600)

    assert "Who are you?" in client.browser.open(client.authorization_url()).text


@pytest.mark.parametrize(
    "name", ["<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "{{ 7 * 7 }}", "</bdi><form action=//evil>"]
)
def test_a_client_name_is_text_and_nothing_else(client: OAuthClient, name: str) -> None:
    """The name is whatever a stranger registered."""
    client.register(client_name=name)

    for signed_in in (False, True):
        page = client.browser.open(client.authorization_url()).text
        assert ("Approve access?" in page) is signed_in
        for dangerous in ("<script", "<img", "<form action=//", "49"):
            assert dangerous not in page.split("<form method")[0]
        client.authorize()


@pytest.mark.parametrize("value", ['"><script>alert(1)</script>', "' onmouseover=alert(1)"])
@pytest.mark.parametrize("name", ["state", "nonce", "unknown"])
def test_a_request_parameter_is_text_and_nothing_else(client: OAuthClient, name: str, value: str) -> None:
    """The query of the request is part of every form's action."""
    client.authorize()

    for page in (client.http.get, client.browser.open):
        text = page(client.authorization_url(**{name: value})).text
        assert "<script" not in text
        assert "' onmouseover" not in text


def test_a_page_runs_no_script_and_cannot_be_framed(client: OAuthClient) -> None:
    """Security plan §3, step 5: the headers of every browser page."""
    headers = client.browser.open(client.authorization_url()).headers

    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "style-src 'self'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "base-uri 'none'" in policy
    assert "script-src" not in policy
    assert headers["cache-control"] == "no-store"
    assert headers["referrer-policy"] == "same-origin"
    assert headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize(
    ("redirect_uri", "source"),
    [
        ("http://127.0.0.1:3118/callback", "http://127.0.0.1:3118"),
        ("https://app.example/callback?a=;script-src%20*", "https://app.example"),
        ("http://[::1]:3118/callback", "http:"),
    ],
)
def test_the_policy_lets_the_approve_button_lead_to_the_client_only(
    client: OAuthClient, redirect_uri: str, source: str
) -> None:
    """Chrome applies form-action to the redirect after the POST; CSP cannot spell an IPv6 host."""
    client.register(redirect_uris=[redirect_uri])

    policy = client.browser.open(client.authorization_url(redirect_uri=redirect_uri)).headers["content-security-policy"]

    assert policy.endswith(f"form-action 'self' {source}")


def test_a_refusal_page_leads_nowhere(client: OAuthClient) -> None:
    """There is no form on it."""
    response = client.http.get(client.authorization_url(client_id="nobody"))

    assert response.headers["content-security-policy"].endswith("form-action 'none'")


def test_the_session_cookie_is_out_of_reach_of_scripts_and_changes_at_sign_in(client: OAuthClient) -> None:
    """OWASP session fixation: a new ID when someone signs in."""
    before = client.browser.open(client.authorization_url()).headers["set-cookie"]
    after = _post(client, "alice").headers["set-cookie"]

    assert set(before.split("; ")[1:]) == COOKIE_ATTRIBUTES
    assert set(after.split("; ")[1:]) == COOKIE_ATTRIBUTES
    assert before.split(";")[0] != after.split(";")[0]


def test_a_session_id_from_before_the_sign_in_is_not_signed_in(client: OAuthClient, identity: Identity) -> None:
    """OWASP session fixation."""
    before = client.browser.open(client.authorization_url()).headers["set-cookie"].split(";")[0]
    _post(client, "alice")

    page = client.http.get(client.authorization_url(), headers={"Cookie": before}).text

    assert "Who are you?" in page


@pytest.mark.parametrize("button", ["alice", "approve", "deny"])
@pytest.mark.parametrize("token", [None, "", "0" * 64, "é"])
def test_a_form_without_the_csrf_token_changes_nothing(client: OAuthClient, button: str, token: str | None) -> None:
    """Security plan §1: POST without token -> 403."""
    if button != "alice":
        client.authorize(user="alice")

    response = _post(client, button, csrf_token=token)

    assert response.status_code == 403
    assert "location" not in response.headers
    assert "set-cookie" not in response.headers


def test_a_csrf_token_of_another_browser_is_refused(client: OAuthClient) -> None:
    """The token belongs to one session."""
    with ScriptedBrowser() as other:
        form = forms_of(other.open(client.authorization_url()).text)[0]

    assert _post(client, "alice", csrf_token=form.hidden["csrf_token"]).status_code == 403


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://127.0.0.1:3000"},
        {"Origin": "null"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
    ids=str,
)
def test_a_form_sent_from_another_site_is_refused_even_with_the_token(
    client: OAuthClient, headers: dict[str, str]
) -> None:
    """Cookies do not tell ports apart, so another program on 127.0.0.1 can plant a session that it knows."""
    assert _post(client, "alice", headers=headers).status_code == 403


def test_a_consent_page_of_one_user_does_not_approve_for_another(client: OAuthClient) -> None:
    """Two tabs: consent open as Alice, then Bob signs in."""
    client.authorize(user="bob")

    response = _post(client, "approve", subject="alice")

    assert "location" not in response.headers
    assert "Approve access?" in response.text


def test_approving_without_having_signed_in_leads_to_the_sign_in_page(client: OAuthClient) -> None:
    """A CSRF token alone proves a browser, not a user."""
    response = _post(client, "approve", subject="alice")

    assert "location" not in response.headers
    assert "Who are you?" in response.text


def test_a_decision_is_checked_against_the_request_again(client: OAuthClient) -> None:
    """The query of the form is in the browser's hands."""
    client.authorize()

    url = client.authorization_url(redirect_uri="https://evil.example/")
    response = _post(client, "approve", subject="alice", action=url)

    assert response.status_code == 400
    assert "location" not in response.headers


def test_the_browser_is_sent_back_with_a_303(client: OAuthClient) -> None:
    """OAuth 2.1 §7.5.3: after a POST, 303; a 307 would hand the form to the client."""
    client.authorize()

    response = _post(client, "approve", subject="alice")

    assert response.status_code == 303
    assert response.headers["location"].startswith(REDIRECT_URI)


def test_another_host_name_is_refused(client: OAuthClient, identity: Identity) -> None:
    """DNS rebinding: there are no passwords, so a page under another name could sign itself in."""
    response = client.http.get(client.authorization_url(), headers={"Host": "evil.example"})

    assert response.status_code == 400
    assert "form" not in response.text


def _post(
    client: OAuthClient,
    button: str,
    *,
    headers: dict[str, str] | None = None,
    action: str | None = None,
    **changes: str | None,
) -> Any:
    """Press a button of the current page by hand, with some hidden fields changed or left out."""
    form = forms_of(client.browser.open(client.authorization_url()).text)[0]
    name, path = ("user", "/sign-in") if button in ("alice", "bob") else ("decision", "/authorize")
    fields = {**form.hidden, name: button, **changes}
    data = {key: value for key, value in fields.items() if value is not None}
    url = action or client.authorization_url().replace("/authorize", path)
    return client.browser.http.post(url, data=data, headers=headers or {})
