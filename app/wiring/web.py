"""The web function: the FastAPI application, with the pages of URL mode and the MCP endpoint in it."""

import secrets
from collections.abc import Iterable, Mapping
from functools import cache

from fastapi import FastAPI

from app.adapters import snapstart
from app.adapters.aws_lambda import log_request
from app.adapters.http_client import HttpDocumentSource
from app.adapters.kms import KmsKeyring
from app.adapters.oauth_http import HttpTokenEndpoint
from app.adapters.redis_sessions import RedisLogins, RedisSessions
from app.adapters.tracing import wanted_tracing
from app.authorization import access_token
from app.authorization.access_token import TokenRules
from app.authorization.jwks import Jwks, metadata_urls
from app.authorization.signed_jwt import verified_claims
from app.connection_settings import ConnectionSettings, pages_url
from app.effects.approvals import Approvals
from app.oauth.browser import BrowserFlow
from app.oauth.id_token import IdTokenRules
from app.oauth.server_metadata import MetadataCache
from app.oauth.sessions import Sessions
from app.oauth.sign_in import Identification, OpenIdConnect, PlainOAuth, SignIn, SignInClient
from app.principal import AccessToken
from app.protocol.features import Features
from app.settings import Settings
from app.strict_json import JsonObject
from app.web import create_app
from app.web.browser_pages import BrowserPages
from app.web.late_pages import LatePages
from app.wiring.connections import Stores, url_mode
from app.wiring.mcp import McpFunction


def build(environment: Mapping[str, str], offered: Features | Iterable[object]) -> FastAPI:
    """The web application of a deployment. Raises ConfigurationError, so that a broken one does not start."""
    settings = Settings.read(environment, KmsKeyring)
    mode = url_mode(environment, settings)
    documents = HttpDocumentSource()
    function = McpFunction(
        settings,
        offered,
        documents,
        connections=None if mode is None else mode.connections,
        effects=None if mode is None else mode.effects,
        asks_limited=mode is not None and mode.asks_limited,
        tracing=wanted_tracing(environment),
    )
    metadata = MetadataCache(documents, issuer=settings.issuer, locations=metadata_urls(settings.issuer))
    snapstart.register(settings.keyring, function.keys, metadata, documents, mode)
    if mode is None:
        return create_app(function.respond, log_request)

    @cache
    def pages() -> BrowserPages:
        return browser_pages(settings, mode.settings, mode.stores, metadata, function.keys, mode.effects().approvals)

    if mode.is_read:
        return create_app(function.respond, log_request, pages())
    late = LatePages(pages, base_url=pages_url(settings), server_name=settings.server_name)
    return create_app(function.respond, log_request, late)


def browser_pages(
    settings: Settings,
    configured: ConnectionSettings,
    stores: Stores,
    metadata: MetadataCache,
    keys: Jwks,
    approvals: Approvals,
) -> BrowserPages:
    """The pages of URL mode, signed in to at the MCP authorization server. `keys` are the ones of access tokens."""
    tokens = HttpTokenEndpoint()
    return BrowserPages(
        base_url=configured.base_url,
        server_name=settings.server_name,
        flow=BrowserFlow(
            stores.flows,
            stores.vault,
            tokens,
            keyring=configured.keyring,
            providers=configured.providers,
            base_url=configured.base_url,
        ),
        sign_in=SignIn(
            client=SignInClient(configured.client_id, f"{configured.base_url}/auth/callback", configured.client_secret),
            metadata=metadata,
            tokens=tokens,
            identification=_identification(settings, configured, keys),
            logins=RedisLogins(stores.redis),
            keyring=configured.keyring,
            random_text=lambda: secrets.token_urlsafe(32),
        ),
        sessions=Sessions(RedisSessions(stores.redis), configured.keyring),
        approvals=approvals,
        keyring=configured.keyring,
        scope_descriptions={
            scope: text for each in configured.providers.values() for scope, text in each.scope_descriptions.items()
        },
    )


def _identification(settings: Settings, configured: ConnectionSettings, keys: Jwks) -> Identification:
    """Who signed in, named by the same claim as in access tokens: the two are compared."""

    def claims(token: str, *, now: float) -> JsonObject:
        return verified_claims(token, keys, types=(None, "jwt"), now=now)

    def verified(token: str, *, now: float) -> AccessToken:
        rules = TokenRules(settings.issuer, settings.resource_url, settings.subject_claim)
        return access_token.verify(token, keys, rules, now=now)

    if configured.openid:
        rules = IdTokenRules(settings.issuer, configured.client_id, settings.subject_claim)
        # With the address the pages show people whom they are signed in as.
        return OpenIdConnect(rules, claims, scope="openid email")
    return PlainOAuth(resource=settings.resource_url, client_id=configured.client_id, verify=verified)
