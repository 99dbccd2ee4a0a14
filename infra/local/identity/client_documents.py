"""Client ID metadata documents: which URLs may be client IDs, what their document must say, and for how long."""

import json
from typing import Final
from urllib.parse import unquote, urlsplit

from authlib.oauth2 import OAuth2Error

from infra.local.identity.client_document_fetcher import DocumentFetcher, DocumentUnavailable
from infra.local.identity.client_metadata import ClientMetadata, parse_client_metadata
from infra.local.identity.redirect_uris import LOOPBACK_HOSTS

_SECRETS: Final = ("client_secret", "client_secret_expires_at")


class ClientDocuments:
    """Documents by client ID. `refresh` reaches the network when a document is missing or stale; `get` never."""

    def __init__(self, fetch: DocumentFetcher, *, allow_loopback: bool) -> None:
        self._fetch = fetch
        self._allow_loopback = allow_loopback
        self._documents: dict[str, tuple[ClientMetadata, float]] = {}

    def get(self, client_id: str) -> ClientMetadata | None:
        document = self._documents.get(client_id)
        return document[0] if document else None

    def refresh(self, client_id: str, *, now: float) -> None:
        """Make `get` answer with a fresh document, or raise `DocumentUnavailable` and forget the old one."""
        document = self._documents.get(client_id)
        if document and now < document[1]:
            return
        self._documents.pop(client_id, None)
        check_client_id_url(client_id, allow_loopback=self._allow_loopback)
        fetched = self._fetch(client_id)
        self._documents[client_id] = (parse_document(client_id, fetched.body), now + fetched.max_age)


def is_url(client_id: str) -> bool:
    """Whether the client ID asks for a document to be fetched."""
    return client_id.startswith(("https://", "http://"))


def check_client_id_url(client_id: str, *, allow_loopback: bool) -> None:
    """The rules of draft-ietf-oauth-client-id-metadata-document-00 §3, and loopback only where it is allowed."""
    try:
        parts = urlsplit(client_id)
        host, _ = parts.hostname, parts.port
    except ValueError as error:
        raise DocumentUnavailable("The client ID is not a URL: check its host and port") from error
    if not client_id.isascii() or not client_id.isprintable() or not host:
        raise DocumentUnavailable("The client ID is not a URL: percent-encode what RFC 3986 does not allow")
    loopback = host in LOOPBACK_HOSTS
    if loopback and not allow_loopback:
        raise DocumentUnavailable("The client ID is on this computer: publish the document on the internet")
    if parts.scheme != "https" and not loopback:
        raise DocumentUnavailable("The client ID must be an https URL")
    if parts.path in ("", "/"):
        raise DocumentUnavailable("The client ID needs a path, as in https://app.example.com/client.json")
    if any(unquote(segment) in (".", "..") for segment in parts.path.split("/")):
        raise DocumentUnavailable("The client ID must not have . or .. in its path")
    if "#" in client_id or "@" in parts.netloc:
        raise DocumentUnavailable("The client ID must have neither fragment nor user information")


def parse_document(client_id: str, body: bytes) -> ClientMetadata:
    """Check a fetched document (MCP client registration, Implementation Requirements)."""
    try:
        document = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise DocumentUnavailable("The document is not JSON") from error
    if not isinstance(document, dict):
        raise DocumentUnavailable("The document is not a JSON object")
    # Compared as strings: anything looser would let one URL speak for another.
    if document.get("client_id") != client_id:
        raise DocumentUnavailable("The client_id in the document is not its URL: make them equal")
    if not document.get("client_name"):
        raise DocumentUnavailable("The document has no client_name: add one")
    if any(name in document for name in _SECRETS):
        raise DocumentUnavailable("The document contains a client secret, which everyone can read: remove it")
    method = document.get("token_endpoint_auth_method", "none")
    if method != "none":
        raise DocumentUnavailable("The document must say token_endpoint_auth_method none")
    try:
        return parse_client_metadata({**document, "token_endpoint_auth_method": "none"})
    except OAuth2Error as error:
        raise DocumentUnavailable(f"{error.description}") from error
