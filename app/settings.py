"""What a deployment configures, read from environment variables once, with every problem named at once."""

import base64
import binascii
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from app.errors import ConfigurationError
from app.sealing import Key, Keyring

LOCAL: Final = "local"
_MAKE_KEY: Final = "python3 -c 'import base64, os; print(\"1:\" + base64.urlsafe_b64encode(os.urandom(32)).decode())'"
_LOOPBACK: Final = ("127.0.0.1", "localhost", "::1")
_SCOPE = re.compile(r"[\x21\x23-\x5b\x5d-\x7e]+\Z")


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
            _url(problems, "JWKS_URL", jwks_url, stage, "https://login.example.com/jwks")
        if resource_url and not urlsplit(resource_url).path.endswith("/mcp"):
            problems.append("MCP_RESOURCE_URL must end in /mcp, the path of the endpoint.")
        origins = tuple(origin.strip() for origin in value("ALLOWED_ORIGINS").split(",") if origin.strip())
        problems += [
            f"MCP_ALLOWED_ORIGINS: {origin} is no origin: write it as https://app.example.com, without a path."
            for origin in origins
            if urlsplit(origin).path or not urlsplit(origin).netloc
        ]
        scopes = tuple(value("REQUIRED_SCOPES").split())
        problems += [
            f"MCP_REQUIRED_SCOPES: {scope!r} has a character that no scope may have (RFC 6749 section 3.3)."
            for scope in scopes
            if not _SCOPE.match(scope)
        ]
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


def _url(problems: list[str], name: str, text: str, stage: str, example: str) -> str:
    if not text:
        problems.append(f"MCP_{name} is not set: set it to a URL like {example}.")
        return ""
    parts = urlsplit(text)
    secure = parts.scheme == "https" or (stage == LOCAL and parts.scheme == "http" and parts.hostname in _LOOPBACK)
    if not secure or not parts.netloc or parts.query or parts.fragment:
        problems.append(
            f"MCP_{name} is {text!r}, and must be an https URL without query or fragment, like {example} "
            "(http is for a loopback address with MCP_STAGE=local)."
        )
    return text


def _keyring(problems: list[str], keys: str, key_file: str, stage: str) -> Keyring | None:
    if not keys and key_file:
        if stage != LOCAL:
            problems.append("MCP_SEALING_KEY_FILE is for MCP_STAGE=local: set MCP_SEALING_KEYS in a deployment.")
            return None
        try:
            keys = Path(key_file).read_text().strip()
        except OSError as error:
            problems.append(f"MCP_SEALING_KEY_FILE cannot be read ({error.strerror}): `make run` writes one.")
            return None
    if not keys:
        # A key made up at start would make every instance refuse the others' states.
        problems.append(f"MCP_SEALING_KEYS is not set, and every instance needs the same keys. Make one: {_MAKE_KEY}")
        return None
    try:
        ring = [_key(entry.strip()) for entry in keys.split(",")]
        return Keyring(current=ring[0], retired=ring[1:])
    except ConfigurationError as error:
        problems += error.problems
    except ValueError:
        problems.append(f"MCP_SEALING_KEYS must be kid:base64url, comma-separated. Make one: {_MAKE_KEY}")
    return None


def _key(entry: str) -> Key:
    kid, separator, encoded = entry.partition(":")
    if not separator:
        raise ValueError(entry[:0])
    try:
        return Key(int(kid), base64.b64decode(encoded + "=" * (-len(encoded) % 4), altchars=b"-_", validate=True))
    except binascii.Error:
        raise ValueError("base64") from None
