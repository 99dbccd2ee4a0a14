"""One running authorization server for all tests of this folder, and a client that nobody used before."""

from collections.abc import Iterator
from http.cookiejar import CookieJar, DefaultCookiePolicy

import httpx2
import pytest

from infra.local.identity import (
    ConfidentialClient,
    DocumentUnavailable,
    FetchedDocument,
    Identity,
    IdentitySettings,
    ScriptedBrowser,
    identity_in_thread,
)
from tests.infra.identity.oauth_client import REDIRECT_URI, RESOURCE, Clock, OAuthClient

SCOPES = {"tickets:read": "Read your tickets", "tickets:close": "Close your tickets"}
WEB_CLIENT = ConfidentialClient(
    client_id="web", client_secret="s3cret&+ %", redirect_uris=(REDIRECT_URI,), name="The web function"
)


class PublishedDocuments(dict[str, FetchedDocument]):
    """Stands in for the internet: client metadata documents by URL, and a note of each fetch."""

    def __init__(self) -> None:
        super().__init__()
        self.fetched: list[str] = []

    def __call__(self, url: str) -> FetchedDocument:
        self.fetched.append(url)
        if url not in self:
            raise DocumentUnavailable("It answered 404: serve it with 200 and without a redirect")
        return self[url]


@pytest.fixture(scope="session")
def clock() -> Clock:
    return Clock()


@pytest.fixture(scope="session")
def internet() -> PublishedDocuments:
    return PublishedDocuments()


@pytest.fixture(scope="session")
def identity(clock: Clock, internet: PublishedDocuments) -> Iterator[Identity]:
    settings = IdentitySettings(
        resources=(RESOURCE, "http://127.0.0.1:9/other"),
        scopes=SCOPES,
        clients=(WEB_CLIENT,),
        fetch_client_document=internet,
        clock=clock,
    )
    with identity_in_thread(settings) as running:
        yield running


@pytest.fixture(scope="session")
def http() -> Iterator[httpx2.Client]:
    """Without cookies: every test sees the server as a stranger does."""
    with httpx2.Client(trust_env=False, cookies=_no_cookies()) as client:
        yield client


@pytest.fixture
def browser() -> Iterator[ScriptedBrowser]:
    with ScriptedBrowser() as fresh:
        yield fresh


@pytest.fixture
def client(identity: Identity, http: httpx2.Client, browser: ScriptedBrowser) -> OAuthClient:
    """Registered dynamically as a public client."""
    fresh = OAuthClient(identity, http, browser)
    fresh.register()
    return fresh


def _no_cookies() -> CookieJar:
    return CookieJar(policy=DefaultCookiePolicy(allowed_domains=[]))
