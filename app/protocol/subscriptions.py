"""subscriptions/listen on functions: an acknowledgement and a graceful end, in one body.

A function answers once and holds no stream open, and its lists change by deployment only. So no notification
type is honoured, none is declared, and the client is told both at once (basic/patterns/subscriptions).
"""

from typing import Final

from app.protocol import messages
from app.protocol.jsonrpc import ErrorCode, JSONRPCError, RequestId
from app.strict_json import JsonObject

META_SUBSCRIPTION_ID: Final = "io.modelcontextprotocol/subscriptionId"

_FILTER: Final = ("toolsListChanged", "promptsListChanged", "resourcesListChanged")


def listen(request_id: RequestId, params: JsonObject) -> tuple[JsonObject, JsonObject]:
    """The acknowledgement, to be sent first, and the result. Raises JSONRPCError (-32602) for a bad filter."""
    wanted = messages.member(params, "notifications", dict, "an object")
    uris = wanted.get("resourceSubscriptions", [])
    if not all(isinstance(wanted.get(name, False), bool) for name in _FILTER) or not (
        isinstance(uris, list) and all(isinstance(uri, str) for uri in uris)
    ):
        raise JSONRPCError(
            ErrorCode.INVALID_PARAMS,
            f'"notifications" takes {", ".join(_FILTER)} as booleans and resourceSubscriptions as a list of URIs',
        )
    subscription = {META_SUBSCRIPTION_ID: request_id}
    acknowledgement: JsonObject = {
        "jsonrpc": "2.0",
        "method": "notifications/subscriptions/acknowledged",
        "params": {messages.META: subscription, "notifications": {}},
    }
    return acknowledgement, messages.complete({messages.META: subscription})
