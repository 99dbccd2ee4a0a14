"""Fetches a client ID metadata document over HTTP without letting its URL reach an internal service."""

import ipaddress
import re
import socket
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final
from urllib.parse import SplitResult, urlsplit, urlunsplit

import httpx2

from infra.local.identity.redirect_uris import LOOPBACK_HOSTS
from infra.local.identity.trusted_certificates import trusted_certificates

SIZE_LIMIT: Final = 5 * 1024
TIMEOUT_SECONDS: Final = 5.0
DEFAULT_MAX_AGE: Final = 300
LONGEST_MAX_AGE: Final = 24 * 3600
_JSON: Final = re.compile(r"application/(?:[a-z0-9.-]+\+)?json\s*(?:;|\Z)", re.IGNORECASE)
_MAX_AGE: Final = re.compile(r"max-age=(\d{1,9})")


class DocumentUnavailable(Exception):
    """There is no usable document at the URL; the message is safe to show to the user."""


@dataclass(frozen=True)
class FetchedDocument:
    """The bytes behind a client ID, and for how many seconds they may be reused."""

    body: bytes
    max_age: int = DEFAULT_MAX_AGE


DocumentFetcher = Callable[[str], FetchedDocument]


def fetch_document(url: str) -> FetchedDocument:
    """GET a checked client ID URL, or raise `DocumentUnavailable`. Blocks for at most a few seconds."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    error: httpx2.HTTPError | None = None
    with httpx2.Client(
        verify=trusted_certificates(), follow_redirects=False, trust_env=False, timeout=TIMEOUT_SECONDS
    ) as client:
        for address in _public_addresses(host, parts.port or (443 if parts.scheme == "https" else 80)):
            try:
                return _fetch_from(client, parts, address)
            except httpx2.ConnectError as refused:
                error = refused
            except httpx2.HTTPError as failed:
                error = failed
                break
    raise DocumentUnavailable(f"{host} did not answer: check that the client ID URL is reachable") from error


def _fetch_from(client: httpx2.Client, parts: SplitResult, address: str) -> FetchedDocument:
    # The connection goes to the address that was checked: a second look-up could give another (DNS rebinding).
    netloc = f"[{address}]" if ":" in address else address
    if parts.port:
        netloc = f"{netloc}:{parts.port}"
    url = urlunsplit((parts.scheme, netloc, parts.path, parts.query, ""))
    headers = {"Host": parts.netloc, "Accept": "application/json"}
    with client.stream("GET", url, headers=headers, extensions={"sni_hostname": parts.hostname}) as response:
        return _read(response)


def _read(response: httpx2.Response) -> FetchedDocument:
    if response.status_code != 200:
        raise DocumentUnavailable(f"It answered {response.status_code}: serve it with 200 and without a redirect")
    if not _JSON.match(response.headers.get("content-type", "")):
        raise DocumentUnavailable("It is not JSON: serve it as application/json")
    body = b""
    for chunk in response.iter_bytes():
        body += chunk
        if len(body) > SIZE_LIMIT:
            raise DocumentUnavailable(f"It is longer than {SIZE_LIMIT} bytes: shorten it")
    return FetchedDocument(body=body, max_age=_max_age(response.headers.get("cache-control", "")))


def _max_age(cache_control: str) -> int:
    directives = cache_control.lower()
    if "no-store" in directives or "no-cache" in directives:
        return 0
    found = _MAX_AGE.search(directives)
    return min(int(found[1]), LONGEST_MAX_AGE) if found else DEFAULT_MAX_AGE


def _public_addresses(host: str, port: int) -> list[str]:
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError as error:
        raise DocumentUnavailable(f"{host} has no address: check the host of the client ID URL") from error
    addresses = [str(entry[4][0]) for entry in found]
    # Loopback names were let in, or not, by the check of the client ID itself.
    if host not in LOOPBACK_HOSTS and not all(_is_public(address) for address in addresses):
        raise DocumentUnavailable(f"{host} is not on the public internet: use a public client ID URL")
    return addresses


def _is_public(text: str) -> bool:
    address = ipaddress.ip_address(text)
    return address.is_global and not address.is_multicast
