"""Sampling and roots as input requests: what a tool asks the client itself, not its user."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from app.protocol.content import Role
from app.strict_json import JsonObject


@dataclass(frozen=True, slots=True)
class CreateMessage:
    """Asks the client's model for a message. A message given as a string is the user's."""

    messages: Sequence[str | JsonObject]
    max_tokens: int
    system_prompt: str | None = None
    temperature: float | None = None
    stop_sequences: Sequence[str] = ()

    def request(self) -> JsonObject:
        """The `sampling/createMessage` request."""
        params: JsonObject = {
            "messages": [
                {"role": "user", "content": {"type": "text", "text": each}} if isinstance(each, str) else each
                for each in self.messages
            ],
            "maxTokens": self.max_tokens,
        }
        if self.system_prompt is not None:
            params["systemPrompt"] = self.system_prompt
        if self.temperature is not None:
            params["temperature"] = self.temperature
        if self.stop_sequences:
            params["stopSequences"] = list(self.stop_sequences)
        return {"method": "sampling/createMessage", "params": params}


@dataclass(frozen=True, slots=True)
class CreateMessageResult:
    """What the client's model wrote, as the client says."""

    role: Role
    content: list[JsonObject]
    model: str
    stop_reason: str | None

    @classmethod
    def read(cls, response: Any) -> "CreateMessageResult | None":
        """Read a response, or None for what is no CreateMessageResult."""
        match response:
            case {"role": "user" | "assistant" as role, "content": dict() | list() as content, "model": str(model)}:
                blocks = content if isinstance(content, list) else [content]
                if not all(isinstance(each, dict) and isinstance(each.get("type"), str) for each in blocks):
                    return None
                reason = response.get("stopReason")
                return cls(role, blocks, model, reason if isinstance(reason, str) else None)
            case _:
                return None

    @property
    def text(self) -> str:
        """The text of its text blocks."""
        return "\n".join(str(each.get("text", "")) for each in self.content if each["type"] == "text")


@dataclass(frozen=True, slots=True)
class Root:
    """A root that the client offers: `uri` is a file: URI."""

    uri: str
    name: str | None = None


@dataclass(frozen=True, slots=True)
class ListRoots:
    """Asks the client for its roots."""

    def request(self) -> JsonObject:
        """The `roots/list` request."""
        return {"method": "roots/list", "params": {}}

    @staticmethod
    def read(response: Any) -> list[Root] | None:
        """Read a response, or None for what is no ListRootsResult."""
        roots = response.get("roots") if isinstance(response, dict) else None
        if not isinstance(roots, list):
            return None
        found = []
        for each in roots:
            match each:
                case {"uri": str(uri)}:
                    name = each.get("name")
                    found.append(Root(uri, name if isinstance(name, str) else None))
                case _:
                    return None
        return found
