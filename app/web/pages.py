"""Renders the pages: Jinja2 templates, escaped, with the headers of the site. No page holds a script."""

from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from app.http import NOSNIFF
from app.web.site import Site
from app.web.visit import Reply

TEMPLATES: Final = Path(__file__).parent / "templates"
STYLESHEET: Final = "/static/style.css"
_MONTHS: Final = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)


class Pages:
    """The pages of one site. `server_name` is what the MCP server calls itself, `scope_descriptions` says in
    words what a provider's scope allows.
    """

    def __init__(self, site: Site, *, server_name: str, scope_descriptions: Mapping[str, str]) -> None:
        self._site = site
        self._everywhere = {
            "path": site.path,
            "stylesheet": site.path(STYLESHEET),
            "server_name": server_name,
            "scope_descriptions": scope_descriptions,
        }

    def render(
        self,
        template: str,
        *,
        status: int = 200,
        outcome: str,
        form_action: str | None = None,
        reason: str | None = None,
        headers: dict[str, str] | None = None,
        **content: Any,
    ) -> Reply:
        """A page. `outcome` and `reason` are for the log alone."""
        text = _environment().get_template(template).render(self._everywhere | content)
        facts = {"outcome": outcome} | ({} if reason is None else {"reason": reason})
        sent = {
            **self._site.headers(form_action=form_action),
            "content-type": "text/html; charset=utf-8",
            **(headers or {}),
        }
        return Reply(status, sent, text.encode(), facts=facts)

    def stylesheet(self) -> Reply:
        """The one style sheet. It says nothing of anybody, so caches may keep it for a while."""
        headers = {
            "content-type": "text/css; charset=utf-8",
            "cache-control": "public, max-age=300",
            **NOSNIFF,
        }
        return Reply(200, headers, _stylesheet(), facts={"outcome": "served"})


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    environment.globals["client_host"] = client_host
    environment.filters.update(day=_day, day_in_words=_day_in_words, moment=_moment, moment_in_words=_moment_in_words)
    return environment


def _day(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).date().isoformat()


def _day_in_words(seconds: int) -> str:
    # Without the locale's help, which is not the reader's.
    day = datetime.fromtimestamp(seconds, UTC)
    return f"{day.day} {_MONTHS[day.month - 1]} {day.year}"


def _moment(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="minutes")


def _moment_in_words(seconds: int) -> str:
    return f"{_day_in_words(seconds)}, {datetime.fromtimestamp(seconds, UTC):%H:%M} UTC"


@cache
def _stylesheet() -> bytes:
    return (TEMPLATES / "style.css").read_bytes()


def client_host(client_id: str) -> str | None:
    """The host that published a client, if its id is a URL (client id metadata document): proved by https.

    Nothing else of the id is: `https://bank.example@evil.example/` is evil.example.
    """
    try:
        parts = urlsplit(client_id)
        return parts.hostname.encode("idna").decode() if parts.scheme == "https" and parts.hostname else None
    except ValueError:
        return None
