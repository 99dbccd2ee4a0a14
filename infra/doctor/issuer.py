"""Whether an authorization server is one that MCP clients can log in to, and whose tokens we can verify."""

from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

from app.adapters.http_client import MAX_BYTES
from app.authorization.jwks import metadata_urls, trusted_keys
from infra.doctor.clock import check_clock
from infra.doctor.finding import Finding, fail, ok, warn
from infra.doctor.http import LOOPBACK, Answer, Http, Unreachable


def check_issuer(http: Http, issuer: str, *, jwks_url: str | None = None) -> Iterator[Finding]:
    """Metadata, clock and keys of one issuer. `jwks_url` is the configured place of its keys, if there is one."""
    subject = "issuer"
    parts = urlsplit(issuer)
    if parts.scheme != "https" and parts.hostname not in LOOPBACK:
        yield fail(subject, f"{issuer} is no https URL: anybody on the way could replace its keys. Use https.")
        return
    document: dict[str, Any] = {}
    skew: float | None = None
    problems: list[str] = []
    answered = False
    for url in metadata_urls(issuer):
        try:
            answer = http.get(url)
        except Unreachable as error:
            problems.append(f"{url}: {error}")
            continue
        answered, skew = True, answer.skew if skew is None else skew
        problem = _not_metadata(answer, issuer)
        if problem is not None:
            problems.append(f"{url}: {problem}")
        elif not document:
            document = answer.json_object()
            yield ok(subject, f"The metadata of {issuer} is at {url}.")
    if answered:
        yield check_clock("issuer clock", issuer, skew)
    if document:
        yield from _check_metadata(document)
    else:
        places = "; ".join(problems)
        yield fail(
            subject,
            f"No metadata of {issuer} ({places}): serve it (RFC 8414 or OpenID Connect Discovery) with exactly this "
            "issuer, or set MCP_ISSUER to the issuer that it names.",
        )
    keys_at = jwks_url or document.get("jwks_uri")
    if isinstance(keys_at, str):
        yield from _check_keys(http, keys_at, issuer, configured=jwks_url is not None)
    elif document:
        yield fail("issuer keys", "The metadata has no jwks_uri: add it, or set MCP_JWKS_URL.")


def _not_metadata(answer: Answer, issuer: str) -> str | None:
    if answer.status != 200:
        return f"HTTP {answer.status}"
    found = answer.json_object().get("issuer")
    return None if found == issuer else f"its issuer is {str(found)[:200]!r}"


def _check_metadata(document: dict[str, Any]) -> Iterator[Finding]:
    missing = [name for name in ("authorization_endpoint", "token_endpoint") if not document.get(name)]
    if missing:
        yield fail("issuer endpoints", f"The metadata lacks {' and '.join(missing)}: no client can log in. Add them.")
    methods = document.get("code_challenge_methods_supported")
    if isinstance(methods, list) and "S256" in methods:
        yield ok("issuer PKCE", "The authorization server supports S256.")
    else:
        yield fail(
            "issuer PKCE",
            "code_challenge_methods_supported does not list S256, and MCP clients refuse to log in without it: turn "
            "PKCE on at the authorization server, and make its metadata say so.",
        )
    ways = {
        "client id metadata documents": document.get("client_id_metadata_document_supported") is True,
        "dynamic registration": isinstance(document.get("registration_endpoint"), str),
    }
    offered = [way for way, is_offered in ways.items() if is_offered]
    if offered:
        yield ok("issuer registration", f"Clients that nobody registered can log in: {' and '.join(offered)}.")
    else:
        yield warn(
            "issuer registration",
            "The authorization server takes neither client id metadata documents nor dynamic registration: only "
            "clients that you register by hand can log in. Turn one of the two on, the first if there is a choice.",
        )


def _check_keys(http: Http, url: str, issuer: str, *, configured: bool) -> Iterator[Finding]:
    subject = "issuer keys"
    if not configured and urlsplit(url)[:2] != urlsplit(issuer)[:2]:
        yield fail(
            subject, f"jwks_uri ({url}) is not on the issuer's host, and so not trusted: set MCP_JWKS_URL to it."
        )
        return
    try:
        answer = http.get(url)
    except Unreachable as error:
        yield fail(subject, f"{url} cannot be reached ({error}): no token can be verified. Open the way to it.")
        return
    keys = answer.json_object().get("keys")
    offered = len(keys) if isinstance(keys, list) else 0
    trusted = trusted_keys(answer.json())
    usable = sum(len(each) for each in trusted.values())
    if answer.status != 200 or not usable:
        yield fail(
            subject,
            f"{url} (HTTP {answer.status}) has {offered} keys, and none that can verify a token here: publish an RSA "
            "key of 2048 bits or more, a P-256 or an Ed25519 key, with a kid and for signatures.",
        )
    elif len(answer.body) > MAX_BYTES:
        yield fail(subject, f"{url} has {len(answer.body)} bytes, and more than {MAX_BYTES} are not read: shorten it.")
    else:
        algorithms = sorted({name for each in trusted.values() for key in each for name in key.by_algorithm})
        yield ok(subject, f"{usable} of {offered} keys can verify tokens ({', '.join(algorithms)}).")
