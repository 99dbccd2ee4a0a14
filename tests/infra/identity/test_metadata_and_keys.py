"""What clients and resource servers discover: metadata documents, published keys, rotation; and minting."""

import base64
import json
from typing import Any

import httpx2
import jwt
import pytest
from authlib.oauth2 import rfc8414, rfc9207

from infra.local.identity import OMIT, AuthorizationServer, Identity, IdentitySettings, generate_signing_key
from tests.infra.identity.oauth_client import RESOURCE

NOW = 1_800_000_000


@pytest.fixture
def server() -> AuthorizationServer:
    return AuthorizationServer(IdentitySettings(resources=(RESOURCE,)))


@pytest.mark.parametrize("path", ["oauth-authorization-server", "openid-configuration"])
def test_the_metadata_says_all_that_an_mcp_client_must_verify(
    identity: Identity, http: httpx2.Client, path: str
) -> None:
    """RFC 8414; OIDC Discovery; MCP authorization server discovery and security considerations."""
    document = http.get(f"{identity.url}/.well-known/{path}").json()

    rfc8414.AuthorizationServerMetadata(document).validate(metadata_classes=[rfc9207.AuthorizationServerMetadata])
    assert document["issuer"] == identity.url
    assert document["code_challenge_methods_supported"] == ["S256"]
    assert document["authorization_response_iss_parameter_supported"] is True
    assert document["client_id_metadata_document_supported"] is True
    assert document["token_endpoint_auth_methods_supported"] == ["none", "client_secret_basic", "client_secret_post"]
    assert document["scopes_supported"] == [
        "tickets:read",
        "tickets:close",
        "openid",
        "profile",
        "email",
        "offline_access",
    ]


def test_every_endpoint_in_the_metadata_exists(identity: Identity, http: httpx2.Client) -> None:
    """RFC 8414 §2."""
    document = http.get(f"{identity.url}/.well-known/oauth-authorization-server").json()
    urls = {name: url for name, url in document.items() if name.endswith("_endpoint") or name == "jwks_uri"}

    assert len(urls) == 6
    for url in urls.values():
        assert http.get(url).status_code in (200, 400, 401, 405)


@pytest.mark.parametrize("issuer", ["http://127.0.0.1:9400/", "http://127.0.0.1:9400/tenant", "127.0.0.1:9400", ""])
def test_the_issuer_is_an_origin_without_a_trailing_slash(issuer: str) -> None:
    """RFC 8414 §3.3: clients compare it as a string with the URL they discovered it at."""
    with pytest.raises(ValueError, match="must be an origin"):
        IdentitySettings(resources=(RESOURCE,), issuer=issuer)


def test_the_published_keys_are_public(identity: Identity, http: httpx2.Client) -> None:
    """RFC 7517 §9.2: private key members never leave."""
    (key,) = http.get(f"{identity.url}/jwks").json()["keys"]

    assert key.keys() == {"kty", "crv", "x", "y", "kid", "use", "alg"}
    assert (key["kty"], key["crv"], key["use"], key["alg"]) == ("EC", "P-256", "sig", "ES256")


def test_after_a_rotation_old_tokens_verify_until_their_key_is_withdrawn(server: AuthorizationServer) -> None:
    """OIDC Core §10.1.1: keys stay published for a while after they stopped signing."""
    old = _mint(server)
    retired = server.keys.current.kid
    assert retired is not None
    server.keys.rotate()
    new = _mint(server)

    assert _verify(server, old)["sub"] == _verify(server, new)["sub"] == "alice"
    assert jwt.get_unverified_header(new)["kid"] == server.keys.current.kid != retired

    server.keys.withdraw(retired)
    assert _verify(server, new)
    with pytest.raises(KeyError):
        _verify(server, old)


def test_the_key_that_signs_cannot_be_withdrawn(server: AuthorizationServer) -> None:
    """A set without its signing key would fail every token."""
    assert server.keys.current.kid
    with pytest.raises(ValueError, match="rotate before"):
        server.keys.withdraw(server.keys.current.kid)


def test_a_key_given_by_the_caller_signs() -> None:
    """Two processes that share a key accept each other's tokens."""
    key = generate_signing_key()
    settings = IdentitySettings(resources=(RESOURCE,), signing_keys=(key,))

    assert _verify(AuthorizationServer(settings), _mint(AuthorizationServer(settings)))["sub"] == "alice"


def test_a_minted_token_is_like_an_issued_one(server: AuthorizationServer) -> None:
    """RFC 9068 §2."""
    token = _mint(server)

    assert jwt.get_unverified_header(token) == {"alg": "ES256", "typ": "at+jwt", "kid": server.keys.current.kid}
    claims = _verify(server, token)
    assert claims.pop("jti") != _verify(server, _mint(server))["jti"]
    assert claims == {
        "iss": "http://127.0.0.1:9400",
        "sub": "alice",
        "aud": RESOURCE,
        "client_id": "client-1",
        "scope": "tickets:read",
        "iat": NOW,
        "exp": NOW + 3600,
    }


def test_a_test_can_add_replace_and_omit_claims_and_header_fields(server: AuthorizationServer) -> None:
    """A resource server's tests need every wrong token, correctly signed."""
    token = _mint(
        server,
        client_id=OMIT,
        lifetime=-1,
        aud=["a", "b"],
        iat=None,
        jti=OMIT,
        cnf={"jkt": "x"},
        header={"typ": "JWT", "kid": OMIT, "crit": ["x"], "x": 1, "jku": "https://evil.example"},
    )

    signed, _, signature = token.rpartition(".")
    header, claims = (json.loads(base64.urlsafe_b64decode(part + "==")) for part in signed.split("."))
    assert header == {"alg": "ES256", "typ": "JWT", "crit": ["x"], "x": 1, "jku": "https://evil.example"}
    assert claims == {
        "iss": "http://127.0.0.1:9400",
        "sub": "alice",
        "aud": ["a", "b"],
        "scope": "tickets:read",
        "iat": None,
        "exp": NOW - 1,
        "cnf": {"jkt": "x"},
    }
    es256 = jwt.get_algorithm_by_name("ES256")
    key = es256.prepare_key(jwt.PyJWK(server.keys.jwks()["keys"][0]).key)
    assert es256.verify(signed.encode(), key, base64.urlsafe_b64decode(signature + "=="))


def test_no_secret_is_in_the_representation_of_anything(identity: Identity) -> None:
    """Secrets do not print."""
    shown = repr(identity) + repr(identity.server.settings) + repr(vars(identity.server))

    assert "s3cret" not in shown
    private = identity.server.keys.current.as_dict(private=True)["d"]
    assert str(private) not in shown


def _mint(server: AuthorizationServer, **overrides: Any) -> str:
    arguments = {"client_id": "client-1", "scope": "tickets:read", "resource": RESOURCE, "now": NOW, **overrides}
    return server.mint("alice", **arguments)


def _verify(server: AuthorizationServer, token: str) -> dict[str, Any]:
    keys = {key["kid"]: jwt.PyJWK(key) for key in server.keys.jwks()["keys"]}
    kid = jwt.get_unverified_header(token)["kid"]
    claims: dict[str, Any] = jwt.decode(
        token, keys[kid], algorithms=["ES256"], audience=RESOURCE, options={"verify_exp": False, "verify_iat": False}
    )
    return claims
