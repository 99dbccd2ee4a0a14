"""The secret in which a deployment keeps what it connects third parties with, in place of environment variables."""

import json
import re
from collections.abc import Mapping
from typing import Final

from app import strict_json
from app.errors import ConfigurationError

MEMBERS: Final = ("REDIS_URL", "PROVIDERS", "OIDC_CLIENT_ID", "OIDC_CLIENT_SECRET")
_PROVIDER_SECRET = re.compile(r"PROVIDER_[A-Z0-9_]{1,32}_SECRET\Z")
_EXAMPLE: Final = '{"REDIS_URL": "rediss://...", "OIDC_CLIENT_SECRET": "..."}'


def with_secret(environment: Mapping[str, str], text: str) -> dict[str, str]:
    """The environment with what the secret sets in it: a JSON object with any of the members REDIS_URL, PROVIDERS,
    OIDC_CLIENT_ID, OIDC_CLIENT_SECRET and PROVIDER_<NAME>_SECRET, each for the variable MCP_<member>. Each is
    text; PROVIDERS may be the JSON object itself.

    Raises ConfigurationError with every problem and its remedy. No message quotes a value.
    """
    try:
        document = strict_json.parse(text.encode("utf-8", "surrogatepass"))
    except strict_json.NotStrictJson:
        document = None
    if not isinstance(document, dict):
        raise ConfigurationError([f"MCP_CONNECTIONS_SECRET is no JSON object: store it as one, like {_EXAMPLE}."])
    problems: list[str] = []
    changed: dict[str, str] = {}
    for name, member in document.items():
        if name not in MEMBERS and not _PROVIDER_SECRET.match(name):
            known = ", ".join((*MEMBERS, "PROVIDER_<NAME>_SECRET"))
            problems.append(f"MCP_CONNECTIONS_SECRET: there is no member {name[:64]!r} ({known}): remove it.")
        elif isinstance(member, str):
            changed[f"MCP_{name}"] = member
        elif name == "PROVIDERS" and isinstance(member, dict):
            changed[f"MCP_{name}"] = json.dumps(member)
        else:
            problems.append(f"MCP_CONNECTIONS_SECRET: the member {name} is no text: put it in quotation marks.")
    if problems:
        raise ConfigurationError(problems)
    return {**environment, **changed}
