"""What a deployment configures to connect third parties: the store, the providers, and the sign-in of browsers."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import urlsplit

from app.errors import ConfigurationError
from app.oauth.provider import Provider
from app.oauth.provider_config import read_providers
from app.sealing import Keyring
from app.settings import LOCAL, Settings, read_key

_SIGN_IN: Final = ("oidc", "oauth")
_SCHEMES: Final = ("redis", "rediss")


@dataclass(frozen=True, slots=True)
class ConnectionSettings:
    """The configuration of URL mode. Environment variables, all with the prefix MCP_:

    REDIS_URL           rediss://... of the store; without it no tool can connect a third party
    REDIS_CLUSTER       1 for a cluster-mode server, such as ElastiCache Serverless
    PROVIDERS           the third parties, a JSON object (app/oauth/provider_config.py)
    OIDC_CLIENT_ID      our pages as a client of the authorization server; redirect URI: <base>/auth/callback
    OIDC_CLIENT_SECRET  its secret, if it is a confidential client
    SIGN_IN             `oidc`, or `oauth` for an authorization server without OpenID Connect
    SEALING_PEPPER      kid:base64url of the first sealing key, once there is more than one
    """

    redis_url: str = field(repr=False)
    redis_cluster: bool
    providers: Mapping[str, Provider]
    client_id: str
    client_secret: str | None = field(repr=False)
    openid: bool
    keyring: Keyring
    base_url: str
    """Where our pages are: MCP_RESOURCE_URL without /mcp."""

    @classmethod
    def read(cls, environment: Mapping[str, str], settings: Settings) -> "ConnectionSettings | None":
        """Read and check everything; None without MCP_REDIS_URL.

        Raises ConfigurationError with every problem and its remedy.
        """

        def value(name: str) -> str:
            return environment.get(f"MCP_{name}", "").strip()

        problems: list[str] = []
        redis_url = value("REDIS_URL")
        if not redis_url:
            if value("PROVIDERS"):
                raise ConfigurationError(["MCP_PROVIDERS needs a store: set MCP_REDIS_URL, like rediss://cache:6379."])
            return None
        if urlsplit(redis_url).scheme not in _SCHEMES or not urlsplit(redis_url).hostname:
            problems.append("MCP_REDIS_URL must be a URL like rediss://cache.example.com:6379.")
        client_id = value("OIDC_CLIENT_ID")
        if not client_id:
            problems.append(
                "MCP_OIDC_CLIENT_ID is not set: register the web pages at the authorization server, with the redirect "
                f"URI {settings.resource_url.removesuffix('/mcp')}/auth/callback, and set it to the client id."
            )
        sign_in = value("SIGN_IN") or "oidc"
        if sign_in not in _SIGN_IN:
            problems.append(f"MCP_SIGN_IN is {sign_in!r}: set it to one of {', '.join(_SIGN_IN)}.")
        providers: Mapping[str, Provider] = {}
        keyring = settings.keyring
        try:
            providers = read_providers(value("PROVIDERS"), environment, local=settings.stage == LOCAL)
        except ConfigurationError as error:
            problems += error.problems
        try:
            if value("SEALING_PEPPER"):
                pepper = read_key(value("SEALING_PEPPER"))
                keyring = Keyring(current=keyring.current, retired=keyring.retired, pepper=pepper)
            # Asked for at start: a ring of several keys without a pepper must not be met by the first user.
            _ = keyring.pepper
        except ConfigurationError as error:
            problems += [f"MCP_SEALING_PEPPER: {problem}" for problem in error.problems]
        except ValueError:
            problems.append("MCP_SEALING_PEPPER must be kid:base64url, like one entry of MCP_SEALING_KEYS.")
        if problems:
            raise ConfigurationError(problems)
        return cls(
            redis_url=redis_url,
            redis_cluster=value("REDIS_CLUSTER") == "1",
            providers=providers,
            client_id=client_id,
            client_secret=value("OIDC_CLIENT_SECRET") or None,
            openid=sign_in == "oidc",
            keyring=keyring,
            base_url=settings.resource_url.removesuffix("/mcp"),
        )
