"""Signing in at a real authorization server, over HTTP and with signed tokens, and everything kept in Valkey."""

import secrets
import time
from collections.abc import Callable, Iterator
from functools import partial
from urllib.parse import urlsplit

import pytest

from app.adapters.http_client import HttpDocumentSource
from app.adapters.oauth_http import HttpTokenEndpoint
from app.adapters.redis_connection import connect
from app.adapters.redis_flows import RedisFlowStore
from app.adapters.redis_sessions import RedisLogins, RedisSessions
from app.adapters.redis_vault import RedisVaultStore
from app.authorization import access_token
from app.authorization.access_token import TokenRules
from app.authorization.jwks import Jwks, metadata_urls
from app.authorization.signed_jwt import verified_claims
from app.oauth.connections import Connected
from app.oauth.id_token import IdTokenRules
from app.oauth.server_metadata import MetadataCache
from app.oauth.sign_in import Identification, LoginStore, OpenIdConnect, PlainOAuth, SignIn, SignInClient
from app.principal import Principal
from infra.local.identity import ConfidentialClient, Identity, IdentitySettings, identity_in_thread, sign_in
from tests.adapters.contracts.valkey import Server
from tests.web.world import CLIENT_ID, KEYRING, Browser, Stores, World, heading

BASE_URL = "http://127.0.0.1:9390"
RESOURCE = f"{BASE_URL}/mcp"
SECRET = "s3cret&+ %"
ID_TOKEN_TYPES = (None, "jwt")


@pytest.fixture(scope="module")
def identity() -> Iterator[Identity]:
    web = ConfidentialClient(
        client_id="web", client_secret=SECRET, redirect_uris=(f"{BASE_URL}/auth/callback",), name="The web function"
    )
    settings = IdentitySettings(resources=(RESOURCE,), scopes={"tickets:read": "Read your tickets"}, clients=(web,))
    with identity_in_thread(settings) as running:
        yield running


def openid(identity: Identity, keys: Jwks) -> Identification:
    rules = IdTokenRules(identity.url, "web", max_age=3600)
    verify = partial(verified_claims, keys=keys, types=ID_TOKEN_TYPES)
    return OpenIdConnect(rules, lambda token, *, now: verify(token, now=now), scope="openid email")


def plain_oauth(identity: Identity, keys: Jwks) -> Identification:
    rules = TokenRules(identity.url, RESOURCE)
    return PlainOAuth(
        resource=RESOURCE,
        client_id="web",
        verify=lambda token, *, now: access_token.verify(token, keys, rules, now=now),
        scope="tickets:read",
    )


def world_at(
    identity: Identity, identification: Callable[[Identity, Jwks], Identification], stores: Stores | None = None
) -> World:
    """Our pages, with every sign-in at the real server."""

    def real(logins: LoginStore) -> SignIn:
        documents = HttpDocumentSource()
        return SignIn(
            client=SignInClient("web", f"{BASE_URL}/auth/callback", SECRET),
            metadata=MetadataCache(documents, issuer=identity.url, locations=metadata_urls(identity.url)),
            tokens=HttpTokenEndpoint(),
            identification=identification(identity, Jwks(documents, issuer=identity.url)),
            logins=logins,
            keyring=KEYRING,
            random_text=lambda: secrets.token_urlsafe(32),
        )

    return World(BASE_URL, stores=stores, sign_in=real, now=time.time())


def sign_in_at(browser: Browser, path: str, user: str) -> str:
    """Open a page, sign in at the server, and return the address of the page that follows."""
    callback = sign_in(browser.get(path).headers["location"], user=user)
    location: str = browser.get(callback).headers["location"]
    return location


@pytest.mark.parametrize("identification", [openid, plain_oauth])
def test_alice_signs_in_and_connects(
    identity: Identity, identification: Callable[[Identity, Jwks], Identification]
) -> None:
    """SECURITY section 3, steps 2 and 3: OpenID Connect, and plain OAuth with a token for ourselves."""
    world = world_at(identity, identification)
    alice = Principal(identity.url, "alice", CLIENT_ID)
    link = world.link(alice)
    browser = world.browser()

    assert urlsplit(sign_in_at(browser, link, "alice")).path == link
    assert connects(world, browser, link, alice)


def connects(world: World, browser: Browser, link: str, who: Principal) -> bool:
    """Approve on the page, and let the tool try again."""
    url = browser.submit(browser.get(link), "/start").headers["location"]
    browser.get(world.provider.authorize(url))
    return isinstance(world.connect(who), Connected)


@pytest.mark.parametrize("identification", [openid, plain_oauth])
def test_bob_on_alices_link_gets_nowhere(
    identity: Identity, identification: Callable[[Identity, Jwks], Identification]
) -> None:
    """SECURITY 118, with real tokens."""
    world = world_at(identity, identification)
    link = world.link(Principal(identity.url, "alice", CLIENT_ID))
    browser = world.browser()
    sign_in_at(browser, link, "bob")

    assert heading(browser.get(link)) == "This link was created for another account"


def test_the_page_shows_the_account_by_the_name_that_the_issuer_tells(identity: Identity) -> None:
    """SECURITY section 3, step 5."""
    world = world_at(identity, openid)
    browser = world.browser()
    sign_in_at(browser, "/connections", "alice")

    assert "alice@example.com" in browser.get("/connections").text


def test_the_local_cookies_work_without_tls(identity: Identity) -> None:
    """http is for a loopback address only; the cookies have no prefix there."""
    world = world_at(identity, openid)
    browser = world.browser()
    sign_in_at(browser, "/connections", "alice")

    assert [cookie.name for cookie in browser.http.cookies.jar] == ["mcp_sid"]


def test_a_user_who_denies_the_sign_in_is_told(identity: Identity) -> None:
    """RFC 6749 section 4.1.2.1, with iss (RFC 9207)."""
    world = world_at(identity, openid)
    browser = world.browser()
    callback = sign_in(browser.get("/connections").headers["location"], user="alice", approve=False)

    assert browser.get(callback).status_code == 403


def test_the_whole_loop_in_valkey_in_cluster_mode(identity: Identity, cluster: Server) -> None:
    """SECURITY 142, and the stolen dump of section 1: requests alternate between two instances."""
    redis = connect(cluster.url, cluster=True)
    stores = Stores(RedisSessions(redis), RedisLogins(redis), RedisFlowStore(redis), RedisVaultStore(redis))
    world = world_at(identity, openid, stores)
    alice = Principal(identity.url, "alice", CLIENT_ID)
    link = world.link(alice)
    browser = world.browser()
    sign_in_at(browser, link, "alice")
    assert connects(world, browser, link, alice)
    assert "Notes" in browser.get("/connections").text

    dump = cluster.dump()
    redis.close()
    for secret in (
        *world.provider.access_tokens,
        *(cookie.value or "-" for cookie in browser.http.cookies.jar),
        link.removeprefix("/connect/"),
        "alice",
        SECRET,
    ):
        assert secret not in dump
