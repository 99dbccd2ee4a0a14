"""The revisions before 2026-07-28 on the same endpoint: which requests are theirs, and what they get.

What a client declared in `initialize` is needed later, on any instance: it travels, sealed, as the Mcp-Session-Id
that the client repeats. One that does not open is no error: nothing was declared.
"""

import hashlib
from collections.abc import Mapping
from enum import IntEnum
from typing import Final

from app.errors import SealRefused, Unavailable
from app.principal import Principal
from app.protocol import messages
from app.protocol.jsonrpc import ErrorCode, JSONRPCError, Request
from app.protocol.messages import RequestMeta
from app.sealing import Purpose, Seal, SealingKeys
from app.strict_json import JsonObject

INITIALIZE: Final = "initialize"
PING: Final = "ping"
SET_LEVEL: Final = "logging/setLevel"

VERSIONS: Final = ("2025-11-25", "2025-06-18", "2025-03-26")
URL_MODE_VERSION: Final = "2025-11-25"
"""The one revision with URL mode and its error -32042."""

SESSION_HEADER: Final = "mcp-session-id"
LOG_LEVEL: Final = "info"
"""What is sent without a session that could remember logging/setLevel."""

_WITHOUT_HEADER: Final = "2025-03-26"
"""What a server assumes where the header is missing (2025-11-25, basic/transports, Protocol Version Header)."""
_MODERN_ONLY: Final = ("resultType", "ttlMs", "cacheScope")


class LegacyErrorCode(IntEnum):
    """Codes that 2026-07-28 must not emit, and clients of these revisions know."""

    RESOURCE_NOT_FOUND = -32002
    URL_ELICITATION_REQUIRED = -32042


def is_legacy(request: Request, headers: Mapping[str, str]) -> bool:
    """Whether a request belongs to an earlier revision: the body decides, then the header."""
    meta = request.params.get(messages.META)
    if isinstance(meta, dict) and messages.META_PROTOCOL_VERSION in meta:
        return False
    version = headers.get("mcp-protocol-version")
    return request.method == INITIALIZE or version is None or version.strip() in VERSIONS


class LegacyClients:
    """What clients of earlier revisions declared, as a token that they carry."""

    __slots__ = ("_audience", "_seal")

    def __init__(self, keyring: SealingKeys, *, audience: str) -> None:
        self._seal = Seal(keyring, Purpose.LEGACY_CLIENT)
        self._audience = audience

    def session_id(self, request: Request, principal: Principal) -> str | None:
        """The Mcp-Session-Id for the client of an `initialize` request, with what it declared."""
        match request.params:
            case {"capabilities": {"elicitation": {"url": _}}}:
                modes = ["url"]
            case _:
                modes = []
        try:
            return self._seal.seal({"v": 1, "e": modes}, bound_to=self._bound_to(principal))
        except Unavailable:  # links come as text then
            return None

    def meta(self, request: Request, headers: Mapping[str, str], principal: Principal) -> RequestMeta:
        """Version and capabilities of a request, from its headers."""
        version = headers.get("mcp-protocol-version", _WITHOUT_HEADER).strip()
        capabilities: JsonObject = {}
        token = headers.get(SESSION_HEADER)
        if token is not None:
            try:
                claims = self._seal.open(token, bound_to=self._bound_to(principal))
            except (SealRefused, Unavailable):
                claims = {}
            if claims.get("v") == 1 and version == URL_MODE_VERSION:
                capabilities = {"elicitation": {mode: {} for mode in claims["e"]}}
        return RequestMeta(version, capabilities, legacy=True)

    def _bound_to(self, principal: Principal) -> tuple[bytes, ...]:
        return self._audience.encode(), *principal.fields()


def initialize(
    request: Request, *, server_info: JsonObject, capabilities: JsonObject, instructions: str | None
) -> JsonObject:
    """The InitializeResult: the client's version if we speak it, else our latest of that era."""
    wanted = request.params.get("protocolVersion")
    result: JsonObject = {
        "protocolVersion": wanted if wanted in VERSIONS else VERSIONS[0],
        "capabilities": capabilities,
        "serverInfo": server_info,
    }
    return result | ({"instructions": instructions} if instructions else {})


def set_level(params: JsonObject, levels: tuple[str, ...]) -> JsonObject:
    """The answer to logging/setLevel: checked and not remembered. Raises JSONRPCError (-32602)."""
    if params.get("level") not in levels:
        raise JSONRPCError(ErrorCode.INVALID_PARAMS, f'"level" must be one of {", ".join(levels)}')
    return {}


def translated(result: JsonObject, version: str) -> JsonObject:
    """A result without what a revision does not know. Output schemas were objects, and structured content with them."""
    older = {name: value for name, value in result.items() if name not in _MODERN_ONLY}
    if version == _WITHOUT_HEADER and "content" in older:
        older["content"] = [_without_link(block) for block in older["content"]]
    if version == _WITHOUT_HEADER and "messages" in older:
        older["messages"] = [{**each, "content": _without_link(each["content"])} for each in older["messages"]]
    if not isinstance(older.get("structuredContent", {}), dict):
        del older["structuredContent"]
    if "tools" in older:
        older["tools"] = [_with_object_output(tool) for tool in older["tools"]]
    return older


def _without_link(block: JsonObject) -> JsonObject:
    """Links to resources are content since 2025-06-18."""
    return messages.text_content(f"{block['name']}: {block['uri']}") if block["type"] == "resource_link" else block


def _with_object_output(tool: JsonObject) -> JsonObject:
    if tool.get("outputSchema", {"type": "object"}).get("type") == "object":
        return tool
    return {name: value for name, value in tool.items() if name != "outputSchema"}


def url_elicitation_required(questions: Mapping[str, JsonObject]) -> JSONRPCError:
    """-32042 with every link that has to be opened first (2025-11-25, client/elicitation)."""
    elicitations = [
        {
            "mode": "url",
            "elicitationId": hashlib.sha256(each["params"]["url"].encode()).hexdigest()[:32],
            "url": each["params"]["url"],
            "message": each["params"]["message"],
        }
        for each in questions.values()
    ]
    return JSONRPCError(
        LegacyErrorCode.URL_ELICITATION_REQUIRED,
        "The user has to open a link before this request can go on: see data.elicitations, then send it again",
        {"elicitations": elicitations},
    )
