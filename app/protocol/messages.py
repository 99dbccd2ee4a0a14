"""The names, request metadata and result shapes of MCP 2026-07-28, exactly as the schema has them."""

import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from app.protocol.jsonrpc import ErrorCode, JSONRPCError
from app.strict_json import JsonObject

PROTOCOL_VERSION: Final = "2026-07-28"
SUPPORTED_VERSIONS: Final = (PROTOCOL_VERSION,)

META: Final = "_meta"
META_PROTOCOL_VERSION: Final = "io.modelcontextprotocol/protocolVersion"
META_CLIENT_INFO: Final = "io.modelcontextprotocol/clientInfo"
META_CLIENT_CAPABILITIES: Final = "io.modelcontextprotocol/clientCapabilities"
META_SERVER_INFO: Final = "io.modelcontextprotocol/serverInfo"

DISCOVER: Final = "server/discover"
TOOLS_LIST: Final = "tools/list"
TOOLS_CALL: Final = "tools/call"
PROMPTS_LIST: Final = "prompts/list"
PROMPTS_GET: Final = "prompts/get"
RESOURCES_LIST: Final = "resources/list"
RESOURCES_TEMPLATES_LIST: Final = "resources/templates/list"
RESOURCES_READ: Final = "resources/read"
COMPLETE: Final = "completion/complete"
LISTEN: Final = "subscriptions/listen"

_TRACEPARENT: Final = re.compile(r"00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}\Z")
_VISIBLE: Final = re.compile(r"[\x20-\x7e]{1,512}\Z")

NAMED_BY: Final[Mapping[str, str]] = {TOOLS_CALL: "name", PROMPTS_GET: "name", RESOURCES_READ: "uri"}
"""The parameter that `Mcp-Name` repeats, for the three requests that may take several rounds."""


class RequestMeta(NamedTuple):
    """The per-request protocol fields in `params._meta` (basic/index, `_meta`).

    Capabilities are read from here and nowhere else: an earlier request says nothing about this one.
    """

    protocol_version: str
    client_capabilities: JsonObject
    legacy: bool = False
    """Whether the request is of a revision before 2026-07-28, which negotiated in `initialize`."""

    @classmethod
    def read(cls, params: JsonObject) -> "RequestMeta":
        """Read the required fields. Raises JSONRPCError (-32602) naming the one that is missing."""
        meta = params.get(META)
        if not isinstance(meta, dict):
            raise JSONRPCError(ErrorCode.INVALID_PARAMS, _missing(META_PROTOCOL_VERSION, META_CLIENT_CAPABILITIES))
        version = meta.get(META_PROTOCOL_VERSION)
        if not isinstance(version, str):
            raise JSONRPCError(ErrorCode.INVALID_PARAMS, _missing(META_PROTOCOL_VERSION))
        capabilities = meta.get(META_CLIENT_CAPABILITIES)
        if not isinstance(capabilities, dict):
            raise JSONRPCError(ErrorCode.INVALID_PARAMS, _missing(META_CLIENT_CAPABILITIES))
        return cls(version, capabilities)


def _missing(*fields: str) -> str:
    names = " and ".join(f'"{field}"' for field in fields)
    return f"Every request carries params._meta with {names} (supported versions: {', '.join(SUPPORTED_VERSIONS)})"


def trace_context(meta: object) -> dict[str, str]:
    """The W3C trace context of a request's `_meta`, where it is well-formed (basic/index, OpenTelemetry)."""
    parent = meta.get("traceparent") if isinstance(meta, dict) else None
    if not isinstance(meta, dict) or not isinstance(parent, str) or not _TRACEPARENT.match(parent):
        return {}
    rest = {name: meta[name] for name in ("tracestate", "baggage") if _is_short_text(meta.get(name))}
    return {"traceparent": parent, **rest}


def _is_short_text(value: object) -> bool:
    return isinstance(value, str) and _VISIBLE.match(value) is not None


def missing_capability(method: str, params: JsonObject, capabilities: JsonObject) -> JsonObject | None:
    """The client capability that an input request needs and the client did not declare, else None.

    `{"elicitation": {}}` declares form mode only (client/elicitation, Capabilities).
    """
    if method == "elicitation/create":
        mode = params.get("mode", "form")
        declared = capabilities.get("elicitation")
        if isinstance(declared, dict) and (mode in declared or (mode == "form" and not declared)):
            return None
        return {"elicitation": {mode: {}}}
    capability = {"sampling/createMessage": "sampling", "roots/list": "roots"}[method]
    return None if isinstance(capabilities.get(capability), dict) else {capability: {}}


def capability_error(missing: JsonObject) -> JSONRPCError:
    """-32021 with `data.requiredCapabilities` (MissingRequiredClientCapabilityError)."""
    return JSONRPCError(
        ErrorCode.MISSING_REQUIRED_CLIENT_CAPABILITY,
        f"The client did not declare what this request needs: {_named(missing)}",
        {"requiredCapabilities": missing},
    )


def _named(capabilities: JsonObject) -> str:
    """As `elicitation (form, url), sampling`."""
    return ", ".join(f"{name} ({', '.join(modes)})" if modes else name for name, modes in capabilities.items())


def version_error(requested: str) -> JSONRPCError:
    """-32022 with the supported versions (UnsupportedProtocolVersionError)."""
    return JSONRPCError(
        ErrorCode.UNSUPPORTED_PROTOCOL_VERSION,
        f"Unsupported protocol version: this server speaks {', '.join(SUPPORTED_VERSIONS)}",
        {"supported": list(SUPPORTED_VERSIONS), "requested": requested},
    )


class Content:
    """The base of what goes into a result as a content block (app/protocol/content.py)."""

    __slots__ = ()

    def to_json(self) -> JsonObject:
        """The block, as the schema has it."""
        raise NotImplementedError


class WholeResult:
    """The base of what is a result by itself."""

    __slots__ = ()

    def to_json(self) -> JsonObject:
        """The members of the result."""
        raise NotImplementedError


def complete(result: JsonObject) -> JsonObject:
    """A finished result."""
    return {"resultType": "complete", **result}


def cacheable(result: JsonObject, *, ttl_ms: int, public: bool = True) -> JsonObject:
    """A finished result that a client may keep; a public one is the same for all (server/utilities/caching)."""
    return {"resultType": "complete", **result, "ttlMs": ttl_ms, "cacheScope": "public" if public else "private"}


def text_content(text: str) -> JsonObject:
    return {"type": "text", "text": text}


def tool_error(text: str) -> JsonObject:
    """A tool execution error: the model reads it and can act on it (server/tools, Error Handling)."""
    return complete({"content": [text_content(text)], "isError": True})


def member(params: JsonObject, name: str, kind: type, what: str) -> Any:
    """A required member of `params`. Raises JSONRPCError (-32602)."""
    value = params.get(name)
    if not isinstance(value, kind):
        raise JSONRPCError(ErrorCode.INVALID_PARAMS, f'The parameter "{name}" must be {what}')
    return value
