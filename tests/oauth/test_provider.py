"""The requests that we make to a provider, and how providers are configured."""

import json
from base64 import b64decode
from dataclasses import replace
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from app.errors import ConfigurationError
from app.oauth import pkce
from app.oauth import provider as requests
from app.oauth.provider import Provider
from app.oauth.provider_config import PRESETS, read_providers
from tests.oauth.world import ACME

VERIFIER = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"


def test_the_challenge_is_that_of_the_rfc() -> None:
    """RFC 7636 appendix B."""
    assert pkce.challenge(VERIFIER) == "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"


def authorization_url(provider: Provider, scopes: tuple[str, ...] = ("read",)) -> str:
    return requests.authorization_url(
        provider, redirect_uri="https://us/cb", scopes=scopes, state="s", verifier=VERIFIER
    )


def test_configured_parameters_are_added_and_replace_none_of_ours() -> None:
    """SECURITY section 3, step 6: extra params from config."""
    extra = {
        "access_type": "offline",
        "state": "fixed",
        "redirect_uri": "https://evil",
        "code_challenge_method": "plain",
    }
    url = authorization_url(replace(ACME, authorize_parameters=extra))
    asked = parse_qs(urlsplit(url).query)
    assert asked["access_type"] == ["offline"]
    assert asked["state"] == ["s"]
    assert asked["redirect_uri"] == ["https://us/cb"]
    assert asked["code_challenge_method"] == ["S256"]


def test_an_authorization_endpoint_may_have_a_query_and_keeps_it() -> None:
    """RFC 6749 section 3.1."""
    asked = parse_qs(urlsplit(authorization_url(replace(ACME, authorize_url="https://a.example/x?tenant=t"))).query)
    assert asked["tenant"] == ["t"]
    assert asked["response_type"] == ["code"]


def test_no_scopes_are_no_parameter() -> None:
    """RFC 6749 section 3.3: OPTIONAL, then the provider's default."""
    assert "scope" not in parse_qs(urlsplit(authorization_url(ACME, ())).query)


def test_a_client_authenticates_in_the_header() -> None:
    """RFC 6749 section 2.3.1: both parts are form-encoded first."""
    request = requests.refresh_request(replace(ACME, client_id="a:b", client_secret="p w+%"), "refresh")
    assert "client_secret" not in request.form
    scheme, _, encoded = request.headers["authorization"].partition(" ")
    assert (scheme, b64decode(encoded)) == ("Basic", b"a%3Ab:p%20w%2B%25")


def test_a_client_authenticates_in_the_body_where_the_provider_wants_it() -> None:
    """RFC 6749 section 2.3.1, second paragraph."""
    request = requests.refresh_request(replace(ACME, client_authentication="client_secret_post"), "refresh")
    assert (request.form["client_id"], request.form["client_secret"]) == ("roundtrip", "acme-client-secret")
    assert "authorization" not in request.headers


def test_a_public_client_names_itself() -> None:
    """RFC 6749 section 3.2.1."""
    request = requests.code_request(
        replace(ACME, client_authentication="none"), code="c", redirect_uri="https://us/cb", verifier=VERIFIER
    )
    assert dict(request.form) == {
        "grant_type": "authorization_code",
        "code": "c",
        "redirect_uri": "https://us/cb",
        "code_verifier": VERIFIER,
        "client_id": "roundtrip",
    }


def test_a_provider_without_revocation_gets_no_request() -> None:
    """RFC 7009 is optional."""
    with pytest.raises(ValueError, match="revocation_url"):
        requests.revocation_request(replace(ACME, revocation_url=None), "t", "access_token")


def test_neither_a_provider_nor_a_request_prints_a_secret() -> None:
    """STYLE section 4, 14."""
    request = requests.refresh_request(replace(ACME, client_authentication="client_secret_post"), "the-refresh-token")
    assert "secret" not in repr(ACME).replace("client_secret_", "")
    assert "the-refresh-token" not in repr(request)
    assert "acme-client-secret" not in repr(request)


def read(document: Any, *, local: bool = False, **environment: str) -> dict[str, Provider]:
    return read_providers(json.dumps(document), environment, local=local)


def test_a_preset_needs_a_client_and_its_secret_only() -> None:
    """The contract: presets github, google, local."""
    found = read({"github": {"client_id": "Iv1"}}, MCP_PROVIDER_GITHUB_SECRET="s")["github"]
    assert (found.name, found.title, found.client_id, found.client_secret) == ("github", "GitHub", "Iv1", "s")
    # GitHub sends `iss` with every authorization response: without its issuer every callback would fail.
    assert found.issuer == "https://github.com/login/oauth"
    assert found.authorize_origins == "https://github.com"


def test_google_is_asked_for_a_refresh_token() -> None:
    """Google, OAuth 2.0 for web server applications: access_type=offline."""
    found = read({"google": {"client_id": "g", "client_secret": "s"}})["google"]
    assert dict(found.authorize_parameters) == {"access_type": "offline", "prompt": "consent"}
    assert found.scopes == ("openid", "email")


def test_the_local_provider_is_where_its_issuer_says() -> None:
    """`make run` takes a free port."""
    issuer = "http://127.0.0.1:9999"
    found = read({"local": {"client_id": "l", "issuer": issuer, "client_authentication": "none"}}, local=True)["local"]
    assert (found.authorize_url, found.token_url) == (f"{issuer}/authorize", f"{issuer}/token")
    assert found.iss_required


def test_a_name_of_ones_own_can_use_a_preset_and_change_it() -> None:
    """Two registrations with one provider."""
    found = read(
        {"work-git": {"preset": "github", "title": "Work", "client_id": "w", "scopes": ["repo"]}},
        MCP_PROVIDER_WORK_GIT_SECRET="s",
    )
    assert (found["work-git"].title, found["work-git"].scopes) == ("Work", ("repo",))
    assert found["work-git"].token_url == PRESETS["github"]["token_url"]


def test_no_text_is_no_provider() -> None:
    """URL mode is optional."""
    assert read_providers("", {}, local=False) == {}


OWN = {
    "client_id": "c",
    "client_secret": "s",
    "authorize_url": "https://a.example/authorize",
    "token_url": "https://a.example/token",
}


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"client_id": None}, "client_id must be text"),
        ({"client_id": ""}, "client_id must be text"),
        ({"client_secret": ""}, "set MCP_PROVIDER_ACME_SECRET"),
        ({"client_authentication": "private_key_jwt"}, "client_authentication must be one of"),
        ({"authorize_url": None}, "authorize_url must be an https URL"),
        ({"token_url": "http://a.example/token"}, "token_url must be an https URL"),
        ({"token_url": "https://"}, "token_url must be an https URL"),
        ({"token_url": "https://[/"}, "token_url must be an https URL"),
        ({"authorize_url": "https://a.example/#x"}, "authorize_url must be an https URL"),
        ({"authorize_url": "javascript:alert(1)"}, "authorize_url must be an https URL"),
        ({"revocation_url": "http://127.0.0.1/revoke"}, "revocation_url must be an https URL"),
        ({"issuer": 5}, "issuer must be an https URL"),
        ({"iss_required": True}, "set issuer"),
        ({"iss_required": "yes"}, "iss_required must be true or false"),
        ({"scopes": "read"}, "scopes must be a list"),
        ({"scopes": ["two words"]}, "scopes must be a list"),
        ({"authorize_parameters": {"a": 1}}, "authorize_parameters must map"),
        ({"title": 5}, "title must be text"),
        ({"tokn_url": "https://a.example"}, "no member 'tokn_url'"),
        ({"preset": "gitlab"}, "preset must be one of github, google, local"),
    ],
)
def test_every_mistake_is_named_with_its_remedy(change: dict[str, Any], problem: str) -> None:
    """STYLE section 4, 13."""
    with pytest.raises(ConfigurationError) as refused:
        read({"acme": OWN | change, "fine": OWN})
    assert len(refused.value.problems) == 1
    assert problem in refused.value.problems[0]
    assert "'acme'" in refused.value.problems[0]


def test_all_mistakes_are_named_at_once_and_no_secret_is() -> None:
    """STYLE section 4, 13 and 14."""
    with pytest.raises(ConfigurationError) as refused:
        read({"a": {"client_secret": "the-secret"}, "B b": OWN, "c": 5})
    assert len(refused.value.problems) == 5
    assert "the-secret" not in str(refused.value)


@pytest.mark.parametrize("text", ["{", "[]", '"x"', '{"a":1,"a":2}'])
def test_what_is_no_json_object_is_refused(text: str) -> None:
    """With an example of what is."""
    with pytest.raises(ConfigurationError, match="client_id"):
        read_providers(text, {}, local=False)


def test_the_resource_is_named_in_every_request_of_a_provider_that_has_several() -> None:
    """RFC 8707 section 2: in the authorization request and in both token requests."""
    provider = replace(ACME, resource="https://api.example.com/")
    assert parse_qs(urlsplit(authorization_url(provider)).query)["resource"] == ["https://api.example.com/"]
    exchanged = requests.code_request(provider, code="c", redirect_uri="https://us/cb", verifier=VERIFIER)
    for request in (exchanged, requests.refresh_request(provider, "r")):
        assert request.form["resource"] == "https://api.example.com/"
    assert "resource" not in requests.refresh_request(ACME, "r").form


def test_the_page_may_lead_where_the_provider_sends_people_on_to() -> None:
    """CSP form-action is applied to every redirect after the form, the provider's own ones too."""
    given = {"acme": {"client_id": "c", "client_secret": "s", "authorize_url": "https://id.acme.example/authorize"}}
    given["acme"] |= {"token_url": "https://id.acme.example/token"}
    configured = {"acme": {**given["acme"], "redirect_origins": ["https://sso.example"]}}
    (provider,) = read_providers(json.dumps(configured), {}, local=False).values()
    assert provider.authorize_origins == "https://id.acme.example https://sso.example"
    for wrong in ("sso.example", "https://sso.example/path", "http://sso.example", 5):
        with pytest.raises(ConfigurationError, match="redirect_origins must be a list of origins"):
            read_providers(json.dumps({"acme": {**given["acme"], "redirect_origins": [wrong]}}), {}, local=False)
