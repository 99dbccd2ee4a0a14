"""What the browser brings back from a provider (RFC 6749 sections 4.1.2, RFC 9207), before anybody trusts it."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from app.errors import Refused
from app.oauth import handles
from app.oauth.provider import Provider

MAX_QUERY: Final = 8192
"""Longest query that is looked at, in characters of its names and values."""

_SINGLE: Final = ("code", "state", "iss", "error")
_CODE = re.compile(r"[\x20-\x7e]{1,4096}\Z", re.ASCII)


@dataclass(frozen=True, slots=True)
class AuthorizationResponse:
    """A well-formed response: either a code or an error, and a state that names a flow.

    An error's description is not kept: whoever made this URL wrote it, and no page may repeat it.
    """

    flow_id: str
    state: str = field(repr=False)
    code: str | None = field(repr=False)
    iss: str | None
    denied: bool
    """The error is `access_denied`: the user said no."""

    @classmethod
    def read(cls, query: Sequence[tuple[str, str]]) -> "AuthorizationResponse":
        """Read a query as it came, duplicates included. Raises Refused: such a query touches no flow."""
        if sum(len(name) + len(value) + 2 for name, value in query) > MAX_QUERY:
            raise Refused("query_too_long")
        found: dict[str, str] = {}
        for name, value in query:
            # RFC 6749 section 3.1: a parameter must not come twice. Two readers could take different ones.
            if name in _SINGLE:
                if name in found:
                    raise Refused(f"duplicate_{name}")
                found[name] = value
        flow_id = handles.flow_of_state(found.get("state", ""))
        if flow_id is None:
            raise Refused("state")
        code, error = found.get("code"), found.get("error")
        if (code is None) == (error is None):
            raise Refused("neither_code_nor_error" if code is None else "code_and_error")
        if code is not None and not _CODE.match(code):
            raise Refused("code")
        return cls(flow_id, found["state"], code, found.get("iss"), error == "access_denied")


def comes_from(response: AuthorizationResponse, provider: Provider) -> bool:
    """Whether a response may be this provider's, by RFC 9207 section 2.4. Check it before the error.

        iss         provider promises one     does not
        equal       yes                       yes
        other       no                        no
        absent      no                        yes

    Compared as strings: normalising would be the mix-up. An `iss` of a provider whose issuer is not
    configured is another one.
    """
    if response.iss is None:
        return not provider.iss_required
    return response.iss == provider.issuer
