"""An application that is registered at Local Hub, as the tests drive it: right by default, wrong on demand."""

import base64
import hashlib
import json
from dataclasses import dataclass, replace
from typing import Any, Final
from urllib.parse import parse_qs, quote, urlencode, urlsplit

from app.adapters.oauth_http import HttpTokenEndpoint
from app.http import TokenEndpointReply
from infra.local.provider import ConfidentialClient, Hub, ScriptedBrowser

REDIRECT_URI: Final = "http://127.0.0.1:9/oauth/callback/local"
CLIENT: Final = ConfidentialClient(
    client_id="round trip", client_secret="s3cret&+ %:", redirect_uris=(REDIRECT_URI,), name="Roundtrip <b>"
)
VERIFIER: Final = "v" * 43
CHALLENGE: Final = base64.urlsafe_b64encode(hashlib.sha256(VERIFIER.encode()).digest()).rstrip(b"=").decode()
ALL_SCOPES: Final = "user:read repo:read repo:write"
# A request times out soon where a test wants it to hang, and late enough for a busy machine where not.
SOON: Final = 0.3


@dataclass
class HubClient:
    """A change of None leaves a parameter out."""

    hub: Hub
    browser: ScriptedBrowser
    endpoint: HttpTokenEndpoint
    client: ConfidentialClient = CLIENT
    secret_in_form: bool = False

    def impatient(self, timeout: float = SOON) -> "HubClient":
        """The same application with a short deadline."""
        return replace(self, endpoint=HttpTokenEndpoint(timeout=timeout))

    def authorization_url(self, **changes: str | None) -> str:
        parameters: dict[str, str | None] = {
            "response_type": "code",
            "client_id": self.client.client_id,
            "redirect_uri": REDIRECT_URI,
            "scope": ALL_SCOPES,
            "state": "state-1",
            "code_challenge": CHALLENGE,
            "code_challenge_method": "S256",
            **changes,
        }
        return f"{self.hub.authorize_url}?{urlencode(_present(parameters))}"

    def authorize(self, *, user: str = "alice-hub", allow: bool = True, **changes: Any) -> dict[str, str]:
        """Go through the pages and return the parameters of the authorization response."""
        return response_parameters(self.browser.sign_in(self.authorization_url(**changes), user=user, approve=allow))

    def exchange(self, code: str, **changes: str | None) -> TokenEndpointReply:
        form: dict[str, str | None] = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": REDIRECT_URI,
            "code_verifier": VERIFIER,
            **changes,
        }
        return self.post(self.hub.token_url, form)

    def tokens(self, **changes: Any) -> dict[str, Any]:
        """A whole flow: authorize, exchange, return the token response."""
        return document(self.exchange(self.authorize(**changes)["code"]))

    def refresh(self, refresh_token: str, **changes: str | None) -> TokenEndpointReply:
        return self.post(self.hub.token_url, {"grant_type": "refresh_token", "refresh_token": refresh_token, **changes})

    def revoke(self, token: str, **changes: str | None) -> TokenEndpointReply:
        return self.post(self.hub.revocation_url, {"token": token, **changes})

    def get(self, path: str, access_token: str) -> TokenEndpointReply:
        return self.endpoint.get(f"{self.hub.api_url}/{path}", {"authorization": f"Bearer {access_token}"})

    def post(self, url: str, form: dict[str, str | None]) -> TokenEndpointReply:
        """A form with our credentials, in the header or in the body."""
        client_id, secret = self.client.client_id, self.client.client_secret
        if self.secret_in_form:
            return self.endpoint.post(url, _present({**form, "client_id": client_id, "client_secret": secret}), {})
        # %20 for a blank: Authlib, like other servers, does not read "+" as one here.
        pair = f"{quote(client_id, safe='')}:{quote(secret, safe='')}".encode()
        headers = {"authorization": f"Basic {base64.b64encode(pair).decode()}"}
        return self.endpoint.post(url, _present(form), headers)


def document(reply: TokenEndpointReply, *, status: int = 200) -> dict[str, Any]:
    """The JSON object of a reply that has this status."""
    assert reply.status == status, (reply.status, reply.body)
    found: dict[str, Any] = json.loads(reply.body)
    return found


def error_of(reply: TokenEndpointReply) -> tuple[int, str]:
    """Status and error code of a refusal."""
    return reply.status, json.loads(reply.body)["error"]


def response_parameters(redirect: str) -> dict[str, str]:
    """The query of a redirect to the client, each parameter once."""
    assert redirect.startswith(REDIRECT_URI), redirect
    return {name: value for name, (value,) in parse_qs(urlsplit(redirect).query).items()}


def _present(parameters: dict[str, str | None]) -> dict[str, str]:
    return {name: value for name, value in parameters.items() if value is not None}
