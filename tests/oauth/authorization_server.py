"""An authorization server of values: metadata, codes and tokens, no sockets and no signatures.

The browser's part is `sign_in`: from an authorization URL to the query of the response.
"""

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from app.errors import InvalidToken, Unavailable
from app.http import TokenEndpointReply
from app.oauth import pkce
from app.principal import AccessToken, Principal
from app.strict_json import JsonObject, canonical

ISSUER = "https://login.example.com"
METADATA_URL = f"{ISSUER}/.well-known/openid-configuration"
TOKEN_URL = f"{ISSUER}/token"


@dataclass
class AuthorizationServer:
    """`claims` and `metadata` change what the next ID token and the metadata say; None takes a member out."""

    now: float
    client_id: str = "web"
    metadata: dict[str, Any] = field(default_factory=dict)
    claims: dict[str, Any] = field(default_factory=dict)
    reply: TokenEndpointReply | None = None
    down: bool = False
    fetches: int = 0
    token_requests: list[tuple[Mapping[str, str], Mapping[str, str]]] = field(default_factory=list)
    _codes: dict[str, dict[str, str]] = field(default_factory=dict)
    _subjects: dict[str, str] = field(default_factory=dict)
    _tokens: dict[str, JsonObject] = field(default_factory=dict)

    def fetch(self, url: str) -> object:
        """Implements ports.DocumentSource."""
        self.fetches += 1
        if self.down or url != METADATA_URL:
            raise Unavailable("HTTP 404", retry_after=30)
        document = {
            "issuer": ISSUER,
            "authorization_endpoint": f"{ISSUER}/authorize",
            "token_endpoint": TOKEN_URL,
            "code_challenge_methods_supported": ["S256"],
            "authorization_response_iss_parameter_supported": True,
        }
        return _changed(document, self.metadata)

    def sign_in(self, authorization_url: str, subject: str = "alice") -> list[tuple[str, str]]:
        """The user signs in. Returns the query with which the browser comes back."""
        asked = dict(parse_qsl(urlsplit(authorization_url).query))
        code = secrets.token_urlsafe(16)
        self._codes[code] = asked
        self._subjects[code] = subject
        return [("code", code), ("state", asked["state"]), ("iss", ISSUER)]

    def post(self, url: str, form: Mapping[str, str], headers: Mapping[str, str]) -> TokenEndpointReply:
        """Implements ports.TokenEndpoint."""
        self.token_requests.append((form, headers))
        if self.down:
            raise Unavailable("timeout", retry_after=30)
        if self.reply is not None:
            return self.reply
        asked = self._codes.pop(form["code"], None)
        if (
            url != TOKEN_URL
            or asked is None
            or form["redirect_uri"] != asked["redirect_uri"]
            or pkce.challenge(form["code_verifier"]) != asked["code_challenge"]
            or form.get("resource") != asked.get("resource")
        ):
            return TokenEndpointReply(400, "application/json", b'{"error":"invalid_grant"}')
        claims = {
            "iss": ISSUER,
            "sub": self._subjects[form["code"]],
            "aud": self.client_id,
            "iat": int(self.now),
            "exp": int(self.now) + 300,
            "nonce": asked.get("nonce"),
        }
        token = secrets.token_urlsafe(16)
        self._tokens[token] = _changed(claims, self.claims)
        return TokenEndpointReply(200, "application/json", canonical({"id_token": token, "access_token": token}))

    def get(self, url: str, headers: Mapping[str, str]) -> TokenEndpointReply:
        """Implements ports.TokenEndpoint."""
        raise NotImplementedError

    def verified_claims(self, token: str, *, now: float) -> JsonObject:
        """Implements oauth.sign_in.VerifyClaims."""
        if token not in self._tokens:
            raise InvalidToken("signature")
        return self._tokens[token]

    def verified_access_token(self, token: str, *, now: float) -> AccessToken:
        """Implements oauth.sign_in.VerifyAccessToken."""
        claims = self.verified_claims(token, now=now)
        return AccessToken(Principal(ISSUER, claims["sub"], claims["aud"]), frozenset(), claims["exp"])


def _changed(members: dict[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in {**members, **changes}.items() if value is not None}
