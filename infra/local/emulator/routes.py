"""Routes of an HTTP API and which one takes a request. Pure.

https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-develop-routes.html
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from infra.local.emulator.response_parameters import Mappings

DEFAULT_KEY = "$default"
MAX_INTEGRATION_SECONDS = 30.0


@dataclass(frozen=True, kw_only=True)
class Route:
    """`$default`, or a method (or ANY) and a path with {variables}, and the function that it invokes."""

    key: str
    function: str
    timeout: float = MAX_INTEGRATION_SECONDS
    response_parameters: Mappings = field(default_factory=dict)

    @property
    def method(self) -> str:
        return "ANY" if self.key == DEFAULT_KEY else self.key.split(" ", 1)[0]

    @property
    def path(self) -> str:
        return DEFAULT_KEY if self.key == DEFAULT_KEY else self.key.split(" ", 1)[1]


@dataclass(frozen=True)
class Match:
    route: Route
    path_parameters: Mapping[str, str]


def route_key(method: str, path: str) -> str:
    return DEFAULT_KEY if path.lstrip("/") == DEFAULT_KEY else f"{method.upper()} {path}"


def integration_seconds(milliseconds: Any) -> float:
    """An integration timeout as the template writes it; absent means the maximum."""
    return MAX_INTEGRATION_SECONDS if milliseconds is None else min(int(milliseconds) / 1000, MAX_INTEGRATION_SECONDS)


class RouteTable:
    """The most specific route wins: constant before variable before greedy variable before $default."""

    def __init__(self, routes: Iterable[Route]) -> None:
        routes = list(routes)
        self._default = next((route for route in routes if route.key == DEFAULT_KEY), None)
        ordered = sorted((route for route in routes if route.key != DEFAULT_KEY), key=_specificity)
        self._routes = [(route, _pattern(route.path)) for route in ordered]

    def match(self, method: str, path: str) -> Match | None:
        """A trailing slash makes another path: `/mcp/` does not match the route `/mcp`."""
        for route, pattern in self._routes:
            if route.method in (method, "ANY") and (match := pattern.fullmatch(path)):
                return Match(route, dict(zip(_variables(route.path), match.groups(), strict=True)))
        return Match(self._default, {}) if self._default else None


def _variables(path: str) -> list[str]:
    return [name.rstrip("+") for name in re.findall(r"\{([^}]+)\}", path)]


def _pattern(path: str) -> re.Pattern[str]:
    parts = [
        (r"(.+)" if part.endswith("+}") else r"([^/]+)") if part.startswith("{") else re.escape(part)
        for part in re.split(r"(\{[^}]+\})", path)
    ]
    return re.compile("".join(parts), re.DOTALL)


def _specificity(route: Route) -> tuple[list[int], int, bool]:
    kinds = [(2 if part.endswith("+}") else 1) if part.startswith("{") else 0 for part in route.path.split("/")[1:]]
    return kinds, -len(kinds), route.method == "ANY"
