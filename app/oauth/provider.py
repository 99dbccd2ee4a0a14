"""An OAuth provider as configured, and the requests that we make to it. Pure: building, no sending.

Endpoints come from the configuration and from nowhere else: no metadata, no redirect and no response can
move them (RFC 9700 section 4.4, mix-up).
"""

from base64 import b64encode
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias
from urllib.parse import quote, urlencode, urlsplit

from app.oauth import pkce

ClientAuthentication: TypeAlias = Literal["client_secret_basic", "client_secret_post", "none"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Provider:
    """One third party and our registration with it.

    `issuer` is what its `iss` parameter must equal; with `iss_required` (its metadata says
    `authorization_response_iss_parameter_supported`) a response without one is refused (RFC 9207).
    `resource` names the API in every request, for a provider with several (RFC 8707). `scopes` are asked for
    when a tool names none; `scope_descriptions` say to the user what a scope allows. `redirect_origins` are
    where the provider itself sends the browser on to before it shows a page, such as a company's sign-in:
    browsers apply our `form-action` to those redirects too. `account_url` answers who connected, in the
    member `account_claim`; it is for people to read and decides nothing.
    """

    name: str
    title: str
    client_id: str
    authorize_url: str
    token_url: str
    client_secret: str = field(default="", repr=False)
    client_authentication: ClientAuthentication = "client_secret_basic"
    revocation_url: str | None = None
    resource: str | None = None
    issuer: str | None = None
    iss_required: bool = False
    scopes: tuple[str, ...] = ()
    scope_descriptions: Mapping[str, str] = field(default_factory=dict)
    redirect_origins: tuple[str, ...] = ()
    authorize_parameters: Mapping[str, str] = field(default_factory=dict)
    account_url: str | None = None
    account_claim: str = "email"

    @property
    def authorize_origins(self) -> str:
        """What the consent page's Content-Security-Policy lists in `form-action`: origins, separated by spaces."""
        parts = urlsplit(self.authorize_url)
        return " ".join((f"{parts.scheme}://{parts.netloc}", *self.redirect_origins))


@dataclass(frozen=True, slots=True)
class FormRequest:
    """A form to post to one of the provider's endpoints."""

    url: str
    form: Mapping[str, str] = field(repr=False)
    headers: Mapping[str, str] = field(repr=False)


_ACCEPT: Final = {"accept": "application/json"}
"""GitHub answers a form without it."""


def authorization_url(
    provider: Provider, *, redirect_uri: str, scopes: Iterable[str], state: str, verifier: str
) -> str:
    """Where the browser goes to ask the user (RFC 6749 section 4.1.1, RFC 7636 section 4.3)."""
    parameters = {
        # First, so that no configured parameter replaces one of ours.
        **provider.authorize_parameters,
        "response_type": "code",
        "client_id": provider.client_id,
        "redirect_uri": redirect_uri,
        "state": state,
        "code_challenge": pkce.challenge(verifier),
        "code_challenge_method": pkce.METHOD,
        **_resource(provider),
    }
    wanted = " ".join(sorted(scopes))
    if wanted:
        parameters["scope"] = wanted
    separator = "&" if urlsplit(provider.authorize_url).query else "?"
    return provider.authorize_url + separator + urlencode(parameters)


def code_request(provider: Provider, *, code: str, redirect_uri: str, verifier: str) -> FormRequest:
    """Exchange a code (RFC 6749 section 4.1.3, RFC 7636 section 4.5)."""
    form = {
        "grant_type": "authorization_code",
        "code": code,
        "redirect_uri": redirect_uri,
        "code_verifier": verifier,
        **_resource(provider),
    }
    return _authenticated(provider, provider.token_url, form)


def refresh_request(provider: Provider, refresh_token: str) -> FormRequest:
    """Ask for a new access token with the scopes that were granted (RFC 6749 section 6)."""
    form = {"grant_type": "refresh_token", "refresh_token": refresh_token, **_resource(provider)}
    return _authenticated(provider, provider.token_url, form)


def revocation_request(provider: Provider, token: str, kind: Literal["refresh_token", "access_token"]) -> FormRequest:
    """Revoke a token (RFC 7009 section 2.1), of a provider that has a `revocation_url`."""
    if provider.revocation_url is None:
        raise ValueError(f"{provider.name} has no revocation_url")
    return _authenticated(provider, provider.revocation_url, {"token": token, "token_type_hint": kind})


def account_headers(access_token: str) -> Mapping[str, str]:
    """The headers of a request to `account_url` (RFC 6750 section 2.1)."""
    return _ACCEPT | {"authorization": f"Bearer {access_token}"}


def _resource(provider: Provider) -> Mapping[str, str]:
    return {} if provider.resource is None else {"resource": provider.resource}


def _authenticated(provider: Provider, url: str, form: Mapping[str, str]) -> FormRequest:
    match provider.client_authentication:
        case "client_secret_basic":
            # RFC 6749 section 2.3.1: both parts are form-encoded before they are joined. A blank as %20, which
            # servers that read "+" as itself understand too.
            pair = f"{quote(provider.client_id, safe='')}:{quote(provider.client_secret, safe='')}"
            basic = {"authorization": f"Basic {b64encode(pair.encode()).decode()}"}
            return FormRequest(url, form, _ACCEPT | basic)
        case "client_secret_post":
            secret = {"client_id": provider.client_id, "client_secret": provider.client_secret}
            return FormRequest(url, {**form, **secret}, _ACCEPT)
        case "none":
            return FormRequest(url, {**form, "client_id": provider.client_id}, _ACCEPT)
