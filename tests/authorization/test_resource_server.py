"""The resource server: challenges to the letter, and the document that leads clients to the issuer."""

import json
import re
from typing import Any
from urllib.parse import urlsplit

import pytest

from app.authorization.access_token import TokenRules
from app.authorization.jwks import Jwks
from app.authorization.resource_server import JwtResourceServer
from app.errors import (
    ConfigurationError,
    InsufficientScope,
    InvalidRequest,
    InvalidToken,
    MissingCredentials,
    RoundtripError,
    Unavailable,
)
from app.http import HttpRequest, HttpResponse
from app.testing import ISSUER, RESOURCE, Clock, Issuer, Server
from app.toolkit import tool

WELL_KNOWN = "/.well-known/oauth-protected-resource"
METADATA = f'resource_metadata="https://mcp.example.com{WELL_KNOWN}/mcp"'


def resource_server(audience: str = RESOURCE, **arguments: Any) -> JwtResourceServer:
    issuer = Issuer(Clock())
    return JwtResourceServer(TokenRules(ISSUER, audience), Jwks(issuer, issuer=ISSUER), **arguments)


def parameters(challenge: str) -> dict[str, str]:
    """The auth-params of a Bearer challenge (RFC 9110 section 11.2). Fails on anything that is not one."""
    assert re.fullmatch(r'Bearer [a-z_]+="[^"\\]*"(, [a-z_]+="[^"\\]*")*', challenge), challenge
    found = re.findall(r'([a-z_]+)="([^"]*)"', challenge)
    assert len(dict(found)) == len(found), "RFC 6750 section 3: no attribute more than once"
    return dict(found)


# Challenges


@pytest.mark.parametrize(
    ("error", "required", "status", "challenge"),
    [
        pytest.param(MissingCredentials("x"), (), 401, f"Bearer {METADATA}", id="no credentials"),
        pytest.param(
            MissingCredentials("x"), ("mcp", "read"), 401, f'Bearer {METADATA}, scope="mcp read"', id="with scopes"
        ),
        pytest.param(InvalidRequest("x"), ("mcp",), 400, f'Bearer error="invalid_request", {METADATA}', id="malformed"),
        pytest.param(InvalidToken("x"), (), 401, f'Bearer error="invalid_token", {METADATA}', id="a bad token"),
        pytest.param(
            InvalidToken("x"),
            ("mcp",),
            401,
            f'Bearer error="invalid_token", {METADATA}, scope="mcp"',
            id="a bad token, with scopes",
        ),
        pytest.param(
            InsufficientScope(["a:b"]),
            (),
            403,
            f'Bearer error="insufficient_scope", {METADATA}, scope="a:b"',
            id="a scope is missing",
        ),
        pytest.param(
            InsufficientScope(["b", "mcp", "a"]),
            ("mcp",),
            403,
            f'Bearer error="insufficient_scope", {METADATA}, scope="mcp b a"',
            id="all scopes that the operation needs, each once",
        ),
    ],
)
def test_a_challenge_is_exact(error: RoundtripError, required: tuple[str, ...], status: int, challenge: str) -> None:
    """RFC 6750 section 3; RFC 9728 section 5.1; MCP basic/authorization, Scope Challenge Handling."""
    response = resource_server(required_scopes=required).challenge(error)
    assert response.status == status
    assert response.headers == {
        "content-type": "application/json",
        "x-content-type-options": "nosniff",
        "www-authenticate": challenge,
        "x-mcp-challenge": challenge,
    }
    said = parameters(challenge).get("error", "unauthorized")
    assert json.loads(response.body) == {"error": said}


def test_an_unavailable_issuer_is_no_challenge() -> None:
    """SECURITY 4, Responses: 503 and Retry-After, since a login could not succeed now."""
    response = resource_server().challenge(Unavailable("HTTP 500", retry_after=17))
    assert (response.status, response.headers["retry-after"]) == (503, "17")
    assert "www-authenticate" not in response.headers
    assert json.loads(response.body) == {"error": "temporarily_unavailable"}


def test_a_challenge_never_says_why() -> None:
    """SECURITY 4, Responses: the reason is for the log."""
    for error in (
        MissingCredentials("sentinel"),
        InvalidRequest("sentinel"),
        InvalidToken("sentinel"),
        Unavailable("sentinel", retry_after=1),
    ):
        response = resource_server().challenge(error)
        assert "sentinel" not in f"{response.headers} {response.body!r}"


def test_only_what_a_challenge_answers_is_turned_into_one() -> None:
    """A programming error must not look like a login."""
    with pytest.raises(TypeError, match="KeyError"):
        resource_server().challenge(KeyError("x"))


# Metadata


def document(response: HttpResponse) -> dict[str, Any]:
    assert response.status == 200
    assert response.headers["content-type"] == "application/json"
    parsed: dict[str, Any] = json.loads(response.body)
    return parsed


def test_the_metadata_document_is_complete() -> None:
    """RFC 9728 section 2; SECURITY 4, Responses: `resource` is byte-equal to the configured URL."""
    described = resource_server(required_scopes=["mcp"], scopes_supported=["b", "mcp", "a"], name="Tickets")
    assert document(described.metadata()) == {
        "resource": RESOURCE,
        "authorization_servers": [ISSUER],
        "bearer_methods_supported": ["header"],
        "scopes_supported": ["mcp", "b", "a"],
        "resource_name": "Tickets",
    }


def test_what_is_not_known_is_left_out_of_the_metadata() -> None:
    """RFC 9728 section 3.2: claims with zero elements are omitted."""
    assert set(document(resource_server().metadata())) == {
        "resource",
        "authorization_servers",
        "bearer_methods_supported",
    }


def test_browsers_and_caches_may_have_the_metadata() -> None:
    """RFC 9728 section 3.1: it is public."""
    headers = resource_server().metadata().headers
    assert headers["access-control-allow-origin"] == "*"
    assert headers["cache-control"] == "public, max-age=300"


@pytest.mark.parametrize(
    ("resource", "metadata_url"),
    [
        ("https://mcp.example.com/mcp", f"https://mcp.example.com{WELL_KNOWN}/mcp"),
        ("https://mcp.example.com:8443/mcp", f"https://mcp.example.com:8443{WELL_KNOWN}/mcp"),
        ("https://example.com/dev/mcp", f"https://example.com{WELL_KNOWN}/dev/mcp"),
        ("https://example.com/v1/team-a/mcp", f"https://example.com{WELL_KNOWN}/v1/team-a/mcp"),
        ("http://127.0.0.1:8000/mcp", f"http://127.0.0.1:8000{WELL_KNOWN}/mcp"),
        ("http://[::1]:8000/mcp", f"http://[::1]:8000{WELL_KNOWN}/mcp"),
    ],
)
def test_the_metadata_is_where_the_challenge_says(resource: str, metadata_url: str) -> None:
    """RFC 9728 section 3.1: the well-known string goes between host and path; CASES 103."""
    described = resource_server(resource)
    challenge = described.challenge(MissingCredentials("x")).headers["www-authenticate"]
    assert parameters(challenge)["resource_metadata"] == metadata_url
    assert described.metadata_paths == (urlsplit(metadata_url).path, WELL_KNOWN)
    assert document(described.metadata())["resource"] == resource


@tool(scopes=["reports:read"])
def show() -> str:
    """Show the reports."""
    return "Nothing."


def served(resource: str, path: str, *, method: str = "GET") -> HttpResponse:
    server = Server([show], instances=1, settings={"MCP_RESOURCE_URL": resource, "MCP_REQUIRED_SCOPES": "mcp"})
    return server.respond(HttpRequest(method, path, {"host": "evil.example"})).http


@pytest.mark.parametrize(
    ("resource", "path"),
    [
        (RESOURCE, WELL_KNOWN),
        (RESOURCE, f"{WELL_KNOWN}/mcp"),
        ("https://example.com/dev/mcp", WELL_KNOWN),
        ("https://example.com/dev/mcp", f"{WELL_KNOWN}/dev/mcp"),
    ],
)
def test_the_metadata_needs_no_token_and_trusts_no_host(resource: str, path: str) -> None:
    """CASES 103; SECURITY 0.7: URLs are derived from configuration, never from Host."""
    response = served(resource, path)
    assert document(response)["resource"] == resource
    assert document(response)["scopes_supported"] == ["mcp", "reports:read"]
    assert b"evil" not in response.body
    assert served(resource, path, method="HEAD").status == 200
    assert served(resource, path, method="POST").status == 405


@pytest.mark.parametrize("path", [f"{WELL_KNOWN}/other", f"{WELL_KNOWN}/mcp/x", WELL_KNOWN + "x", "/.well-known"])
def test_no_other_path_has_the_metadata(path: str) -> None:
    """RFC 9728 section 3.3: a document at another resource's path would be refused by the client."""
    assert served(RESOURCE, path).status == 404


def test_a_client_finds_the_issuer_from_a_refusal_alone() -> None:
    """MCP basic/authorization, Authorization Server Location: challenge, metadata, issuer."""
    server = Server([show], instances=1)
    refused = server.client().request("tools/list", authorization=None)
    assert refused.status == 401
    url = urlsplit(parameters(refused.http.headers["www-authenticate"])["resource_metadata"])
    described = document(server.respond(HttpRequest("GET", url.path, {})).http)
    assert described["authorization_servers"] == [ISSUER]
    accepted = server.client()
    accepted.token = server.issuer.mint(aud=described["resource"], scope=" ".join(described["scopes_supported"]))
    assert accepted.call("show").text == "Nothing."


# Scopes of the whole resource


@pytest.mark.parametrize(
    ("scope", "status"), [("mcp", 200), ("read mcp write", 200), ("", 403), ("mc", 403), ("mcpx", 403), ("MCP", 403)]
)
def test_the_required_scopes_hold_for_every_request(scope: str, status: int) -> None:
    """RFC 6750 section 3.1, insufficient_scope; scopes are case-sensitive (RFC 6749 section 3.3)."""
    server = Server([show], instances=1, settings={"MCP_REQUIRED_SCOPES": "mcp"})
    assert server.client(scope=scope).request("tools/list").status == status


def test_a_scope_challenge_names_all_scopes_of_the_operation() -> None:
    """MCP basic/authorization, Scope Challenge: one new authorization must be enough."""
    server = Server([show], instances=1, settings={"MCP_REQUIRED_SCOPES": "mcp"})
    reply = server.client(scope="mcp").request("tools/call", {"name": "show", "arguments": {}})
    assert reply.status == 403
    assert parameters(reply.http.headers["www-authenticate"])["scope"] == "mcp reports:read"
    assert reply.http.headers["cache-control"] == "no-store"


@pytest.mark.parametrize(
    ("scope", "told"),
    [
        ("offline_access", "for clients to ask for"),
        ('a"b', "no scope may have"),
        ("a b", "no scope may have"),
        ("a\\b", "no scope may have"),
        ("a\nb", "no scope may have"),
        ("größe", "no scope may have"),
        ("", "no scope may have"),
    ],
)
def test_a_scope_that_no_challenge_may_name_is_refused_at_the_start(scope: str, told: str) -> None:
    """RFC 6749 section 3.3; MCP basic/authorization: no offline_access in challenges or metadata."""
    with pytest.raises(ConfigurationError, match=told):
        resource_server(required_scopes=[scope])
    with pytest.raises(ConfigurationError, match=told):
        resource_server(scopes_supported=["a", scope])
