"""The pages of Local Hub: sign-in, consent, welcome back, refusal. Server-rendered, escaped, without script."""

from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.responses import HTMLResponse

from infra.local.identity.pages import Refusal
from infra.local.identity.redirect_uris import origin
from infra.local.identity.settings import User
from infra.local.provider.clients import HubClient
from infra.local.provider.metadata import AUTHORIZE, SIGN_IN, STYLE
from infra.local.provider.settings import SCOPES

TEMPLATES: Final = Path(__file__).parent / "templates"

_environment = Environment(
    loader=FileSystemLoader(TEMPLATES), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
)


class Pages:
    """Every form carries the authorization request in its query, so that each POST is validated like the first GET."""

    def __init__(self, users: tuple[User, ...]) -> None:
        self._users = users

    def sign_in(self, *, client: HubClient, redirect_uri: str, query: str, csrf_token: str) -> HTMLResponse:
        page = {"client": client, "users": self._users, "csrf_token": csrf_token, **_actions(query)}
        return _render("sign_in.html", page, redirect_uri=redirect_uri)

    def consent(
        self,
        *,
        client: HubClient,
        redirect_uri: str,
        query: str,
        csrf_token: str,
        user: User,
        scopes: list[str],
        remembered: bool,
    ) -> HTMLResponse:
        """Ask for consent; when it is `remembered`, only for the click that goes on."""
        page = {
            "client": client,
            "user": user,
            "other_users": [other for other in self._users if other != user],
            "scopes": [(scope, SCOPES[scope]) for scope in scopes],
            "remembered": remembered,
            "return_host": urlsplit(redirect_uri).netloc,
            "csrf_token": csrf_token,
            **_actions(query),
        }
        return _render("consent.html", page, redirect_uri=redirect_uri)

    def refusal(self, refusal: Refusal) -> HTMLResponse:
        return _render("refusal.html", {"title": refusal.title, "reason": refusal.reason}, status=refusal.status)


def stylesheet() -> str:
    return (TEMPLATES / "hub.css").read_text(encoding="utf-8")


def _actions(query: str) -> dict[str, str]:
    return {"sign_in_action": f"{SIGN_IN}?{query}", "decision_action": f"{AUTHORIZE}?{query}"}


def _render(template: str, page: dict[str, Any], *, status: int = 200, redirect_uri: str | None = None) -> HTMLResponse:
    # Chrome applies form-action to the redirect after a POST as well: without its origin, Authorize does nothing.
    form_action = f"'self' {origin(redirect_uri)}" if redirect_uri else "'none'"
    policy = f"default-src 'none'; style-src 'self'; base-uri 'none'; frame-ancestors 'none'; form-action {form_action}"
    content = _environment.get_template(template).render(**page, stylesheet=STYLE)
    return HTMLResponse(content, status_code=status, headers={"Content-Security-Policy": policy})
