"""What the cores need from the world, as protocols. Verbs carry guarantees."""

from typing import Protocol

from app.http import HttpRequest, HttpResponse
from app.principal import AccessToken


class ResourceServer(Protocol):
    """Decides who may call (OAuth 2.1 resource server)."""

    def authenticate(self, request: HttpRequest, *, now: float) -> AccessToken:
        """The verified access token of a request. Raises AuthorizationError, or Unavailable while no key
        to verify with can be had.
        """
        ...

    def challenge(self, error: Exception) -> HttpResponse:
        """The response to an AuthorizationError or Unavailable that `authenticate` or a scope check raised."""
        ...


class DocumentSource(Protocol):
    """Fetches small JSON documents of an authorization server."""

    def fetch(self, url: str) -> object:
        """The parsed JSON at `url`, within a few seconds, without redirects, bounded in size.

        Raises Unavailable for anything else.
        """
        ...
