"""The configuration in the environment, as a function would read it, and everything that it names."""

from collections.abc import Iterator, Mapping

from app.adapters.aws_client import AwsRefused
from app.adapters.kms import KmsKeyring
from app.connection_settings import ConnectionSettings, pages_url
from app.errors import ConfigurationError, Unavailable
from app.sealing import Keyring, SealingKeys
from app.settings import Settings
from app.wiring.connections import open_redis, url_mode
from infra.doctor.finding import Finding, fail, ok, warn
from infra.doctor.http import Http
from infra.doctor.issuer import check_issuer
from infra.doctor.store import check_store


def check_configuration(environment: Mapping[str, str], http: Http) -> Iterator[Finding]:
    """Read it as the functions do, and try what it names."""
    try:
        settings = Settings.read(environment, KmsKeyring)
    except ConfigurationError as error:
        yield from (fail("configuration", problem) for problem in error.problems)
        return
    yield ok("configuration", f"The settings of {settings.resource_url} can be read (stage {settings.stage}).")
    yield from _check_keys(settings.keyring)
    yield from _check_connections(environment, settings)
    yield from check_issuer(http, settings.issuer, jwks_url=settings.jwks_url)


def _check_keys(ring: SealingKeys) -> Iterator[Finding]:
    if isinstance(ring, Keyring):
        yield ok("sealing keys", f"Key {ring.current.kid} seals, and {len(ring.retired)} more still open.")
        return
    try:
        yield ok(
            "sealing keys", f"KMS unwraps the ring: key {ring.current.kid} seals, {ring.pepper.kid} is the pepper."
        )
    except Unavailable as error:
        yield fail("sealing keys", _unreadable("The key ring", error))


def _check_connections(environment: Mapping[str, str], settings: Settings) -> Iterator[Finding]:
    try:
        mode = url_mode(environment, settings)
        configured = None if mode is None else mode.settings
    except ConfigurationError as error:
        yield from (fail("connections", problem) for problem in error.problems)
        return
    except Unavailable as error:
        yield fail("connections", _unreadable("MCP_CONNECTIONS_SECRET", error))
        return
    if configured is None:
        yield ok("connections", "There is no store: forms work, and no tool connects a third party.")
        return
    yield from check_store(configured.redis, lambda redis: open_redis(redis)[0])
    yield from _redirect_uris(configured, settings)


def _unreadable(what: str, error: Unavailable) -> str:
    # What AWS refuses comes with its remedy; what does not answer has only one.
    remedy = "" if isinstance(error, AwsRefused) else ": open the way from here to the service (endpoint, NAT, proxy)"
    return f"{what} cannot be read: {error.reason}{remedy}."


def _redirect_uris(configured: ConnectionSettings, settings: Settings) -> Iterator[Finding]:
    """What has to be registered elsewhere, and that nobody can check from here."""
    base = pages_url(settings)
    yield ok(
        "redirect URI", f"Register {base}/auth/callback for the client {configured.client_id} at {settings.issuer}."
    )
    for provider in configured.providers.values():
        yield ok("redirect URI", f"Register {base}/oauth/callback/{provider.name} at {provider.title}.")
    if not configured.providers:
        yield warn("providers", "There is a store, and nobody to connect: set MCP_PROVIDERS if a tool needs one.")
