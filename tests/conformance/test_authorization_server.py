"""The official conformance suite against the local authorization server, with a person who signs in."""

from collections.abc import Iterator

import httpx2
import pytest

from infra.local.identity import Identity, IdentitySettings, identity_in_thread, sign_in
from infra.local.stack import free_port
from tests.conformance.suite import Run, Suite

RESOURCE = "http://127.0.0.1:9/mcp"
SCENARIOS = ("authorization-code-grant", "authorization-server-metadata-endpoint")


@pytest.fixture(scope="module")
def identity(suite: Suite) -> Iterator[Identity]:
    with identity_in_thread(IdentitySettings(resources=(RESOURCE,))) as running:
        yield running


@pytest.fixture(scope="module")
def run(suite: Suite, identity: Identity, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """One run of both scenarios: the second needs what the first found."""
    port = free_port()
    with httpx2.Client(trust_env=False) as person:
        registration = {
            "client_name": "Conformance suite",
            "redirect_uris": [f"http://127.0.0.1:{port}/callback"],
            "token_endpoint_auth_method": "none",
        }
        client = person.post(f"{identity.url}/register", json=registration).raise_for_status().json()

        def open_in_browser(url: str) -> None:
            person.get(sign_in(url, user="alice"))

        return suite.authorization(
            identity.url,
            *("--client-id", client["client_id"], "--resource", RESOURCE, "-p", str(port)),
            sign_in=open_in_browser,
            output=tmp_path_factory.mktemp("authorization"),
        )


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_a_scenario_for_authorization_servers_passes(run: Run, scenario: str) -> None:
    """RFC 8414, OAuth 2.1 section 4.1, RFC 8707, and client id metadata documents, as MCP asks for them."""
    assert scenario in run.checks, run.output
    assert [check.status for check in run.checks[scenario]] == ["SUCCESS"] * len(run.checks[scenario])
    assert len(run.checks[scenario]) > 0


def test_the_run_has_exactly_these_scenarios_and_ends_well(run: Run) -> None:
    """Without its client id the suite skips the grant, and says that all is well."""
    assert sorted(run.checks) == list(SCENARIOS)
    assert run.exit_code == 0, run.output
