"""What a deployment configures, read from environment variables once, with every problem named at once."""

import base64
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from app.authorization.resource_server import scope_problems
from app.errors import ConfigurationError
from app.sealing import Key, Keyring

LOCAL: Final = "local"
_MAKE_KEY: Final = "python3 -c 'import base64, os; print(\"1:\" + base64.urlsafe_b64encode(os.urandom(32)).decode())'"
_LOOPBACK: Final = ("127.0.0.1", "localhost", "[::1]")
# What stands in headers and is compared byte by byte is checked byte by byte: urlsplit would drop a line break.
_URL = re.compile(
    r"(?P<scheme>https?)://(?P<host>[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::(?P<port>[0-9]{1,5}))?"
    r"(?:/[A-Za-z0-9._~!$&'()*+,;=:@%/-]*)?(?P<query>\?[A-Za-z0-9._~!$&'()*+,;=:@%/?-]+)?\Z"
)
# As a browser serialises it (RFC 6454 section 6.2): lower case, no path, no default port.
_ORIGIN = re.compile(
    r"(?!https://.*:443\Z|http://.*:80\Z)"
    r"[a-z][a-z0-9+.-]*://(?:[a-z0-9._-]+|\[[0-9a-f:.]+\])(?::[0-9]{1,5})?\Z"
)
_KEY = re.compile(r"(?P<kid>[0-9]{1,10}):(?P<secret>[A-Za-z0-9_/+-]*={0,2})\Z")


@dataclass(frozen=True, slots=True)
class Settings:
    """The configuration of one function. Environment variables, all with the prefix MCP_:

    STAGE            `local` allows loopback http URLs and a key file; anything else is a deployment
    RESOURCE_URL     public URL of the MCP endpoint, the audience of every access token
    ISSUER           issuer identifier of the authorization server
    JWKS_URL         its JWK Set, if its metadata should not be asked
    SEALING_KEYS     kid:base64url of 32 bytes, comma-separated, the current key first
    SEALING_KEY_FILE local only: a file with the same text, readable by its owner alone
    ALLOWED_ORIGINS  web origins that may call from a browser, comma-separated
    REQUIRED_SCOPES  scopes that every request needs, space-separated
    SUBJECT_CLAIM    the claim that names the user, `sub` unless the issuer's `sub` is pairwise per client
    SERVER_NAME      the name that clients show
    """

    stage: str
    resource_url: str
    issuer: str
    jwks_url: str | None
    keyring: Keyring
    allowed_origins: tuple[str, ...]
    required_scopes: tuple[str, ...]
    subject_claim: str
    server_name: str

    @classmethod
    def read(cls, environment: Mapping[str, str]) -> "Settings":
        """Read and check everything. Raises ConfigurationError with every problem and its remedy."""
        problems: list[str] = []

        def value(name: str, default: str = "") -> str:
            return environment.get(f"MCP_{name}", "").strip() or default

        stage = value("STAGE", "prod")
        resource_url = _url(problems, "RESOURCE_URL", value("RESOURCE_URL"), stage, "https://mcp.example.com/mcp")
        issuer = _url(problems, "ISSUER", value("ISSUER"), stage, "https://login.example.com")
        jwks_url = value("JWKS_URL")
        if jwks_url:
            _url(problems, "JWKS_URL", jwks_url, stage, "https://login.example.com/jwks", query=True)
        if resource_url and not urlsplit(resource_url).path.endswith("/mcp"):
            problems.append("MCP_RESOURCE_URL must end in /mcp, the path of the endpoint.")
        origins = tuple(origin.strip() for origin in value("ALLOWED_ORIGINS").split(",") if origin.strip())
        problems += [
            f"MCP_ALLOWED_ORIGINS: {origin!r} is no origin: write it as https://app.example.com, in lower case, "
            "without a path and without the scheme's default port."
            for origin in origins
            if not _ORIGIN.match(origin)
        ]
        scopes = tuple(value("REQUIRED_SCOPES").split())
        problems += [f"MCP_REQUIRED_SCOPES: {problem}" for scope in scopes for problem in scope_problems(scope)]
        keyring = _keyring(problems, value("SEALING_KEYS"), value("SEALING_KEY_FILE"), stage)
        if problems or keyring is None:
            raise ConfigurationError(problems)
        return cls(
            stage=stage,
            resource_url=resource_url,
            issuer=issuer,
            jwks_url=jwks_url or None,
            keyring=keyring,
            allowed_origins=origins,
            required_scopes=scopes,
            subject_claim=value("SUBJECT_CLAIM", "sub"),
            server_name=value("SERVER_NAME", "roundtrip"),
        )


def _url(problems: list[str], name: str, text: str, stage: str, example: str, *, query: bool = False) -> str:
    """The URL, or "" with a problem more."""
    if not text:
        problems.append(f"MCP_{name} is not set: set it to a URL like {example}.")
        return ""
    url = _URL.match(text)
    if url is not None:
        secure = url["scheme"] == "https" or (stage == LOCAL and url["host"] in _LOOPBACK)
        if secure and int(url["port"] or 0) < 2**16 and (query or not url["query"]):
            return text
    # A password may stand before an @.
    found = "has a user name in it" if "@" in text else f"is {text!r}"
    problems.append(
        f"MCP_{name} {found}, and must be an https URL without {'' if query else 'query or '}fragment, like {example} "
        "(http is for a loopback address with MCP_STAGE=local)."
    )
    return ""


def _keyring(problems: list[str], keys: str, key_file: str, stage: str) -> Keyring | None:
    if not keys and key_file:
        if stage != LOCAL:
            problems.append("MCP_SEALING_KEY_FILE is for MCP_STAGE=local: set MCP_SEALING_KEYS in a deployment.")
            return None
        text = _read_key_file(problems, Path(key_file))
        if text is None:
            return None
        keys = text
    if not keys:
        # A key made up at start would make every instance refuse the others' states.
        problems.append(f"MCP_SEALING_KEYS is not set, and every instance needs the same keys. Make one: {_MAKE_KEY}")
        return None
    try:
        ring = [read_key(entry.strip()) for entry in keys.split(",")]
        return Keyring(current=ring[0], retired=ring[1:])
    except ConfigurationError as error:
        problems += error.problems
    except ValueError:
        problems.append(f"MCP_SEALING_KEYS must be kid:base64url, comma-separated. Make one: {_MAKE_KEY}")
    return None


def _read_key_file(problems: list[str], path: Path) -> str | None:
    try:
        keys, mode = path.read_text(encoding="ascii").strip(), path.stat().st_mode
    except OSError as error:
        problems.append(f"MCP_SEALING_KEY_FILE cannot be read ({error.strerror}): `make run` writes one.")
        return None
    except UnicodeDecodeError:
        problems.append("MCP_SEALING_KEY_FILE is no text: delete it, and `make run` writes a new one.")
        return None
    if os.name == "posix" and mode & 0o077:
        problems.append(f"MCP_SEALING_KEY_FILE is open to other users of this machine: chmod 600 {path}")
        return None
    return keys


def read_key(entry: str) -> Key:
    """A key as kid:base64url. Raises ValueError, or ConfigurationError for a key that is none."""
    found = _KEY.match(entry)
    if found is None:
        raise ValueError("not kid:base64url")
    secret = found["secret"]
    return Key(int(found["kid"]), base64.b64decode(secret + "=" * (-len(secret) % 4), altchars=b"-_", validate=True))
