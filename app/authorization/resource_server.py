"""The OAuth 2.1 resource server: verifies callers, challenges the others, and describes itself.

Source: MCP 2026-07-28 basic/authorization; RFC 6750 section 3 (challenges); RFC 9728 (metadata).
"""

import json
import re
from collections.abc import Iterable
from typing import Any, Final
from urllib.parse import urlsplit

from app.authorization import access_token
from app.authorization.access_token import TokenRules
from app.authorization.jwks import Jwks
from app.authorization.verified_tokens import VerifiedTokens
from app.errors import (
    AuthorizationError,
    ConfigurationError,
    InsufficientScope,
    InvalidRequest,
    MissingCredentials,
    Unavailable,
)
from app.http import NOSNIFF, HttpRequest, HttpResponse
from app.principal import AccessToken

_SCOPE = re.compile(r"[\x21\x23-\x5b\x5d-\x7e]+\Z")
_WELL_KNOWN: Final = "/.well-known/oauth-protected-resource"


class JwtResourceServer:
    """Accepts JWT access tokens of one issuer for one resource. Implements ports.ResourceServer.

    Raises ConfigurationError for a scope that no challenge may name.
    """

    def __init__(
        self,
        rules: TokenRules,
        keys: Jwks,
        *,
        required_scopes: Iterable[str] = (),
        scopes_supported: Iterable[str] = (),
        name: str = "",
    ) -> None:
        self._rules = rules
        self._tokens = VerifiedTokens(keys, rules)
        self._required_scopes = tuple(required_scopes)
        self._scopes_supported = tuple(dict.fromkeys((*self._required_scopes, *scopes_supported)))
        problems = [problem for scope in self._scopes_supported for problem in scope_problems(scope)]
        if problems:
            raise ConfigurationError(problems)
        self._name = name
        resource = urlsplit(rules.audience)
        self._metadata_url = f"{resource.scheme}://{resource.netloc}{_WELL_KNOWN}{resource.path}"
        self.metadata_paths = (_WELL_KNOWN + resource.path, _WELL_KNOWN)

    def authenticate(self, request: HttpRequest, *, now: float) -> AccessToken:
        """The verified access token of a request. Raises AuthorizationError or Unavailable."""
        token = access_token.bearer_token(request.headers)
        verified = self._tokens.verify(token, now=now)
        if not verified.scopes.issuperset(self._required_scopes):
            raise InsufficientScope(self._required_scopes)
        return verified

    def challenge(self, error: Exception) -> HttpResponse:
        """The response to a refused request. Says nothing of the token and nothing of the reason."""
        match error:
            case MissingCredentials():
                return self._challenge(401, {}, self._required_scopes)
            case InvalidRequest():
                return self._challenge(400, {"error": "invalid_request"}, ())
            case InsufficientScope():
                scopes = tuple(dict.fromkeys((*self._required_scopes, *error.required)))
                return self._challenge(403, {"error": "insufficient_scope"}, scopes)
            case AuthorizationError():
                return self._challenge(401, {"error": "invalid_token"}, self._required_scopes)
            case Unavailable():
                # Not 401: that would send every client into a login that cannot succeed now.
                headers = {"retry-after": str(error.retry_after)}
                return _json(503, {"error": "temporarily_unavailable"}, headers)
            case _:
                raise TypeError(type(error))

    def metadata(self) -> HttpResponse:
        """The protected resource metadata document (RFC 9728 section 2). Needs no access token."""
        document: dict[str, Any] = {
            "resource": self._rules.audience,
            "authorization_servers": [self._rules.issuer],
            "bearer_methods_supported": ["header"],
        }
        if self._scopes_supported:
            document["scopes_supported"] = list(self._scopes_supported)
        if self._name:
            document["resource_name"] = self._name
        return _json(200, document, {"access-control-allow-origin": "*", "cache-control": "public, max-age=300"})

    def _challenge(self, status: int, parameters: dict[str, str], scopes: tuple[str, ...]) -> HttpResponse:
        parameters = {**parameters, "resource_metadata": self._metadata_url}
        if scopes:
            parameters["scope"] = " ".join(scopes)
        value = "Bearer " + ", ".join(f'{name}="{text}"' for name, text in parameters.items())
        # API Gateway renames WWW-Authenticate; template.yaml maps x-mcp-challenge back to it.
        headers = {"www-authenticate": value, "x-mcp-challenge": value}
        return _json(status, {"error": parameters.get("error", "unauthorized")}, headers)


def scope_problems(scope: str) -> list[str]:
    """Why no challenge may name this scope, with the remedy; empty when it may."""
    if not _SCOPE.match(scope):
        # It stands between quotes in a challenge.
        return [f"The scope {scope!r} has a character that no scope may have (RFC 6749 section 3.3): rename it."]
    if scope == "offline_access":
        # Clients ask for it to get a refresh token; no resource needs it (MCP basic/authorization).
        return ["The scope offline_access is for clients to ask for: take it out of what tools and requests need."]
    return []


def _json(status: int, document: dict[str, Any], headers: dict[str, str]) -> HttpResponse:
    body = json.dumps(document, separators=(",", ":")).encode()
    return HttpResponse(status, {"content-type": "application/json", **NOSNIFF, **headers}, body)
