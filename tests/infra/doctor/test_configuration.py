"""The doctor in a function's environment: the settings, what they name, and what has to be registered elsewhere."""

import json
import os
import sys

import pytest

from infra.doctor.__main__ import findings, main
from infra.doctor.finding import Finding, Level
from infra.doctor.http import Http
from tests.adapters.contracts.valkey import Server
from tests.infra.doctor.deployment import Deployment


@pytest.fixture
def environment(deployment: Deployment, single: Server) -> dict[str, str]:
    """A good configuration, with a store and two providers."""
    providers = {"github": {"client_id": "gh"}, "acme": {"preset": "google", "title": "Acme", "client_id": "a"}}
    return {
        **deployment.environment,
        "MCP_REDIS_URL": single.url,
        "MCP_PROVIDERS": json.dumps(providers),
        "MCP_PROVIDER_GITHUB_SECRET": "gh-s3cret",
        "MCP_PROVIDER_ACME_SECRET": "acme-s3cret",
        "MCP_OIDC_CLIENT_ID": "roundtrip-web",
        "MCP_OIDC_CLIENT_SECRET": "oidc-s3cret",
    }


def check(environment: dict[str, str]) -> list[Finding]:
    return list(findings([], environment, Http()))


def wrong(environment: dict[str, str]) -> list[Finding]:
    return [each for each in check(environment) if each.level is not Level.OK]


def test_a_good_configuration_has_nothing_wrong_and_says_what_to_register(
    environment: dict[str, str], deployment: Deployment
) -> None:
    """SECURITY section 3: every redirect URI is registered exactly."""
    found = check(environment)
    assert [each for each in found if each.level is not Level.OK] == []
    base = deployment.url.removesuffix("/mcp")
    uris = [each.text for each in found if each.subject == "redirect URI"]
    for path in ("/auth/callback", "/oauth/callback/github", "/oauth/callback/acme"):
        assert any(f"Register {base}{path} " in text for text in uris)
    assert {"sealing keys", "store permissions", "issuer keys"} <= {each.subject for each in found}


def test_no_secret_is_in_the_report(environment: dict[str, str]) -> None:
    """CWE-532: reports are pasted into tickets."""
    environment |= {"MCP_REDIS_URL": environment["MCP_REDIS_URL"].replace("redis://", "redis://:redis-s3cret@")}
    text = "\n".join(map(str, check(environment)))
    secret_key = environment["MCP_SEALING_KEYS"].partition(":")[2]
    assert "refuses our credentials" in text
    assert "s3cret" not in text
    assert secret_key not in text


def test_every_problem_of_the_settings_is_a_line() -> None:
    """As a function that does not start would say."""
    found = check({})
    assert {each.level for each in found} == {Level.FAIL}
    for name in ("MCP_RESOURCE_URL", "MCP_ISSUER", "MCP_SEALING_KEYS"):
        assert any(name in each.text for each in found), name


def test_problems_of_the_connections_do_not_hide_the_issuer(environment: dict[str, str]) -> None:
    """One run finds all that is wrong."""
    environment |= {"MCP_OIDC_CLIENT_ID": "", "MCP_PROVIDER_ACME_SECRET": "", "MCP_ISSUER": "http://127.0.0.1:1"}
    subjects = [each.subject for each in wrong(environment)]
    assert subjects == ["connections", "connections", "issuer"]


def test_without_a_store_there_is_nothing_to_connect_with(deployment: Deployment) -> None:
    """Forms need no store."""
    assert wrong(deployment.environment) == []


def test_a_store_for_nobody_is_pointed_out(environment: dict[str, str]) -> None:
    """A tool that connects would find no provider."""
    (found,) = wrong({**environment, "MCP_PROVIDERS": ""})
    assert (found.level, found.subject) == (Level.WARN, "providers")


@pytest.mark.parametrize(
    ("changes", "subject"),
    [
        (
            {
                "MCP_SEALING_KEYS": "",
                "MCP_SEALING_SECRET": "roundtrip/ring",
                "MCP_KMS_KEY": "arn:aws:kms:eu-central-1:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab",
                "MCP_SEALING_APP": "roundtrip",
            },
            "sealing keys",
        ),
        ({"MCP_CONNECTIONS_SECRET": "roundtrip/connections"}, "connections"),
    ],
)
def test_a_secret_that_cannot_be_read_is_found(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch, changes: dict[str, str], subject: str
) -> None:
    """A role without the grant, or a subnet without a way to Secrets Manager."""
    for name, value in {
        "AWS_ACCESS_KEY_ID": "AKIDEXAMPLE",
        "AWS_SECRET_ACCESS_KEY": "aws-s3cret",
        "AWS_DEFAULT_REGION": "eu-central-1",
        "AWS_ENDPOINT_URL": "http://127.0.0.1:1",
    }.items():
        monkeypatch.setenv(name, value)
    (found,) = wrong({**deployment.environment, **changes})
    assert (found.level, found.subject) == (Level.FAIL, subject)
    assert "secretsmanager" in found.text


@pytest.mark.parametrize("good", [True, False])
def test_the_exit_code_says_whether_something_fails(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], good: bool
) -> None:
    """For a pipeline: a warning lets a deployment pass, a failure does not."""
    for name in list(os.environ):
        if name.startswith("MCP_"):
            monkeypatch.delenv(name)
    del deployment.metadata["client_id_metadata_document_supported"]
    for name, value in deployment.environment.items() if good else ():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "argv", ["doctor"])
    assert main() == (0 if good else 1)
    lines = capsys.readouterr().out.splitlines()
    assert any(line.startswith("warn  " if good else "fail  ") for line in lines)
