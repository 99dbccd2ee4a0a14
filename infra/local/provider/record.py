"""What arrived at Local Hub, for assertions: which endpoint, which parameters, how signed. Never a value."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import parse_qsl, unquote

# Local Hub's own tokens are opaque, so any JWT comes from elsewhere: an MCP access token must not reach it.
_JWT: Final = re.compile(r"eyJ[A-Za-z0-9_-]+\.eyJ[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*")


@dataclass(frozen=True)
class Arrival:
    """One request without its secrets. `authorization` is the scheme of the header, or ""."""

    method: str
    path: str
    parameters: tuple[str, ...]
    authorization: str
    grant_type: str
    code_challenge_method: str
    carries_jwt: bool


@dataclass
class Record:
    """Grows with each request. `foreign_tokens` counts bearer tokens at the API that were not issued here."""

    arrivals: list[Arrival] = field(default_factory=list)
    foreign_tokens: int = 0
    refresh_token_reuses: int = 0

    def at(self, path: str) -> list[Arrival]:
        """What arrived at one endpoint, in order."""
        return [each for each in self.arrivals if each.path == path]

    @property
    def any_jwt(self) -> bool:
        """Whether a JWT, such as an MCP access token, arrived anywhere."""
        return any(each.carries_jwt for each in self.arrivals)

    def clear(self) -> None:
        self.arrivals.clear()
        self.foreign_tokens = self.refresh_token_reuses = 0


def arrival_of(method: str, path: str, headers: Mapping[str, str], query: str, body: bytes) -> Arrival:
    """What is kept of a request."""
    form = body.decode("utf-8", "replace")
    parameters = parse_qsl(query, keep_blank_values=True) + parse_qsl(form, keep_blank_values=True)
    values = dict(parameters)
    text = "\n".join([unquote(query), unquote(form), *headers.values()])
    return Arrival(
        method=method,
        path=path,
        parameters=tuple(sorted(name for name, _ in parameters)),
        authorization=headers.get("authorization", "").partition(" ")[0].lower(),
        grant_type=values.get("grant_type", ""),
        code_challenge_method=values.get("code_challenge_method", ""),
        carries_jwt=_JWT.search(text) is not None,
    )
