"""subscriptions/listen: acknowledged, honouring nothing, and ended gracefully in one body."""

from typing import Any

import pytest

from tests.protocol.offered import error, offered

SUBSCRIPTION_ID = "io.modelcontextprotocol/subscriptionId"


@pytest.mark.parametrize("wanted", [{}, {"toolsListChanged": True}, {"resourceSubscriptions": ["notes://today"]}])
def test_a_subscription_is_acknowledged_first_and_ended_in_the_same_body(wanted: dict[str, Any]) -> None:
    """basic/patterns/subscriptions, Acknowledgment and Graceful Closure."""
    reply = offered().client().request("subscriptions/listen", {"notifications": wanted})
    assert reply.http.headers["content-type"] == "text/event-stream"
    (acknowledged,) = reply.notifications
    assert acknowledged["method"] == "notifications/subscriptions/acknowledged"
    assert acknowledged["params"]["notifications"] == {}
    assert acknowledged["params"]["_meta"][SUBSCRIPTION_ID] == reply.message["id"]
    assert reply.result["_meta"][SUBSCRIPTION_ID] == reply.message["id"]


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"notifications": []},
        {"notifications": {"toolsListChanged": "yes"}},
        {"notifications": {"resourceSubscriptions": "notes://today"}},
        {"notifications": {"resourceSubscriptions": [5]}},
    ],
)
def test_a_filter_that_is_none_is_an_invalid_parameter(params: dict[str, Any]) -> None:
    """schema, SubscriptionFilter."""
    assert error(offered().client().request("subscriptions/listen", params)) == (400, -32602)
