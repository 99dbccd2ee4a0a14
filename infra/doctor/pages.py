"""The browser side of an endpoint: headers and cookies as a browser gets them, and where a sign-in leads."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final
from urllib.parse import parse_qsl, urlsplit

from infra.doctor.finding import Finding, fail, ok
from infra.doctor.http import Http, Unreachable

PAGE: Final = "/connections"
"""The one page that anybody may ask for: it begins a sign-in, which ends by itself after some minutes."""


def check_pages(http: Http, url: str) -> Iterator[Finding]:
    """The pages beside the endpoint `url`."""
    base = url.removesuffix("/").removesuffix("/mcp")
    try:
        answer = http.get(base + PAGE)
    except Unreachable as error:
        yield fail("pages", f"{base}{PAGE} cannot be reached ({error}): route $default to the web function.")
        return
    if answer.status == 404:
        yield ok("pages", "There are no browser pages: nothing here connects a third party.")
        return
    if answer.status != 303:
        yield fail(
            "pages",
            f"{base}{PAGE} gives HTTP {answer.status} and no redirect to the sign-in: look into the web function's "
            "log, which has the reason (store, metadata of the authorization server).",
        )
        return
    secure = urlsplit(base).scheme == "https"
    yield _check_sign_in(answer.headers.get("location", ""), base)
    yield check_cookies(answer.headers.get_list("set-cookie"), secure=secure)
    yield check_page_headers(answer.headers, secure=secure)


def _check_sign_in(location: str, base: str) -> Finding:
    redirect_uri = dict(parse_qsl(urlsplit(location).query)).get("redirect_uri", "")
    if redirect_uri != f"{base}/auth/callback":
        return fail(
            "sign-in",
            f"The sign-in returns to {redirect_uri[:200]!r} and not to {base}/auth/callback: set MCP_RESOURCE_URL to "
            "what clients are given.",
        )
    return ok("sign-in", f"The pages sign in at {urlsplit(location).netloc}: {redirect_uri} must be registered there.")


def check_cookies(cookies: Sequence[str], *, secure: bool) -> Finding:
    """Every Set-Cookie of a page. `secure` says that the pages are served by https."""
    if not cookies:
        return fail("cookies", "The sign-in sets no cookie: let Set-Cookie through the proxy or CDN.")
    for cookie in cookies:
        name, _, rest = cookie.partition("=")
        attributes = {
            part.strip().partition("=")[0].lower(): part.strip().partition("=")[2] for part in rest.split(";")[1:]
        }
        wanted = {
            "HttpOnly": "httponly" in attributes,
            "SameSite=Lax": attributes.get("samesite", "").lower() == "lax",
            "Path=/": attributes.get("path") == "/",
            "no Domain": "domain" not in attributes,
        }
        if secure:
            wanted |= {"Secure": "secure" in attributes, "the prefix __Host-": name.startswith("__Host-")}
        missing = [each for each, is_there in wanted.items() if not is_there]
        if missing:
            return fail(
                "cookies",
                f"The cookie {name[:64]} lacks {', '.join(missing)}: set MCP_RESOURCE_URL to the https URL that "
                "browsers use, and stop whatever rewrites cookies on the way.",
            )
    return ok("cookies", f"Cookies are as they should be{'' if secure else ' for a loopback address'}.")


def check_page_headers(headers: Mapping[str, str], *, secure: bool) -> Finding:
    """The security headers of a page."""
    policy = headers.get("content-security-policy", "")
    wanted = {
        "Content-Security-Policy with frame-ancestors 'none'": "frame-ancestors 'none'" in policy,
        "X-Content-Type-Options: nosniff": headers.get("x-content-type-options") == "nosniff",
        "Referrer-Policy": "referrer-policy" in headers,
        "Cache-Control: no-store": "no-store" in headers.get("cache-control", ""),
    }
    if secure:
        wanted["Strict-Transport-Security"] = "max-age" in headers.get("strict-transport-security", "")
    missing = [each for each, is_there in wanted.items() if not is_there]
    if missing:
        return fail(
            "page headers", f"The pages lack {', '.join(missing)}: stop whatever takes headers away (proxy, CDN)."
        )
    return ok("page headers", "The pages have their security headers.")
