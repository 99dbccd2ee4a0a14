"""The third party behind the example tool: the API of Local Hub. Yours is GitHub, or your own.

The access token comes from `ctx.connect` and is for this API alone. The token that the MCP client sent is for
this server, and must never be passed on (MCP authorization, Token Passthrough).
"""

import time
from typing import Final

from pydantic import BaseModel, TypeAdapter, ValidationError

TIMEOUT: Final = 3.0
MAX_BYTES: Final = 256 * 1024


class Repository(BaseModel):
    owner: str
    name: str
    private: bool
    description: str


_REPOSITORIES: Final = TypeAdapter(list[Repository])


class HubFailed(Exception):
    """There is no usable answer. The text is for the model and quotes nothing of what came back."""


class HubApi:
    """Calls the API at `url` for whoever an access token belongs to."""

    def __init__(self, url: str, *, timeout: float = TIMEOUT) -> None:
        self._url = url
        self._timeout = timeout

    def repositories(self, access_token: str) -> list[Repository]:
        """The user's repositories; needs the scope `repo:read`. Raises HubFailed."""
        try:
            return _REPOSITORIES.validate_json(self._get("/repositories", access_token))
        except ValidationError:
            # Not chained: the error quotes its input.
            raise HubFailed(
                "Local Hub answered something unexpected. Tell the user; trying again will not help."
            ) from None

    def _get(self, path: str, access_token: str) -> bytes:
        # Imported by the first call: the other tools need no HTTP client.
        import httpx2

        headers = {"accept": "application/json", "authorization": f"Bearer {access_token}"}
        deadline = time.time() + self._timeout
        body = bytearray()
        try:
            with (
                httpx2.Client(timeout=self._timeout, follow_redirects=False, trust_env=False) as client,
                client.stream("GET", self._url + path, headers=headers) as response,
            ):
                _check(response.status_code)
                for chunk in response.iter_bytes():
                    body += chunk
                    # The timeout is for each read: a server that drips bytes would never run into it.
                    if len(body) > MAX_BYTES or time.time() > deadline:
                        raise HubFailed("Local Hub's answer is too long or too slow. Try again later.")
        except httpx2.HTTPError as error:
            raise HubFailed("Local Hub cannot be reached now. Try again later.") from error
        return bytes(body)


def _check(status: int) -> None:
    match status:
        case 200:
            return
        case 401:
            raise HubFailed("Local Hub no longer accepts the connection. Ask the user to disconnect it and try again.")
        case 403:
            raise HubFailed("The connection to Local Hub lacks a permission that this needs.")
        case _:
            raise HubFailed(f"Local Hub answered with HTTP {status}. Try again later.")
