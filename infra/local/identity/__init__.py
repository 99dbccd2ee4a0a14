"""A local authorization server (OAuth 2.1, OpenID Connect) whose tokens the MCP server accepts. Development only."""

from infra.local.identity.application import create_app
from infra.local.identity.authorization_server import AuthorizationServer
from infra.local.identity.client_document_fetcher import DocumentUnavailable, FetchedDocument
from infra.local.identity.scripted_browser import ScriptedBrowser, SignInFailed, sign_in
from infra.local.identity.serving import Identity, identity_in_thread, serve_identity
from infra.local.identity.settings import ALICE, BOB, ConfidentialClient, IdentitySettings, User
from infra.local.identity.signing_keys import OMIT, generate_signing_key

__all__ = [
    "ALICE",
    "BOB",
    "OMIT",
    "AuthorizationServer",
    "ConfidentialClient",
    "DocumentUnavailable",
    "FetchedDocument",
    "Identity",
    "IdentitySettings",
    "ScriptedBrowser",
    "SignInFailed",
    "User",
    "create_app",
    "generate_signing_key",
    "identity_in_thread",
    "serve_identity",
    "sign_in",
]
