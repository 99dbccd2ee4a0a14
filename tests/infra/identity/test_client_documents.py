"""Client ID metadata documents: the rules for their URL, their content and their reuse."""

import json
import secrets
from typing import Any

import pytest

from infra.local.identity import DocumentUnavailable, FetchedDocument
from infra.local.identity.client_documents import ClientDocuments, check_client_id_url
from tests.infra.identity.conftest import PublishedDocuments
from tests.infra.identity.oauth_client import REDIRECT_URI, Clock, OAuthClient


def test_a_published_document_is_all_the_registration_a_client_needs(
    client: OAuthClient, internet: PublishedDocuments
) -> None:
    """MCP client registration, Client ID Metadata Documents."""
    client.client_id = _publish(internet)

    tokens = client.tokens()

    assert tokens["access_token"]
    assert client.refresh(tokens["refresh_token"]).status_code == 200


def test_the_consent_page_shows_the_host_that_published_the_client(
    client: OAuthClient, internet: PublishedDocuments
) -> None:
    """MCP authorization, Client ID Metadata Document Security: display host and redirect host."""
    client.client_id = _publish(internet, client_name="Nice name")
    client.authorize()

    page = client.browser.open(client.authorization_url()).text

    assert "Nice name" in page
    assert "app.example" in page
    assert "127.0.0.1:3118" in page
    assert "program on this computer" in page


@pytest.mark.parametrize(
    "changes",
    [
        {"client_id": "https://app.example/another.json"},
        {"client_id": None},
        {"client_name": None},
        {"redirect_uris": None},
        {"redirect_uris": []},
        {"redirect_uris": ["javascript:alert(1)"]},
        {"redirect_uris": ["https://app.example/another"]},
        {"token_endpoint_auth_method": "client_secret_basic"},
        {"client_secret": "x"},
        {"client_secret_expires_at": 0},
    ],
    ids=str,
)
def test_a_document_that_breaks_a_rule_gets_a_page_and_no_redirect(
    client: OAuthClient, internet: PublishedDocuments, changes: dict[str, Any]
) -> None:
    """MCP client registration, Implementation Requirements; draft-ietf-oauth-client-id-metadata-document §4.1."""
    client.client_id = _publish(internet, **changes)

    response = client.http.get(client.authorization_url())

    assert response.status_code == 400
    assert "location" not in response.headers


@pytest.mark.parametrize("body", [b"", b"[]", b"<html>", b"\xff\xfe", b"[" * 5000])
def test_a_document_that_is_no_json_object_is_refused(
    client: OAuthClient, internet: PublishedDocuments, body: bytes
) -> None:
    """MCP client registration: MUST validate the document structure."""
    client.client_id = _publish(internet)
    internet[client.client_id] = FetchedDocument(body)

    assert client.http.get(client.authorization_url()).status_code == 400


def test_a_document_that_is_not_there_is_told_at_both_endpoints(client: OAuthClient) -> None:
    """MCP client registration, flow: invalid_client or invalid_request."""
    client.client_id = "https://app.example/missing.json"

    page = client.http.get(client.authorization_url())
    token = client.exchange("any code")

    assert page.status_code == 400
    assert "404" in page.text
    assert (token.status_code, token.json()["error"]) == (400, "invalid_client")


def test_a_document_is_reused_for_as_long_as_it_allows(
    client: OAuthClient, internet: PublishedDocuments, clock: Clock
) -> None:
    """MCP client registration: SHOULD cache metadata respecting HTTP cache headers."""
    client.client_id = _publish(internet, max_age=100)
    client.authorize()
    clock.advance(99)
    client.authorize()
    assert internet.fetched.count(client.client_id) == 1

    clock.advance(1)
    client.authorize()
    assert internet.fetched.count(client.client_id) == 2


def test_a_document_that_was_withdrawn_stops_working_once_stale(clock: Clock, internet: PublishedDocuments) -> None:
    """A failed fetch is no reason to go on trusting the old document."""
    client_id = _publish(internet, max_age=10)
    documents = ClientDocuments(internet, allow_loopback=False)
    documents.refresh(client_id, now=0)
    assert documents.get(client_id)

    del internet[client_id]
    with pytest.raises(DocumentUnavailable):
        documents.refresh(client_id, now=10)

    assert documents.get(client_id) is None


@pytest.mark.parametrize(
    "client_id",
    [
        "http://app.example/client.json",
        "https://app.example",
        "https://app.example/",
        "https://app.example/a/../client.json",
        "https://app.example/./client.json",
        "https://app.example/%2e%2E/client.json",
        "https://app.example/client.json#x",
        "https://app.example/client.json#",
        "https://user@app.example/client.json",
        "https://user:pw@app.example/client.json",
        "https://app.example:99999/client.json",
        "https://[::1/client.json",
        "https:///client.json",
        "https://app.example/clïent.json",
        "https://app.example/client.json\n",
    ],
)
def test_a_url_that_breaks_a_rule_is_never_fetched(
    client: OAuthClient, internet: PublishedDocuments, client_id: str
) -> None:
    """draft-ietf-oauth-client-id-metadata-document §3."""
    before = list(internet.fetched)

    response = client.http.get(client.authorization_url(client_id=client_id))

    assert response.status_code == 400
    assert internet.fetched == before


@pytest.mark.parametrize("host", ["127.0.0.1:80", "localhost", "[::1]:9"])
def test_a_loopback_client_id_is_for_local_use_only(host: str) -> None:
    """So that a client under development can publish its document on its own machine."""
    check_client_id_url(f"http://{host}/client.json", allow_loopback=True)

    with pytest.raises(DocumentUnavailable, match="on this computer"):
        check_client_id_url(f"http://{host}/client.json", allow_loopback=False)


def _publish(internet: PublishedDocuments, *, max_age: int = 300, **changes: Any) -> str:
    client_id = f"https://app.example/{secrets.token_hex(8)}/client.json"
    document = {
        "client_id": client_id,
        "client_name": "App",
        "redirect_uris": [REDIRECT_URI],
        "grant_types": ["authorization_code", "refresh_token"],
        **changes,
    }
    body = json.dumps({name: value for name, value in document.items() if value is not None}).encode()
    internet[client_id] = FetchedDocument(body, max_age=max_age)
    return client_id
