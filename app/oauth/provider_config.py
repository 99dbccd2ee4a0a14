"""Providers as a deployment configures them: one JSON object, with presets for those that everybody uses.

    MCP_PROVIDERS = {"github": {"client_id": "Iv1.…"},
                     "acme":   {"title": "Acme", "client_id": "roundtrip", "issuer": "https://id.acme.example",
                                "authorize_url": "https://id.acme.example/authorize",
                                "token_url": "https://id.acme.example/token"}}
    MCP_PROVIDER_GITHUB_SECRET = …

A member is a field of `Provider`. A name that is a preset's takes what is left out from it; another name can
do so with "preset". `local` takes its URLs from "issuer".
"""

import re
from collections.abc import Mapping
from dataclasses import fields
from typing import Any, Final
from urllib.parse import urlsplit

from app import strict_json
from app.errors import ConfigurationError
from app.oauth.provider import Provider

PRESETS: Final[Mapping[str, Mapping[str, Any]]] = {
    "github": {
        "title": "GitHub",
        "authorize_url": "https://github.com/login/oauth/authorize",
        "token_url": "https://github.com/login/oauth/access_token",
        "client_authentication": "client_secret_post",
        "issuer": "https://github.com/login/oauth",
        "account_url": "https://api.github.com/user",
        "account_claim": "login",
    },
    "google": {
        "title": "Google",
        "authorize_url": "https://accounts.google.com/o/oauth2/v2/auth",
        "token_url": "https://oauth2.googleapis.com/token",
        "client_authentication": "client_secret_post",
        "revocation_url": "https://oauth2.googleapis.com/revoke",
        "issuer": "https://accounts.google.com",
        "scopes": ["openid", "email"],
        # Without both, Google gives a refresh token with the very first consent only, or none.
        "authorize_parameters": {"access_type": "offline", "prompt": "consent"},
        "account_url": "https://openidconnect.googleapis.com/v1/userinfo",
    },
    "local": {
        "title": "Local Hub",
        "authorize_url": "{issuer}/authorize",
        "token_url": "{issuer}/token",
        "revocation_url": "{issuer}/revoke",
        "account_url": "{issuer}/api/user",
        "account_claim": "login",
        "iss_required": True,
    },
}

_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,31}\Z", re.ASCII)
_SCOPE = re.compile(r"[\x21\x23-\x5b\x5d-\x7e]+\Z", re.ASCII)
_ORIGIN = re.compile(r"[a-z]+://[^/?#\s]+\Z", re.ASCII)
_URLS: Final = ("authorize_url", "token_url", "revocation_url", "account_url", "issuer", "resource")
_OPTIONAL_URLS: Final = ("revocation_url", "account_url", "issuer", "resource")
_AUTHENTICATIONS: Final = ("client_secret_basic", "client_secret_post", "none")
_LOOPBACK: Final = ("127.0.0.1", "localhost", "::1")
_MEMBERS: Final = frozenset(field.name for field in fields(Provider)) - {"name"} | {"preset"}


def read_providers(text: str, environment: Mapping[str, str], *, local: bool) -> dict[str, Provider]:
    """The providers of MCP_PROVIDERS, by name; none when the text is empty. `local` allows http on loopback.

    Raises ConfigurationError with every problem and its remedy. No message quotes a secret.
    """
    if not text:
        return {}
    try:
        document = strict_json.parse(text.encode())
    except strict_json.NotStrictJson as error:
        raise ConfigurationError([f"MCP_PROVIDERS is no JSON ({error}): write it like {_EXAMPLE}."]) from None
    if not isinstance(document, dict):
        raise ConfigurationError([f"MCP_PROVIDERS must be a JSON object from name to provider, like {_EXAMPLE}."])
    problems: list[str] = []
    providers = {name: _provider(name, given, environment, problems, local=local) for name, given in document.items()}
    if problems:
        raise ConfigurationError(problems)
    return {name: provider for name, provider in providers.items() if provider is not None}


_EXAMPLE: Final = '{"github": {"client_id": "..."}}'


def _provider(
    name: str, given: Any, environment: Mapping[str, str], problems: list[str], *, local: bool
) -> Provider | None:
    found: list[str] = []
    if not _NAME.match(name):
        found.append("the name must be 1 to 32 of a-z 0-9 _ -, as it stands in a URL: rename it")
    if not isinstance(given, dict):
        problems.append(f"MCP_PROVIDERS {name!r}: must be a JSON object, like {_EXAMPLE}.")
        return None
    found += [f"there is no member {member!r}: remove it" for member in given if member not in _MEMBERS]
    preset = given.get("preset", name if name in PRESETS else None)
    if preset is not None and preset not in PRESETS:
        found.append(f"preset must be one of {', '.join(PRESETS)}")
        preset = None
    values: dict[str, Any] = {"title": name, **(PRESETS[preset] if preset else {}), **given}
    values.pop("preset", None)
    for member in _URLS:
        if isinstance(values.get(member), str):
            values[member] = values[member].replace("{issuer}", str(values.get("issuer", "")))
    secret_name = f"MCP_PROVIDER_{name.upper().replace('-', '_')}_SECRET"
    values["client_secret"] = environment.get(secret_name) or values.get("client_secret", "")
    found += _problems(values, secret_name, local=local)
    problems += [f"MCP_PROVIDERS {name!r}: {each}." for each in found]
    if found:
        return None
    for member in ("scopes", "redirect_origins"):
        values[member] = tuple(values.get(member, ()))
    return Provider(name=name, **values)


def _problems(values: Mapping[str, Any], secret_name: str, *, local: bool) -> list[str]:
    found = [
        f"{member} must be text: set it"
        for member in ("title", "client_id", "client_secret", "account_claim")
        if not isinstance(values.get(member, ""), str) or (member == "client_id" and not values.get(member))
    ]
    for member in _URLS:
        value = values.get(member)
        if value is None and member in _OPTIONAL_URLS:
            continue
        if not _is_url(value, local=local):
            found.append(
                f"{member} must be an https URL without a fragment (http is for a loopback address "
                "with MCP_STAGE=local)"
            )
    authentication = values.get("client_authentication", "client_secret_basic")
    if authentication not in _AUTHENTICATIONS:
        found.append(f"client_authentication must be one of {', '.join(_AUTHENTICATIONS)}")
    elif authentication != "none" and not values["client_secret"]:
        found.append(f'the client secret is missing: set {secret_name}, or client_authentication to "none"')
    scopes = values.get("scopes", [])
    if not isinstance(scopes, list) or not all(isinstance(each, str) and _SCOPE.match(each) for each in scopes):
        found.append("scopes must be a list of scope names without spaces (RFC 6749 section 3.3)")
    for member in ("authorize_parameters", "scope_descriptions"):
        texts = values.get(member, {})
        if not isinstance(texts, dict) or not all(isinstance(each, str) for each in texts.values()):
            found.append(f"{member} must map names to text")
    origins = values.get("redirect_origins", [])
    if not isinstance(origins, list) or not all(_is_url(each, local=local) and _ORIGIN.match(each) for each in origins):
        found.append("redirect_origins must be a list of origins, like https://login.example.com")
    if not isinstance(values.get("iss_required", False), bool):
        found.append("iss_required must be true or false")
    elif values.get("iss_required") and not values.get("issuer"):
        found.append("iss_required needs the issuer to compare with: set issuer")
    return found


def _is_url(value: object, *, local: bool) -> bool:
    if not isinstance(value, str):
        return False
    try:
        parts = urlsplit(value)
        host = parts.hostname
    except ValueError:
        return False
    secure = parts.scheme == "https" or (local and parts.scheme == "http" and host in _LOOPBACK)
    return secure and bool(host) and not parts.fragment
