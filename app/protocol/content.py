"""Content blocks and resource contents, exactly as the schema has them: what tools, prompts and resources return.

Give bytes where the schema has Base64: the encoding is done here.
"""

from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from app.protocol.messages import Content, WholeResult
from app.strict_json import JsonObject

Role: TypeAlias = Literal["user", "assistant"]


@dataclass(frozen=True, slots=True)
class Annotations:
    """Who content is for and how much it matters: `priority` from 0 to 1, `last_modified` as ISO 8601."""

    audience: Sequence[Role] = ()
    priority: float | None = None
    last_modified: str | None = None

    def to_json(self) -> JsonObject:
        return _present(
            {"audience": list(self.audience), "priority": self.priority, "lastModified": self.last_modified}
        )


@dataclass(frozen=True, slots=True)
class Icon:
    """An icon: `src` is an https or data: URI, `sizes` are like "48x48" or "any"."""

    src: str
    mime_type: str | None = None
    sizes: Sequence[str] = ()
    theme: Literal["light", "dark"] | None = None

    def to_json(self) -> JsonObject:
        return _present({"src": self.src, "mimeType": self.mime_type, "sizes": list(self.sizes), "theme": self.theme})


@dataclass(frozen=True, slots=True)
class TextContent(Content):
    """Text. A plain `str` does where neither annotations nor `_meta` are needed."""

    text: str
    annotations: Annotations | None = None
    meta: Mapping[str, Any] | None = None

    def to_json(self) -> JsonObject:
        return _block({"type": "text", "text": self.text}, self.annotations, self.meta)


@dataclass(frozen=True, slots=True)
class ImageContent(Content):
    """An image, such as `image/png`."""

    data: bytes
    mime_type: str
    annotations: Annotations | None = None
    meta: Mapping[str, Any] | None = None

    def to_json(self) -> JsonObject:
        return _block(
            {"type": "image", "data": _base64(self.data), "mimeType": self.mime_type}, self.annotations, self.meta
        )


@dataclass(frozen=True, slots=True)
class AudioContent(Content):
    """Sound, such as `audio/wav`."""

    data: bytes
    mime_type: str
    annotations: Annotations | None = None
    meta: Mapping[str, Any] | None = None

    def to_json(self) -> JsonObject:
        return _block(
            {"type": "audio", "data": _base64(self.data), "mimeType": self.mime_type}, self.annotations, self.meta
        )


@dataclass(frozen=True, slots=True)
class ResourceLink(Content):
    """A resource that the client can read, named but not included. `size` is in bytes."""

    uri: str
    name: str
    title: str | None = None
    description: str | None = None
    mime_type: str | None = None
    size: int | None = None
    icons: Sequence[Icon] = ()
    annotations: Annotations | None = None
    meta: Mapping[str, Any] | None = None

    def to_json(self) -> JsonObject:
        link = {
            "type": "resource_link",
            "uri": self.uri,
            "name": self.name,
            "title": self.title,
            "description": self.description,
            "mimeType": self.mime_type,
            "size": self.size,
            "icons": [icon.to_json() for icon in self.icons],
        }
        return _block(_present(link), self.annotations, self.meta)


@dataclass(frozen=True, slots=True)
class TextResourceContents:
    """The text of a resource."""

    uri: str
    text: str
    mime_type: str | None = None
    meta: Mapping[str, Any] | None = None

    def to_json(self) -> JsonObject:
        return _block(
            _present({"uri": self.uri, "mimeType": self.mime_type, "text": self.text}, keep=("text",)), None, self.meta
        )


@dataclass(frozen=True, slots=True)
class BlobResourceContents:
    """The bytes of a resource."""

    uri: str
    blob: bytes
    mime_type: str | None = None
    meta: Mapping[str, Any] | None = None

    def to_json(self) -> JsonObject:
        contents = {"uri": self.uri, "mimeType": self.mime_type, "blob": _base64(self.blob)}
        return _block(_present(contents, keep=("blob",)), None, self.meta)


@dataclass(frozen=True, slots=True)
class EmbeddedResource(Content):
    """The contents of a resource, included."""

    resource: TextResourceContents | BlobResourceContents
    annotations: Annotations | None = None
    meta: Mapping[str, Any] | None = None

    def to_json(self) -> JsonObject:
        return _block({"type": "resource", "resource": self.resource.to_json()}, self.annotations, self.meta)


ContentBlock: TypeAlias = TextContent | ImageContent | AudioContent | ResourceLink | EmbeddedResource
ResourceContents: TypeAlias = TextResourceContents | BlobResourceContents


@dataclass(frozen=True, slots=True)
class PromptMessage:
    """One message of a prompt."""

    role: Role
    content: ContentBlock | str

    def to_json(self) -> JsonObject:
        return {"role": self.role, "content": block(self.content)}


@dataclass(frozen=True, slots=True)
class CallToolResult(WholeResult):
    """A tool's result in full. Return it when plain values, models and content blocks do not say enough."""

    content: Sequence[ContentBlock | str] = ()
    structured_content: Any = None
    is_error: bool = False
    meta: Mapping[str, Any] | None = None

    def to_json(self) -> JsonObject:
        result: JsonObject = {"content": [block(each) for each in self.content]}
        if self.structured_content is not None:
            result["structuredContent"] = self.structured_content
        if self.is_error:
            result["isError"] = True
        return _block(result, None, self.meta)


def block(content: ContentBlock | str) -> JsonObject:
    """A content block as JSON; a plain string is text."""
    return {"type": "text", "text": content} if isinstance(content, str) else content.to_json()


def _present(members: JsonObject, *, keep: Sequence[str] = ()) -> JsonObject:
    return {name: value for name, value in members.items() if name in keep or value not in (None, [], "")}


def _block(members: JsonObject, annotations: Annotations | None, meta: Mapping[str, Any] | None) -> JsonObject:
    if annotations is not None:
        members["annotations"] = annotations.to_json()
    if meta is not None:
        members["_meta"] = dict(meta)
    return members


def _base64(data: bytes) -> str:
    return b64encode(data).decode()
