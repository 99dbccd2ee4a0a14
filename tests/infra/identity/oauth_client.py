"""A client for the tests that sends exactly what it is told, right or wrong."""

import base64
import hashlib
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import parse_qs, urlencode, urlsplit

import httpx2

from infra.local.identity import Identity, ScriptedBrowser

RESOURCE: Final = "http://127.0.0.1:9/mcp"
REDIRECT_URI: Final = "http://127.0.0.1:3118/callback"
VERIFIER: Final = "v" * 43
CHALLENGE: Final = base64.urlsafe_b64encode(hashlib.sha256(VERIFIER.encode()).digest()).rstrip(b"=").decode()

Changes = str | list[str] | None


@dataclass
class Clock:
    """A clock that moves when told to, and only forward."""

    now: float = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now

    def advance(self, seconds: float) -> None:
        self.now += seconds


@dataclass
class OAuthClient:
    """Registered dynamically. A change of None leaves a parameter out, a list repeats it."""

    identity: Identity
    http: httpx2.Client
    browser: ScriptedBrowser
    client_id: str = ""
    scope: str = "tickets:read"

    def register(self, **changes: Any) -> httpx2.Response:
        metadata = {
            "client_name": "Test client",
            "redirect_uris": [REDIRECT_URI],
            "grant_types": ["authorization_code", "refresh_token"],
            "token_endpoint_auth_method": "none",
            **changes,
        }
        response = self.http.post(f"{self.identity.url}/register", json=metadata)
        if response.status_code == 201:
            self.client_id = response.json()["client_id"]
        return response

    def authorization_url(self, **changes: Any) -> str:
        parameters: dict[str, Changes] = {
            "response_type": "code",
            "client_id": self.client_id,
            "redirect_uri": REDIRECT_URI,
            "scope": self.scope,
            "state": "state-1",
            "code_challenge": CHALLENGE,
            "code_challenge_method": "S256",
            "resource": RESOURCE,
            **changes,
        }
        return f"{self.identity.url}/authorize?{urlencode(_present(parameters), doseq=True)}"

    def authorize(self, *, user: str = "alice", approve: bool = True, **changes: Any) -> dict[str, str]:
        """Go through the pages and return the parameters of the authorization response."""
        return response_parameters(self.browser.sign_in(self.authorization_url(**changes), user=user, approve=approve))

    def exchange(self, code: str, **changes: Any) -> httpx2.Response:
        fields: dict[str, Changes] = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": REDIRECT_URI,
            "client_id": self.client_id,
            "code_verifier": VERIFIER,
            "resource": RESOURCE,
        }
        return self.token(**{**fields, **changes})

    def refresh(self, refresh_token: str, **changes: Any) -> httpx2.Response:
        fields: dict[str, Changes] = {
            "grant_type": "refresh_token",
            "refresh_token": refresh_token,
            "client_id": self.client_id,
            "resource": RESOURCE,
        }
        return self.token(**{**fields, **changes})

    def token(self, **fields: Any) -> httpx2.Response:
        return self.http.post(f"{self.identity.url}/token", data=_present(fields))

    def tokens(self, **changes: Any) -> dict[str, Any]:
        """A whole flow: approve, exchange, return the token response."""
        response = self.exchange(self.authorize(**changes)["code"])
        assert response.status_code == 200, response.text
        answer: dict[str, Any] = response.json()
        return answer

    def userinfo(self, access_token: str) -> httpx2.Response:
        headers = {"Authorization": f"Bearer {access_token}"}
        return self.http.get(f"{self.identity.url}/userinfo", headers=headers)


def response_parameters(redirect: str) -> dict[str, str]:
    """The query of a redirect to the client, each parameter once."""
    assert redirect.startswith(REDIRECT_URI), redirect
    return {name: value for name, (value,) in parse_qs(urlsplit(redirect).query).items()}


def _present(fields: dict[str, Changes]) -> dict[str, str | list[str]]:
    return {name: value for name, value in fields.items() if value is not None}
