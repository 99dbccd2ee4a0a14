"""The pages a person sees: sign-in, consent, refusal. Server-rendered, escaped, without script."""

import ipaddress
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.responses import HTMLResponse

from infra.local.identity.clients import Client
from infra.local.identity.metadata import AUTHORIZE, SIGN_IN, STYLE
from infra.local.identity.redirect_uris import is_loopback, origin
from infra.local.identity.settings import User

TEMPLATES: Final = Path(__file__).parent / "templates"

_environment = Environment(
    loader=FileSystemLoader(TEMPLATES), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
)


class Refusal(Exception):
    """Ends a request with a page instead of a redirect: nobody knows whose the redirect URI is."""

    def __init__(self, title: str, reason: str, *, status: int = 400) -> None:
        super().__init__(title)
        self.title = title
        self.reason = reason
        self.status = status


class Pages:
    """Renders with the request's own query in every form, so that each POST is validated like the first GET."""

    def __init__(self, *, users: tuple[User, ...], scope_descriptions: dict[str, str]) -> None:
        self._users = users
        self._scope_descriptions = scope_descriptions

    def sign_in(self, *, client: Client, redirect_uri: str, query: str, csrf_token: str) -> HTMLResponse:
        page = {"client": client, "users": self._users, "csrf_token": csrf_token, **_actions(query)}
        return _render("sign_in.html", page, redirect_uri=redirect_uri)

    def consent(
        self,
        *,
        client: Client,
        redirect_uri: str,
        query: str,
        csrf_token: str,
        user: User,
        scope: str,
        resource: str | None,
    ) -> HTMLResponse:
        page = {
            "client": client,
            "user": user,
            "other_users": [other for other in self._users if other != user],
            "scopes": [(name, self._scope_descriptions.get(name, name)) for name in scope.split()],
            "resource": resource,
            "return_host": urlsplit(redirect_uri).netloc,
            "returns_to_this_computer": is_loopback(redirect_uri),
            "csrf_token": csrf_token,
            **_actions(query),
        }
        return _render("consent.html", page, redirect_uri=redirect_uri)

    def refusal(self, refusal: Refusal) -> HTMLResponse:
        page = {"title": refusal.title, "reason": refusal.reason}
        return _render("refusal.html", page, status=refusal.status)


def stylesheet() -> str:
    return (TEMPLATES / "style.css").read_text(encoding="utf-8")


def _actions(query: str) -> dict[str, str]:
    return {"sign_in_action": f"{SIGN_IN}?{query}", "decision_action": f"{AUTHORIZE}?{query}"}


def _render(template: str, page: dict[str, Any], *, status: int = 200, redirect_uri: str | None = None) -> HTMLResponse:
    content = _environment.get_template(template).render(**page, stylesheet=STYLE)
    headers = {"Content-Security-Policy": _content_security_policy(redirect_uri)}
    return HTMLResponse(content, status_code=status, headers=headers)


def _content_security_policy(redirect_uri: str | None) -> str:
    # Chrome applies form-action to the redirect after a POST as well: without its origin, Approve does nothing.
    form_action = f"'self' {_csp_source(redirect_uri)}" if redirect_uri else "'none'"
    return f"default-src 'none'; style-src 'self'; base-uri 'none'; frame-ancestors 'none'; form-action {form_action}"


def _csp_source(uri: str) -> str:
    parts = urlsplit(uri)
    try:
        ipaddress.IPv6Address(parts.hostname or "")
    except ValueError:
        return origin(uri)
    # CSP has no syntax for an IPv6 address.
    return f"{parts.scheme}:"
