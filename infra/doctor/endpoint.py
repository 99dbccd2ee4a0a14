"""A deployed endpoint from outside, as a client, a browser and a stranger see it."""

import re
from collections.abc import Iterator
from typing import Final
from urllib.parse import urlsplit

from infra.doctor.clock import check_clock
from infra.doctor.finding import Finding, fail, ok, warn
from infra.doctor.http import LOOPBACK, Answer, Http, Unreachable
from infra.doctor.issuer import check_issuer
from infra.doctor.mcp_request import post
from infra.doctor.pages import check_pages

WELL_KNOWN: Final = "/.well-known/oauth-protected-resource"
EVIL_ORIGIN: Final = "https://evil.example"
_PARAMETER = re.compile(r'([A-Za-z_]+)="([^"]*)"')


def check_endpoint(http: Http, url: str) -> Iterator[Finding]:
    """Everything that can be seen of an endpoint without a token. `url` is what clients are given."""
    parts = urlsplit(url)
    if parts.scheme != "https" and parts.hostname not in LOOPBACK:
        yield fail("endpoint", f"{url} is no https URL: access tokens would travel in clear. Give it a certificate.")
        return
    try:
        answer = post(http, url)
    except Unreachable as error:
        yield fail("endpoint", f"{url} cannot be reached ({error}): check name, certificate and deployment.")
        return
    yield _check_refusal(url, answer)
    yield check_clock("endpoint clock", url, answer.skew)
    if answer.status == 401:
        yield from _check_challenge(http, url, answer)
    for check in (_check_slash, _check_get, _check_origin):
        try:
            yield check(http, url)
        except Unreachable as error:
            yield fail("endpoint", f"{url} stopped answering ({error}): look for timeouts in the function's log.")
    issuers: list[str] = []
    yield from _check_metadata(http, url, issuers)
    yield from check_pages(http, url)
    for issuer in issuers:
        yield from check_issuer(http, issuer)


def _check_refusal(url: str, answer: Answer) -> Finding:
    """What a request without a token gets."""
    if answer.status == 401:
        return ok("endpoint", f"{url} answers, and asks for a token ({answer.seconds * 1000:.0f} ms).")
    if 300 <= answer.status < 400:
        return fail(
            "endpoint",
            f"{url} redirects to {answer.headers.get('location', '')}: clients lose the body or the token on the way. "
            "Give clients, and MCP_RESOURCE_URL, the URL that it leads to, or take the redirect away.",
        )
    if answer.status == 200:
        return fail(
            "endpoint", f"{url} answers a request without a token: deploy the function behind it, and no other."
        )
    if answer.status == 404:
        return fail("endpoint", f"{url} is not there (HTTP 404): check the path, the stage and MCP_RESOURCE_URL.")
    return fail(
        "endpoint",
        f"{url} answers a request without a token with HTTP {answer.status} and not 401: look into the function's log, "
        "and at what stands before it (authorizer, WAF, CDN).",
    )


def _check_challenge(http: Http, url: str, answer: Answer) -> Iterator[Finding]:
    subject = "challenge"
    challenge = answer.headers.get("www-authenticate")
    if challenge is None:
        renamed = [name for name in ("x-amzn-remapped-www-authenticate", "x-mcp-challenge") if name in answer.headers]
        came = f" but as {' and '.join(renamed)}" if renamed else ""
        yield fail(
            subject,
            f"The 401 has no WWW-Authenticate{came}, and clients do not find the authorization server: map "
            "x-mcp-challenge to it as responseParameters in template.yaml do, or stop the proxy from taking it away.",
        )
        return
    scheme, _, rest = challenge.partition(" ")
    parameters = dict(_PARAMETER.findall(rest))
    metadata_url = parameters.get("resource_metadata")
    if scheme.lower() != "bearer" or not metadata_url:
        yield fail(
            subject,
            "WWW-Authenticate has no Bearer challenge with resource_metadata (RFC 9728 section 5.1): let the function "
            "write it, and not an authorizer before it.",
        )
        return
    if "error" in parameters:
        yield warn(
            subject,
            "The challenge has an error, although no token came (RFC 6750 section 3.1), and some clients give up then: "
            "let the function write it.",
        )
    try:
        metadata = http.get(metadata_url)
    except Unreachable as error:
        yield fail(subject, f"resource_metadata ({metadata_url}) cannot be reached ({error}): set MCP_RESOURCE_URL.")
        return
    if metadata.status != 200 or metadata.json_object().get("resource") != url:
        yield fail(
            subject,
            f"resource_metadata ({metadata_url}) leads to HTTP {metadata.status} and not to the metadata of {url}: set "
            "MCP_RESOURCE_URL to what clients are given, and route both metadata paths to the function.",
        )
        return
    yield ok(subject, f"WWW-Authenticate leads to {metadata_url}.")


def _check_slash(http: Http, url: str) -> Finding:
    other = url.removesuffix("/") if url.endswith("/") else f"{url}/"
    status = post(http, other).status
    if 300 <= status < 400:
        return fail(
            "trailing slash",
            f"{other} redirects: clients that add or drop a slash lose the body or the token. Route both spellings "
            "to a function, and take the redirect of the proxy or CDN away.",
        )
    if status != 401:
        return warn("trailing slash", f"{other} gives HTTP {status} and not 401: route it to a function as well.")
    return ok("trailing slash", f"{other} answers alike, without a redirect.")


def _check_get(http: Http, url: str) -> Finding:
    answer = http.get(url, {"accept": "text/event-stream"})
    if answer.status != 405:
        return fail(
            "GET",
            f"GET {url} gives HTTP {answer.status} and not 405: clients of earlier revisions would wait for a stream. "
            "Route every method of the path to the function.",
        )
    return ok("GET", "GET is 405: there is no stream to wait for.")


def _check_origin(http: Http, url: str) -> Finding:
    answer = post(http, url, headers={"origin": EVIL_ORIGIN})
    allowed = answer.headers.get("access-control-allow-origin")
    if answer.status != 403:
        return fail(
            "Origin",
            f"A request from a web page of {EVIL_ORIGIN} gets HTTP {answer.status} and not 403: keep the CORS settings "
            "of the gateway off, list your origins in MCP_ALLOWED_ORIGINS, and let the header reach the function.",
        )
    if allowed in ("*", EVIL_ORIGIN):
        return fail("Origin", f"Access-Control-Allow-Origin is {allowed}: turn the gateway's own CORS settings off.")
    return ok("Origin", "A request from a foreign web page is refused.")


def _check_metadata(http: Http, url: str, issuers: list[str]) -> Iterator[Finding]:
    parts = urlsplit(url)
    origin = f"{parts.scheme}://{parts.netloc}"
    for place in (f"{origin}{WELL_KNOWN}{parts.path}", f"{origin}{WELL_KNOWN}"):
        try:
            answer = http.get(place)
        except Unreachable as error:
            yield fail("metadata", f"{place} cannot be reached ({error}): route it to the MCP function.")
            continue
        document = answer.json_object()
        if answer.status != 200 or not document:
            asks = " without a token" if answer.status in (401, 403) else ""
            yield fail("metadata", f"{place} gives HTTP {answer.status}: route it to the MCP function{asks}.")
            continue
        resource = document.get("resource")
        servers = document.get("authorization_servers")
        named = [each for each in servers if isinstance(each, str)] if isinstance(servers, list) else []
        issuers += [each for each in named if each not in issuers]
        if resource != url:
            yield fail(
                "metadata",
                f"The resource in {place} is {str(resource)[:200]!r} and not {url!r}, byte by byte: clients ask for "
                "tokens of another audience, or refuse to go on. Set MCP_RESOURCE_URL to what clients are given.",
            )
        elif not named:
            yield fail("metadata", f"{place} names no authorization server: set MCP_ISSUER, and deploy this function.")
        else:
            yield ok("metadata", f"{place} describes this endpoint.")
