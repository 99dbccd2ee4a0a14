"""What a deployment configures, read from environment variables once, with every problem named at once."""

import base64
import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias
from urllib.parse import urlsplit

from app.authorization.resource_server import scope_problems
from app.errors import ConfigurationError
from app.sealing import Key, Keyring, SealingKeys

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
_KMS_KEY = re.compile(r"arn:[a-z0-9-]+:kms:[a-z0-9-]+:[0-9]{12}:key/[A-Za-z0-9-]+\Z")

WrappedRing: TypeAlias = Callable[[str, str, str], SealingKeys]
"""Makes the ring that a secret holds (its id), wrapped by a KMS key (ARN), for an app (the encryption context's)."""


class Settings(NamedTuple):
    """The configuration of one function. Environment variables, all with the prefix MCP_:

    STAGE            `local` allows loopback http URLs and a key file; anything else is a deployment
    RESOURCE_URL     public URL of the MCP endpoint, the audience of every access token
    ISSUER           issuer identifier of the authorization server
    JWKS_URL         its JWK Set, if its metadata should not be asked
    SEALING_SECRET   ARN or name of the secret that holds the key ring, wrapped by KMS (`python -m infra.keys`)
    KMS_KEY          ARN of the KMS key that wrapped it
    SEALING_APP      `app` of the encryption context that it was wrapped for: the stack's name
    SEALING_KEYS     in place of these three: kid:base64url of 32 bytes, comma-separated, the current key first
    SEALING_PEPPER   with them: kid:base64url of the first key, once there is more than one
    SEALING_KEY_FILE local only: a file with what SEALING_KEYS would have, readable by its owner alone
    ALLOWED_ORIGINS  web origins that may call from a browser, comma-separated
    REQUIRED_SCOPES  scopes that every request needs, space-separated
    SUBJECT_CLAIM    the claim that names the user, `sub` unless the issuer's `sub` is pairwise per client
    SERVER_NAME      the name that clients show
    TEXT_FALLBACK    `off` keeps forms from being put to the model as text, for clients that show none
    """

    stage: str
    resource_url: str
    issuer: str
    jwks_url: str | None
    keyring: SealingKeys
    allowed_origins: tuple[str, ...]
    required_scopes: tuple[str, ...]
    subject_claim: str
    server_name: str
    text_fallback: bool

    @classmethod
    def read(cls, environment: Mapping[str, str], wrapped_ring: WrappedRing | None = None) -> "Settings":
        """Read and check everything. Raises ConfigurationError with every problem and its remedy.

        Without `wrapped_ring` the keys must be in the environment, or in a file.
        """
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
        text_fallback = value("TEXT_FALLBACK", "on")
        if text_fallback not in ("on", "off"):
            problems.append(f"MCP_TEXT_FALLBACK is {text_fallback!r}: set it to on or off.")
        keyring = _keyring(problems, value, stage, wrapped_ring)
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
            text_fallback=text_fallback == "on",
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


def _keyring(
    problems: list[str], value: Callable[[str], str], stage: str, wrapped_ring: WrappedRing | None
) -> SealingKeys | None:
    """The ring of the one source that is set, or None with a problem more."""
    sources = [f"MCP_{name}" for name in ("SEALING_SECRET", "SEALING_KEYS", "SEALING_KEY_FILE") if value(name)]
    if len(sources) > 1:
        # Which of them counts would be a guess, and a wrong one makes this function refuse the others' states.
        problems.append(f"{' and '.join(sources)} are set: keep the one that has the keys, and empty the rest.")
        return None
    if value("SEALING_SECRET"):
        return _wrapped_keyring(problems, value, wrapped_ring)
    if value("SEALING_KEY_FILE"):
        if stage != LOCAL:
            problems.append("MCP_SEALING_KEY_FILE is for MCP_STAGE=local: set MCP_SEALING_SECRET in a deployment.")
            return None
        text = _read_key_file(problems, Path(value("SEALING_KEY_FILE")))
        return None if text is None else _keyring_in_process(problems, text, value("SEALING_PEPPER"))
    return _keyring_in_process(problems, value("SEALING_KEYS"), value("SEALING_PEPPER"))


def _wrapped_keyring(
    problems: list[str], value: Callable[[str], str], wrapped_ring: WrappedRing | None
) -> SealingKeys | None:
    found = len(problems)
    if wrapped_ring is None:
        problems.append("MCP_SEALING_SECRET needs KMS, which is not used here: set MCP_SEALING_KEYS.")
    if not _KMS_KEY.match(value("KMS_KEY")):
        problems.append(
            f"MCP_KMS_KEY is {value('KMS_KEY')!r}, and must be the ARN of the KMS key that wrapped the ring in "
            "MCP_SEALING_SECRET, like arn:aws:kms:eu-central-1:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab."
        )
    if not value("SEALING_APP"):
        problems.append(
            "MCP_SEALING_APP is not set: set it to the --app that the ring in MCP_SEALING_SECRET was made with, "
            "which is the stack's name."
        )
    if value("SEALING_PEPPER"):
        problems.append("MCP_SEALING_PEPPER is for MCP_SEALING_KEYS: remove it, the ring in the secret has its own.")
    if wrapped_ring is None or len(problems) > found:
        return None
    return wrapped_ring(value("SEALING_SECRET"), value("KMS_KEY"), value("SEALING_APP"))


def _keyring_in_process(problems: list[str], keys: str, pepper: str) -> Keyring | None:
    if not keys:
        # A key made up at start would make every instance refuse the others' states.
        problems.append(
            "MCP_SEALING_SECRET is not set, nor MCP_SEALING_KEYS, and every instance needs the same keys. Make a ring "
            f"with `python -m infra.keys create`, or a key for MCP_SEALING_KEYS: {_MAKE_KEY}"
        )
        return None
    first: Key | None = None
    try:
        first = read_key(pepper) if pepper else None
    except ConfigurationError as error:
        problems += [f"MCP_SEALING_PEPPER: {problem}" for problem in error.problems]
    except ValueError:
        problems.append("MCP_SEALING_PEPPER must be kid:base64url, like one entry of MCP_SEALING_KEYS.")
    try:
        ring = [read_key(entry.strip()) for entry in keys.split(",")]
        return Keyring(current=ring[0], retired=ring[1:], pepper=first)
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
