"""The doctor at an authorization server: what makes logging in, or verifying a token, impossible."""

from collections.abc import Callable
from typing import Any

import pytest

from infra.doctor.finding import Level
from infra.doctor.http import Http
from infra.doctor.issuer import check_issuer
from tests.infra.doctor.deployment import Deployment


def wrong(deployment: Deployment, **options: Any) -> list[tuple[str, str, str]]:
    found = check_issuer(Http(), deployment.issuer.issuer, **options)
    return [(each.level.value, each.subject, each.text) for each in found if each.level is not Level.OK]


def no_pkce(deployment: Deployment) -> None:
    deployment.metadata["code_challenge_methods_supported"] = ["plain"]


def no_registration(deployment: Deployment) -> None:
    del deployment.metadata["client_id_metadata_document_supported"]


def no_token_endpoint(deployment: Deployment) -> None:
    del deployment.metadata["token_endpoint"]


def other_issuer(deployment: Deployment) -> None:
    deployment.metadata["issuer"] += "/"


def no_keys_named(deployment: Deployment) -> None:
    del deployment.metadata["jwks_uri"]


def keys_elsewhere(deployment: Deployment) -> None:
    deployment.metadata["jwks_uri"] = "https://keys.example.com/jwks"


def keys(deployment: Deployment) -> dict[str, Any]:
    document = deployment.issuer.documents[f"{deployment.issuer.issuer}/jwks"]
    assert isinstance(document, dict)
    return document


def empty_keys(deployment: Deployment) -> None:
    keys(deployment)["keys"] = []


def encryption_keys(deployment: Deployment) -> None:
    keys(deployment)["keys"][0]["use"] = "enc"


def no_key_document(deployment: Deployment) -> None:
    del deployment.issuer.documents[f"{deployment.issuer.issuer}/jwks"]


def too_many_keys(deployment: Deployment) -> None:
    keys(deployment)["padding"] = "x" * 150_000


@pytest.mark.parametrize(
    ("spoil", "level", "subject", "words"),
    [
        (no_pkce, "fail", "issuer PKCE", "S256"),
        (no_registration, "warn", "issuer registration", "dynamic registration"),
        (no_token_endpoint, "fail", "issuer endpoints", "token_endpoint"),
        (other_issuer, "fail", "issuer", "MCP_ISSUER"),
        (no_keys_named, "fail", "issuer keys", "jwks_uri"),
        (keys_elsewhere, "fail", "issuer keys", "MCP_JWKS_URL"),
        (empty_keys, "fail", "issuer keys", "has 0 keys"),
        (encryption_keys, "fail", "issuer keys", "has 1 keys, and none"),
        (no_key_document, "fail", "issuer keys", "HTTP 404"),
        (too_many_keys, "fail", "issuer keys", "150000"),
    ],
    ids=lambda value: value.__name__ if callable(value) else "",
)
def test_a_planted_fault_is_found_and_nothing_else(
    deployment: Deployment, spoil: Callable[[Deployment], None], level: str, subject: str, words: str
) -> None:
    """RFC 8414, RFC 7517, RFC 7636; MCP basic/authorization."""
    spoil(deployment)
    ((found_level, found_subject, text),) = wrong(deployment)
    assert (found_level, found_subject) == (level, subject)
    assert words in text


def test_configured_keys_need_not_be_on_the_issuers_host(deployment: Deployment) -> None:
    """MCP_JWKS_URL says that this is right."""
    keys_elsewhere(deployment)
    assert wrong(deployment, jwks_url=f"{deployment.issuer.issuer}/jwks") == []


def test_an_issuer_that_is_not_there_is_one_failure() -> None:
    """Each place that was asked is named."""
    (found,) = check_issuer(Http(), "http://127.0.0.1:1/tenant")
    assert found.level is Level.FAIL
    assert found.text.count("http://127.0.0.1:1/") == 4


def test_an_issuer_in_clear_is_not_asked() -> None:
    """Anybody on the way could replace its keys."""
    (found,) = check_issuer(Http(), "http://login.example.com")
    assert (found.level, "https" in found.text) == (Level.FAIL, True)
