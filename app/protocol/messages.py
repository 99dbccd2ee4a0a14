"""The names, request metadata and result shapes of MCP 2026-07-28, exactly as the schema has them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

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
PROMPTS_GET: Final = "prompts/get"
RESOURCES_READ: Final = "resources/read"

NAMED_BY: Final[Mapping[str, str]] = {TOOLS_CALL: "name", PROMPTS_GET: "name", RESOURCES_READ: "uri"}
"""The parameter that `Mcp-Name` repeats, for the three requests that may take several rounds."""


@dataclass(frozen=True, slots=True)
class RequestMeta:
    """The per-request protocol fields in `params._meta` (basic/index, `_meta`).

    Capabilities are read from here and nowhere else: an earlier request says nothing about this one.
    """

    protocol_version: str
    client_capabilities: JsonObject

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
        "The client did not declare a capability that this request needs: see data.requiredCapabilities",
        {"requiredCapabilities": missing},
    )


def version_error(requested: str) -> JSONRPCError:
    """-32022 with the supported versions (UnsupportedProtocolVersionError)."""
    return JSONRPCError(
        ErrorCode.UNSUPPORTED_PROTOCOL_VERSION,
        f"Unsupported protocol version: this server speaks {', '.join(SUPPORTED_VERSIONS)}",
        {"supported": list(SUPPORTED_VERSIONS), "requested": requested},
    )


def complete(result: JsonObject) -> JsonObject:
    """A finished result."""
    return {"resultType": "complete", **result}


def cacheable(result: JsonObject, *, ttl_ms: int) -> JsonObject:
    """A finished result that is the same for every caller (server/utilities/caching)."""
    return {"resultType": "complete", **result, "ttlMs": ttl_ms, "cacheScope": "public"}


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
