"""The doctor outside of an endpoint: nothing to say about a good one, and each planted fault found by its name."""

import json
import time
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from app.http import HttpRequest, HttpResponse
from infra.doctor.__main__ import VARIABLE, findings
from infra.doctor.finding import Level
from infra.doctor.http import Http
from tests.clients.raw import mint
from tests.conftest import RunningStack
from tests.infra.doctor.deployment import Deployment

SUBJECTS = {
    *("endpoint", "endpoint clock", "challenge", "trailing slash", "GET", "Origin", "metadata"),
    *("sign-in", "cookies", "page headers"),
    *("issuer", "issuer clock", "issuer PKCE", "issuer registration", "issuer keys"),
}


def test_the_local_stack_is_well_and_calls_work(stack: RunningStack) -> None:
    """`make doctor` beside `make run`."""
    token = mint(stack.stack, "alice")
    found = list(findings(["--url", stack.mcp_url, "--token"], {VARIABLE: token}, Http()))
    assert [each for each in found if each.level is not Level.OK] == []
    assert {each.subject for each in found} == SUBJECTS | {"server/discover", "tools/list"}
    assert token not in "".join(map(str, found))


def test_a_good_endpoint_has_nothing_wrong(deployment: Deployment) -> None:
    """The planted faults below are the only ones."""
    assert deployment.wrong() == []


def with_headers(response: HttpResponse, changes: Mapping[str, str | None]) -> HttpResponse:
    headers = {**response.headers, **changes}
    return response._replace(headers={name: value for name, value in headers.items() if value is not None})


def with_document(response: HttpResponse, **changes: object) -> HttpResponse:
    return response._replace(body=json.dumps({**json.loads(response.body), **changes}).encode())


def renamed_challenge(request: HttpRequest, response: HttpResponse) -> HttpResponse:
    """API Gateway without the responseParameters of template.yaml."""
    challenge = response.headers.get("www-authenticate")
    if challenge is None:
        return response
    return with_headers(response, {"www-authenticate": None, "x-amzn-remapped-www-authenticate": challenge})


def dropped_challenge(request: HttpRequest, response: HttpResponse) -> HttpResponse:
    return with_headers(response, {"www-authenticate": None, "x-mcp-challenge": None})


def foreign_challenge(request: HttpRequest, response: HttpResponse) -> HttpResponse:
    """A JWT authorizer before the function."""
    return with_headers(response, {"www-authenticate": "Bearer"}) if response.status == 401 else response


def challenge_with_error(request: HttpRequest, response: HttpResponse) -> HttpResponse:
    challenge = response.headers.get("www-authenticate", "").replace("Bearer ", 'Bearer error="invalid_token", ')
    return with_headers(response, {"www-authenticate": challenge}) if challenge else response


def challenge_to_nowhere(request: HttpRequest, response: HttpResponse) -> HttpResponse:
    challenge = response.headers.get("www-authenticate", "").replace("/.well-known/", "/elsewhere/")
    return with_headers(response, {"www-authenticate": challenge}) if challenge else response


def redirecting(request: HttpRequest, response: HttpResponse) -> HttpResponse:
    """A CDN that sends everybody to www."""
    if request.path in ("/mcp", "/mcp/") and request.method == "POST" and "origin" not in request.headers:
        return HttpResponse(308, {"location": "https://www.example.com/mcp"})
    return response


def redirecting_slash(request: HttpRequest, response: HttpResponse) -> HttpResponse:
    return HttpResponse(307, {"location": "/mcp"}) if request.path == "/mcp/" else response


def missing_slash(request: HttpRequest, response: HttpResponse) -> HttpResponse:
    return HttpResponse(404) if request.path == "/mcp/" else response


def open_to_all(request: HttpRequest, response: HttpResponse) -> HttpResponse:
    return HttpResponse(200, {}, b"{}") if response.status == 401 else response


def get_is_a_page(request: HttpRequest, response: HttpResponse) -> HttpResponse:
    return HttpResponse(200, {}, b"Hello") if (request.method, request.path) == ("GET", "/mcp") else response


def any_origin(request: HttpRequest, response: HttpResponse) -> HttpResponse:
    return HttpResponse(401) if "origin" in request.headers else response


def gateway_cors(request: HttpRequest, response: HttpResponse) -> HttpResponse:
    return with_headers(response, {"access-control-allow-origin": "*"})


def other_resource(request: HttpRequest, response: HttpResponse) -> HttpResponse:
    """A resource that differs in a byte, as after a change of the domain."""
    if "oauth-protected-resource" not in request.path:
        return response
    return with_document(response, resource=json.loads(response.body)["resource"] + "/")


def no_servers(request: HttpRequest, response: HttpResponse) -> HttpResponse:
    is_root = request.path == "/.well-known/oauth-protected-resource"
    return with_document(response, authorization_servers=[]) if is_root else response


def metadata_behind_a_login(request: HttpRequest, response: HttpResponse) -> HttpResponse:
    return HttpResponse(401) if request.path == "/.well-known/oauth-protected-resource" else response


def web_function_down(request: HttpRequest, response: HttpResponse) -> HttpResponse:
    return HttpResponse(503) if request.path == "/connections" else response


def sign_in_elsewhere(request: HttpRequest, response: HttpResponse) -> HttpResponse:
    if request.path != "/connections":
        return response
    # Everything else about the page is right.
    policy = "default-src 'none'; frame-ancestors 'none'"
    return HttpResponse(
        303,
        {
            "location": "https://login.example.com/authorize?redirect_uri=https%3A%2F%2Fold.example.com%2Fauth%2Fcallback",
            "set-cookie": "mcp_login_x=1; Path=/; HttpOnly; SameSite=Lax",
            "content-security-policy": policy,
            "x-content-type-options": "nosniff",
            "referrer-policy": "same-origin",
            "cache-control": "no-store",
        },
    )


@pytest.mark.parametrize(
    ("spoil", "level", "subjects", "words"),
    [
        (renamed_challenge, Level.FAIL, {"challenge"}, "x-amzn-remapped-www-authenticate"),
        (dropped_challenge, Level.FAIL, {"challenge"}, "no WWW-Authenticate"),
        (foreign_challenge, Level.FAIL, {"challenge"}, "resource_metadata"),
        (challenge_with_error, Level.WARN, {"challenge"}, "RFC 6750"),
        (challenge_to_nowhere, Level.FAIL, {"challenge"}, "HTTP 404"),
        (redirecting, Level.FAIL, {"endpoint", "trailing slash"}, "https://www.example.com/mcp"),
        (redirecting_slash, Level.FAIL, {"trailing slash"}, "redirects"),
        (missing_slash, Level.WARN, {"trailing slash"}, "HTTP 404"),
        (get_is_a_page, Level.FAIL, {"GET"}, "HTTP 200"),
        (any_origin, Level.FAIL, {"Origin"}, "evil.example"),
        (gateway_cors, Level.FAIL, {"Origin"}, "Access-Control-Allow-Origin is *"),
        (other_resource, Level.FAIL, {"metadata", "challenge"}, "byte by byte"),
        (no_servers, Level.FAIL, {"metadata"}, "authorization server"),
        (metadata_behind_a_login, Level.FAIL, {"metadata"}, "without a token"),
        (web_function_down, Level.FAIL, {"pages"}, "HTTP 503"),
        (sign_in_elsewhere, Level.FAIL, {"sign-in"}, "old.example.com"),
    ],
    ids=lambda value: value.__name__ if callable(value) else "",
)
def test_a_planted_fault_is_found_and_nothing_else(
    deployment: Deployment,
    spoil: Callable[[HttpRequest, HttpResponse], HttpResponse],
    level: Level,
    subjects: set[str],
    words: str,
) -> None:
    """IDEAS C.2, doctor; RFC 9728, RFC 6750, Streamable HTTP."""
    deployment.spoil = spoil
    wrong = deployment.wrong()
    assert {each.subject for each in wrong} == subjects
    assert {each.level for each in wrong} == {level}
    assert any(words in each.text for each in wrong)
    assert all(each.text.endswith(".") for each in wrong)


def test_an_endpoint_that_lets_everybody_in_is_the_first_thing_said(deployment: Deployment) -> None:
    """No challenge follows from it, as there is none."""
    deployment.spoil = open_to_all
    first = deployment.wrong()[0]
    assert (first.level, first.subject) == (Level.FAIL, "endpoint")
    assert "without a token" in first.text


@pytest.mark.parametrize(
    ("ahead", "level"), [(0, None), (10, Level.WARN), (-10, Level.WARN), (60, Level.FAIL), (-60, Level.FAIL)]
)
def test_a_clock_that_is_wrong_is_found_on_whichever_side(
    deployment: Deployment, ahead: float, level: Level | None
) -> None:
    """SECURITY section 4: a leeway of 30 seconds, and not more."""
    deployment.date = lambda: time.time() + ahead
    wrong = deployment.wrong()
    assert [(each.level, each.subject) for each in wrong] == ([] if level is None else [(level, "endpoint clock")])
    ours = [each.subject for each in deployment.wrong(Http(clock=lambda: time.time() + ahead)) if each.level is level]
    assert "issuer clock" in ours or level is None


@pytest.mark.parametrize(
    "url", ["https://127.0.0.1:1/mcp", "http://127.0.0.1:1/mcp", "http://mcp.example.com/mcp", "x"]
)
def test_an_endpoint_that_cannot_be_asked_is_one_failure(url: str) -> None:
    """Nothing else can be said about it."""
    (found,) = findings(["--url", url], {}, Http())
    assert (found.level, found.subject) == (Level.FAIL, "endpoint")


@pytest.mark.parametrize(
    ("claims", "words"),
    [
        ({"aud": "https://other.example.com/mcp"}, "resource="),
        ({"exp": 1_000_000_000, "iat": 999_999_000}, "expired"),
        ({"client_id": None}, "client_id or azp"),
        ({"iss": "https://other.example.com"}, "MCP_ISSUER"),
    ],
)
def test_a_token_that_is_refused_is_explained_and_not_printed(
    deployment: Deployment, claims: dict[str, Any], words: str
) -> None:
    """CASES: most first calls fail over the audience."""
    token = deployment.issuer.mint("alice", headers=None, **{"aud": deployment.url, **claims})
    found = list(findings(["--url", deployment.url, "--token"], {VARIABLE: token}, Http()))
    assert (found[-1].level, found[-1].subject) == (Level.FAIL, "server/discover")
    assert words in found[-1].text
    assert token.rpartition(".")[0] not in "".join(map(str, found))


def test_a_token_is_never_an_argument(deployment: Deployment, capsys: pytest.CaptureFixture[str]) -> None:
    """CWE-214: arguments are seen by every user of a machine."""
    with pytest.raises(SystemExit):
        list(findings(["--url", deployment.url, "--token", "secret"], {}, Http()))
    found = list(findings(["--url", deployment.url, "--token"], {}, Http()))
    assert VARIABLE in found[-1].text
    assert found[-1].level is Level.FAIL


def test_what_another_server_wrote_cannot_write_on_the_terminal(deployment: Deployment) -> None:
    """CWE-150: an escape sequence in a document would move the cursor over what was found."""
    deployment.spoil = lambda request, response: (
        with_document(response, resource="\x1b[2J\nok    metadata") if "well-known" in request.path else response
    )
    for each in deployment.wrong():
        assert str(each).isprintable()
