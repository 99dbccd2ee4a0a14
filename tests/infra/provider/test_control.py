"""The local-only control endpoints: for whoever is not in the provider's process, and for no web page."""

from typing import Any

import httpx2
import pytest

from infra.local.provider import Hub
from tests.infra.provider.hub_client import HubClient


@pytest.fixture
def control(client: HubClient, hub: Hub) -> httpx2.Client:
    client.browser.http.base_url = f"{hub.url}/_control/"
    return client.browser.http


def test_a_fault_can_be_set_and_cleared_from_another_process(client: HubClient, control: httpx2.Client) -> None:
    """As `Hub.misbehave` and `Hub.behave` do."""
    token = client.tokens()["access_token"]
    answer = control.post("faults", json={"kind": "api", "fault": "server_error"})
    statuses = [client.get("user", token).status]
    control.delete("faults")
    statuses.append(client.get("user", token).status)

    assert answer.status_code == 204
    assert statuses == [500, 200]


@pytest.mark.parametrize(
    ("body", "complaint"),
    [
        ({"kind": "api", "fault": "explode"}, "fault"),
        ({"kind": "everything", "fault": "html"}, "kind"),
        ({"kind": "api", "fault": "html", "time": 1}, "time"),
        ({"kind": "api", "fault": "html", "times": 0}, "times"),
        ({"kind": "api", "fault": "wrong_iss"}, "those of authorization are"),
        ({"kind": "api", "fault": "redirect"}, "say where it goes"),
        ([], "body"),
    ],
)
def test_a_fault_that_is_misspelt_is_refused(control: httpx2.Client, body: Any, complaint: str) -> None:
    """A typing error must not make a test pass."""
    response = control.post("faults", json=body)

    assert response.status_code == 400
    assert complaint in response.json()["error"]


@pytest.mark.parametrize("header", [{"Origin": "https://evil.example"}, {"Sec-Fetch-Site": "cross-site"}])
def test_a_web_page_controls_nothing(control: httpx2.Client, header: dict[str, str]) -> None:
    """A page can reach the loopback interface too; its browser adds these headers."""
    responses = [
        control.post("faults", json={"kind": "api", "fault": "html"}, headers=header),
        control.delete("faults", headers=header),
        control.get("record", headers=header),
        control.delete("record", headers=header),
    ]

    assert {response.status_code for response in responses} == {403}


def test_the_record_can_be_read_and_cleared_from_another_process(client: HubClient, control: httpx2.Client) -> None:
    """And reading it leaves no trace in it."""
    client.tokens()
    found = control.get("record").json()
    control.delete("record")

    assert [each["path"] for each in found["arrivals"]][-1] == "/token"
    assert found["foreign_tokens"] == 0
    assert control.get("record").json()["arrivals"] == []
