"""What a deployment configures around its store: the providers, the sign-in of browsers, and the limits."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from app.effects.limits import DEFAULTS, Kind, Limit
from app.errors import ConfigurationError
from app.oauth.provider import Provider
from app.oauth.provider_config import read_providers
from app.redis_settings import RedisSettings
from app.sealing import Keyring, SealingKeys
from app.settings import LOCAL, Settings

_SIGN_IN: Final = ("oidc", "oauth")
_LIMIT = re.compile(r"(?P<count>[1-9][0-9]{0,4})/(?P<seconds>[1-9][0-9]{0,4})\Z", re.ASCII)
# What stands in for the secret while a function starts: everything else is checked then.
_NOT_READ_YET: Final = {"REDIS_URL": "rediss://in-the-secret:6379", "PROVIDERS": "", "OIDC_CLIENT_ID": "in-the-secret"}


@dataclass(frozen=True, slots=True)
class ConnectionSettings:
    """The configuration of what needs the store. Environment variables, all with the prefix MCP_:

    REDIS_URL           rediss://... of the store, and what else app/redis_settings.py reads; without it no tool
                        can connect a third party, have its effect once, or remember an approval
    PROVIDERS           the third parties, a JSON object (app/oauth/provider_config.py)
    OIDC_CLIENT_ID      our pages as a client of the authorization server; redirect URI: <base>/auth/callback
    OIDC_CLIENT_SECRET  its secret, if it is a confidential client
    SIGN_IN             `oidc`, or `oauth` for an authorization server without OpenID Connect
    ASK_LIMIT           how often one principal may be asked: COUNT/SECONDS, like 60/600; without it nobody counts,
                        for that costs a round trip to the store for each form
    FLOW_LIMIT          how many links one principal may get: COUNT/SECONDS, 20/3600 by default
    CONNECTIONS_SECRET  ARN or name of a secret in Secrets Manager, whose members are set over these variables
                        (app/connections_secret.py); read by the first request that needs it
    """

    redis: RedisSettings
    providers: Mapping[str, Provider]
    client_id: str
    client_secret: str | None = field(repr=False)
    openid: bool
    keyring: SealingKeys
    base_url: str
    limits: Mapping[Kind, Limit]

    @classmethod
    def check(cls, environment: Mapping[str, str], settings: Settings) -> None:
        """Check all that is known while the secret is not read yet. Raises ConfigurationError as `read` does."""
        cls.read({**environment, **{f"MCP_{name}": text for name, text in _NOT_READ_YET.items()}}, settings)

    @classmethod
    def read(cls, environment: Mapping[str, str], settings: Settings) -> "ConnectionSettings | None":
        """Read and check everything; None without MCP_REDIS_URL.

        Raises ConfigurationError with every problem and its remedy.
        """

        def value(name: str) -> str:
            return environment.get(f"MCP_{name}", "").strip()

        problems: list[str] = []
        if not value("REDIS_URL"):
            useless = [f"MCP_{name}" for name in ("PROVIDERS", "ASK_LIMIT", "FLOW_LIMIT") if value(name)]
            if useless:
                raise ConfigurationError(
                    [f"{name} needs a store: set MCP_REDIS_URL, like rediss://cache:6379." for name in useless]
                )
            return None
        redis = RedisSettings.read(environment, problems, local=settings.stage == LOCAL)
        client_id = value("OIDC_CLIENT_ID")
        if not client_id:
            problems.append(
                "MCP_OIDC_CLIENT_ID is not set: register the web pages at the authorization server, with the redirect "
                f"URI {pages_url(settings)}/auth/callback, and set it to the client id."
            )
        sign_in = value("SIGN_IN") or "oidc"
        if sign_in not in _SIGN_IN:
            problems.append(f"MCP_SIGN_IN is {sign_in!r}: set it to one of {', '.join(_SIGN_IN)}.")
        limits = read_limits(environment, problems)
        providers: Mapping[str, Provider] = {}
        keyring = settings.keyring
        try:
            providers = read_providers(value("PROVIDERS"), environment, local=settings.stage == LOCAL)
        except ConfigurationError as error:
            problems += error.problems
        if isinstance(keyring, Keyring):
            try:
                # Asked for at start: a ring of several keys without a pepper must not be met by the first user.
                _ = keyring.pepper
            except ConfigurationError as error:
                problems += [f"MCP_SEALING_PEPPER: {problem}" for problem in error.problems]
        if problems or redis is None:
            raise ConfigurationError(problems)
        return cls(
            redis=redis,
            providers=providers,
            client_id=client_id,
            client_secret=value("OIDC_CLIENT_SECRET") or None,
            openid=sign_in == "oidc",
            keyring=keyring,
            base_url=pages_url(settings),
            limits=limits,
        )


def are_asks_limited(environment: Mapping[str, str]) -> bool:
    """Whether forms are counted."""
    return bool(environment.get("MCP_ASK_LIMIT", "").strip())


def read_limits(environment: Mapping[str, str], problems: list[str]) -> Mapping[Kind, Limit]:
    """How often what may be done, with the defaults for what is not set. Adds a problem for each that is none."""
    limits = dict(DEFAULTS)
    for kind in Kind:
        name = f"MCP_{kind.name}_LIMIT"
        text = environment.get(name, "").strip()
        found = _LIMIT.match(text)
        if found:
            limits[kind] = Limit(int(found["count"]), int(found["seconds"]))
        elif text:
            problems.append(f"{name} is {text[:32]!r}: set it to COUNT/SECONDS, each from 1 to 99999, like 60/600.")
    return limits


def pages_url(settings: Settings) -> str:
    """Where our pages are: MCP_RESOURCE_URL without /mcp."""
    return settings.resource_url.removesuffix("/mcp")
