"""The pages: what a person sees, one click the second time, and what other sites cannot do with them."""

from collections.abc import Iterator
from typing import Any

import httpx2
import pytest

from app.adapters.oauth_http import HttpTokenEndpoint
from infra.local.identity.scripted_browser import forms_of
from infra.local.provider import Hub, HubSettings, ScriptedBrowser, provider_in_thread
from tests.infra.provider.hub_client import CLIENT, REDIRECT_URI, HubClient, response_parameters

PAGE = "/authorize"


@pytest.fixture
def signed_in(client: HubClient) -> HubClient:
    """In a browser that has chosen alice-hub, and has decided nothing yet."""
    page = client.browser.open(client.authorization_url())
    _post(client, "/sign-in", csrf_token=_csrf_token(page), user="alice-hub")
    client.hub.record.clear()
    return client


def test_the_first_time_takes_an_account_and_a_consent(client: HubClient, hub: Hub) -> None:
    """Sign-in, then consent, each by one button."""
    client.authorize()

    assert [(each.method, each.path) for each in hub.record.arrivals] == [
        ("GET", PAGE),
        ("POST", "/sign-in"),
        ("GET", PAGE),
        ("POST", PAGE),
    ]


def test_the_second_time_takes_one_click(client: HubClient, hub: Hub) -> None:
    """As with real providers: the browser is remembered, and so is the consent."""
    client.authorize()
    hub.record.clear()

    assert "Welcome back, alice-hub" in client.browser.open(client.authorization_url()).text
    assert "code" in client.authorize()
    assert [each.method for each in hub.record.arrivals] == ["GET", "GET", "POST"]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({"scope": "user:read"}, {"scope": "user:read repo:read"}),
        ({"user": "bob-hub"}, {"user": "alice-hub"}),
        ({"allow": False}, {}),
    ],
    ids=["more scopes", "another account", "after a no"],
)
def test_only_what_was_agreed_to_is_remembered(
    signed_in: HubClient, first: dict[str, Any], second: dict[str, str]
) -> None:
    """A wider scope, another account, or a no leads to the full question."""
    signed_in.authorize(**first)
    scope = {"scope": second["scope"]} if "scope" in second else {}
    page = signed_in.browser.open(signed_in.authorization_url(**scope))
    if "user" in second:
        _post(signed_in, "/sign-in", csrf_token=_csrf_token(page), user=second["user"])
        page = signed_in.browser.open(signed_in.authorization_url())

    assert "Welcome back" not in page.text
    assert "Authorize" in page.text


@pytest.fixture(scope="module")
def skipping_hub() -> Iterator[Hub]:
    with provider_in_thread(HubSettings(clients=(CLIENT,), skip_remembered_consent=True)) as hub:
        yield hub


def test_a_provider_may_skip_the_page_for_who_agreed_before(skipping_hub: Hub, browser: ScriptedBrowser) -> None:
    """MCP, Security Best Practices, Confused Deputy Problem: a GET alone then yields a code."""
    client = HubClient(skipping_hub, browser, HttpTokenEndpoint())
    client.authorize()

    response = client.browser.open(client.authorization_url())

    assert response.status_code == 303
    assert "code" in response_parameters(response.headers["location"])
    # Somebody else's browser is asked all the same.
    with ScriptedBrowser() as other:
        assert other.open(client.authorization_url()).status_code == 200


def test_the_consent_page_says_who_asks_for_what(signed_in: HubClient) -> None:
    """The name is the client's own, so it is escaped; the scopes come with their names."""
    page = signed_in.browser.open(signed_in.authorization_url(scope="repo:read")).text

    assert "Roundtrip &lt;b&gt;" in page
    assert "<b>" not in page
    assert "See your repositories <code>repo:read</code>" in page
    assert "repo:write" not in page
    assert "<script" not in page


def test_a_request_without_a_scope_gets_the_smallest(signed_in: HubClient) -> None:
    """RFC 6749 §3.3: a pre-defined default value, shown as any other."""
    page = signed_in.browser.open(signed_in.authorization_url(scope=None)).text

    assert "<code>user:read</code>" in page


def test_every_page_forbids_script_and_frames_and_caches(signed_in: HubClient) -> None:
    """The redirect after the form needs the client's origin in form-action, or browsers stop it."""
    headers = signed_in.browser.open(signed_in.authorization_url()).headers

    assert headers["cache-control"] == "no-store"
    assert headers["referrer-policy"] == "same-origin"
    assert "default-src 'none'" in headers["content-security-policy"]
    assert "frame-ancestors 'none'" in headers["content-security-policy"]
    assert "form-action 'self' http://127.0.0.1:9" in headers["content-security-policy"]


def test_the_stylesheet_is_served(client: HubClient, hub: Hub) -> None:
    """A page without script and without style would be a poor one."""
    response = client.browser.open(f"{hub.url}/hub.css")

    assert response.headers["content-type"].startswith("text/css")
    assert "/hub.css" in client.browser.open(client.authorization_url()).text


def test_a_form_of_another_site_is_not_accepted(signed_in: HubClient) -> None:
    """Without the CSRF token, or from another origin, nothing is decided."""
    token = _csrf_token(signed_in.browser.open(signed_in.authorization_url()))
    decision: dict[str, Any] = {"decision": "approve", "subject": "alice-hub"}
    refused = [
        _post(signed_in, PAGE, **decision),
        _post(signed_in, PAGE, csrf_token="x" * 64, **decision),
        _post(signed_in, PAGE, headers={"Origin": "https://evil.example"}, csrf_token=token, **decision),
        _post(signed_in, PAGE, headers={"Sec-Fetch-Site": "cross-site"}, csrf_token=token, **decision),
        _post(signed_in, "/sign-in", user="bob-hub"),
    ]

    assert {response.status_code for response in refused} == {403}
    assert _post(signed_in, PAGE, csrf_token=token, **decision).headers["location"].startswith(REDIRECT_URI)


def test_a_page_for_one_account_does_not_decide_for_another(signed_in: HubClient) -> None:
    """Two tabs: the account was changed in the other one."""
    token = _csrf_token(signed_in.browser.open(signed_in.authorization_url()))

    response = _post(signed_in, PAGE, csrf_token=token, decision="approve", subject="bob-hub")

    assert response.status_code == 200
    assert "location" not in response.headers


def test_an_account_that_is_not_offered_is_refused(client: HubClient) -> None:
    """The buttons are not the only way to make a form."""
    token = _csrf_token(client.browser.open(client.authorization_url()))

    assert _post(client, "/sign-in", csrf_token=token, user="mallory").status_code == 400


def test_another_host_name_is_refused(client: HubClient) -> None:
    """DNS rebinding: a page could otherwise sign itself in."""
    response = client.browser.http.get(client.authorization_url(), headers={"Host": "evil.example"})

    assert response.status_code == 400


def _post(client: HubClient, path: str, *, headers: dict[str, str] | None = None, **fields: Any) -> httpx2.Response:
    query = client.authorization_url().partition("?")[2]
    return client.browser.http.post(f"{client.hub.url}{path}?{query}", data=fields, headers=headers)


def _csrf_token(page: httpx2.Response) -> str:
    return forms_of(page.text)[0].hidden["csrf_token"]
