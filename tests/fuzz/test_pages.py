"""The pages of the web function, tried by schemathesis from a description of the routes, and by hypothesis."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, urlencode, urlsplit

import httpx2
import pytest
import schemathesis
import yaml
from hypothesis import given
from hypothesis import strategies as st
from starlette.types import Receive, Scope, Send

from app.web.browser_pages import ROUTES
from app.web.pages import STYLESHEET
from infra.local.loopback_server import listen, serve_on, url_of
from infra.local.on_thread import on_thread
from tests.fuzz.budget import no_hang, tries
from tests.fuzz.generated import header_values, spoiled_text, texts
from tests.oauth.authorization_server import ISSUER
from tests.web.world import PROVIDER_ORIGIN, World

DESCRIBED: Final = Path(__file__).parent / "pages.openapi.yaml"
HEADERS: Final = {
    "cache-control": "no-store",
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
}
POLICY: Final = "default-src 'none'; style-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'"
REQUESTS: Final = (
    ("GET", "{link}"),
    *(("POST", f"{{link}}/{step}") for step in ("start", "decline", "secret")),
    ("GET", "/connections"),
    ("POST", "/connections/provider:notes/disconnect"),
    ("POST", f"/connections/approvals/{'A' * 43}/withdraw"),
    ("GET", "/auth/callback"),
    ("POST", "/auth/sign-out"),
    ("GET", "/auth/signed-out"),
    ("GET", "/oauth/callback/notes"),
    ("GET", "/connect/done"),
)
PIECES: Final = (
    "state",
    "code",
    "iss",
    "error",
    "=",
    "&",
    "&",
    "%ED%A0%80",
    "%ff",
    "%00",
    "%",
    "%2",
    "+",
    ";",
    "?",
    "a" * 99,
)
queries = st.one_of(
    st.lists(st.tuples(st.sampled_from(["state", "code", "iss", "error", "x"]), texts), max_size=4).map(
        lambda pairs: _encoded(pairs)
    ),
    st.lists(st.sampled_from(PIECES), max_size=12).map("".join),
)

schema: Any = schemathesis.openapi.from_dict(yaml.safe_load(DESCRIBED.read_text()))
for_each_operation: Callable[[Any], Any] = schema.parametrize()
_check: Callable[[str], Any] = schemathesis.checks.CHECKS.get_one


def assert_safe(url: str, status: int, headers: Any, text: str) -> None:
    """What holds for every answer of a page: no failure, all headers, nobody else's address."""
    assert status < 500, text
    assert headers["x-content-type-options"] == "nosniff"
    if status == 200 and urlsplit(url).path == STYLESHEET:
        return
    for name, value in HEADERS.items():
        assert headers[name] == value, f"{status} {url}: {name}"
    assert headers["content-security-policy"].startswith(POLICY)
    assert "unsafe" not in headers["content-security-policy"]
    location = headers.get("location")
    if location is not None:
        own = "{0.scheme}://{0.netloc}".format(urlsplit(url))
        assert location.startswith((own, ISSUER, PROVIDER_ORIGIN)), location
    assert "<script" not in text.lower()
    assert "Traceback" not in text


@pytest.fixture(scope="module")
def served() -> Iterator[str]:
    """The pages over HTTP, on a free port of this machine: their URL."""
    listener = listen(0)
    world = World(url_of(listener))

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await world.app(scope, receive, send)

    with on_thread(lambda: serve_on(listener, app, name="pages"), name="pages"):
        yield url_of(listener)


def test_every_route_is_described() -> None:
    """A page that the description forgets would not be tried."""
    assert {path.replace(":path}", "}") for path in ROUTES} == set(schema.raw_schema["paths"])


@for_each_operation
@tries(8)
def test_no_request_that_the_description_allows_fails(served: str, case: Any) -> None:
    """And none that it does not allow: schemathesis makes both."""
    with no_hang():
        response = case.call(base_url=served, allow_redirects=False, timeout=10)
    names = ("not_a_server_error", "content_type_conformance", "status_code_conformance")
    case.validate_response(response, checks=[_check(name) for name in names])
    headers = {name: ", ".join(values) for name, values in response.headers.items()}
    assert_safe(response.request.url, response.status_code, headers, response.text)


@tries(80)
@given(data=st.data())
def test_no_query_cookie_or_form_makes_a_page_fail(data: st.DataObject) -> None:
    """Alice's browser, with whatever a page of somebody else's could make it send, and what she could type."""
    # A new one for each try: what was declined before must not matter.
    world = World(instances=1)
    alice = world.browser("alice")
    link = world.link()
    token = alice.get(link).text.partition('name="csrf_token" value="')[2].partition('"')[0]
    method, path = data.draw(st.sampled_from(REQUESTS))
    path = path.format(link=link)
    if data.draw(st.integers(0, 4)) == 0:
        method = data.draw(st.sampled_from(["GET", "POST", "HEAD", "PUT", "PROPFIND"]))
        path = quote(data.draw(spoiled_text(path)).encode("utf-8", "surrogatepass"), safe="/%")
        # A relative or a network path would be another request than this one.
        path = "/" + path.lstrip("/")
    query = data.draw(queries).replace("#", "%23")
    headers = {"sec-fetch-site": "same-origin", "content-type": "application/x-www-form-urlencoded"}
    form = b""
    if method == "POST":
        csrf_token = data.draw(st.one_of(st.just(token), spoiled_text(token), texts))
        form = _encoded([("csrf_token", csrf_token), ("value", data.draw(texts))]).encode()
        form = data.draw(st.one_of(st.just(form), st.binary(max_size=100), st.just(form * 2), queries.map(str.encode)))
    if data.draw(st.integers(0, 3)) == 0:
        headers["cookie"] = data.draw(header_values)
    sent = [(name.encode(), value.encode("latin-1")) for name, value in headers.items()]
    with no_hang():
        response = alice.http.request(method, f"{path}?{query}", content=form, headers=sent)
    if response.headers.get("content-type") == "application/json":
        # No page of ours: the endpoint's own answer.
        assert response.status_code == 404
        return
    assert_safe(str(response.url), response.status_code, response.headers, response.text)


def _encoded(pairs: list[tuple[str, str]]) -> str:
    return urlencode([(name, value.encode("utf-8", "surrogatepass")) for name, value in pairs])


def test_a_page_that_lacks_a_header_is_noticed() -> None:
    """What the checks above are compared with."""
    response: httpx2.Response = World().browser().get("/connect/done")
    bare = {name: value for name, value in response.headers.items() if name != "referrer-policy"}
    with pytest.raises(KeyError):
        assert_safe(str(response.url), response.status_code, bare, response.text)
