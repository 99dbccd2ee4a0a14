"""Tools that answer at once: every kind of content, progress and log notifications, schemas and headers."""

from typing import Annotated

from app.toolkit import (
    AudioContent,
    Context,
    EmbeddedResource,
    Header,
    ImageContent,
    TextContent,
    TextResourceContents,
    tool,
)
from tests.conformance.everything.samples import PNG, WAV


@tool(read_only=True)
def test_simple_text() -> str:
    """Return a text."""
    return "This is a simple text response for testing."


@tool(read_only=True)
def test_image_content() -> ImageContent:
    """Return an image."""
    return ImageContent(PNG, "image/png")


@tool(read_only=True)
def test_audio_content() -> AudioContent:
    """Return a sound."""
    return AudioContent(WAV, "audio/wav")


@tool(read_only=True)
def test_embedded_resource() -> EmbeddedResource:
    """Return an embedded resource."""
    contents = TextResourceContents(
        "test://embedded-resource", "This is an embedded resource content.", mime_type="text/plain"
    )
    return EmbeddedResource(contents)


@tool(read_only=True)
def test_multiple_content_types() -> list[TextContent | ImageContent | EmbeddedResource]:
    """Return a text, an image and a resource."""
    contents = TextResourceContents(
        "test://mixed-content-resource", '{"test":"data","value":123}', mime_type="application/json"
    )
    return [TextContent("Multiple content types test:"), ImageContent(PNG, "image/png"), EmbeddedResource(contents)]


@tool(read_only=True)
def test_tool_with_progress(ctx: Context) -> str:
    """Report progress three times."""
    for step in (0, 50, 100):
        ctx.progress(step, 100, f"Completed step {step} of 100")
    return "Progress reported."


@tool(read_only=True)
def test_tool_with_logging(ctx: Context) -> str:
    """Send three log messages."""
    for message in ("Tool execution started", "Tool processing data", "Tool execution completed"):
        ctx.log("info", message)
    return "Tool with logging executed successfully"


@tool(read_only=True)
def test_logging_tool(ctx: Context) -> str:
    """Send a log message, which only a request with a log level gets."""
    ctx.log("error", "Nobody asked for this")
    return "Logged."


@tool(read_only=True)
def test_error_handling(ctx: Context) -> str:
    """Fail."""
    ctx.fail("This tool intentionally returns an error for testing")


@tool(read_only=True)
def test_x_mcp_header(region: Annotated[str, Header("Region")]) -> str:
    """Return an argument that a header repeats."""
    return f"The region is {region}."


@tool(
    read_only=True,
    input_schema={
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {
            "address": {
                "$anchor": "addressDef",
                "type": "object",
                "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
            }
        },
        "properties": {
            "name": {"type": "string"},
            "address": {"$ref": "#/$defs/address"},
            "contactMethod": {"type": "string", "enum": ["phone", "email"]},
            "phone": {"type": "string"},
            "email": {"type": "string"},
        },
        "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
        "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
        "then": {"required": ["phone"]},
        "else": {"required": ["email"]},
        "additionalProperties": False,
    },
)
def json_schema_2020_12_tool(ctx: Context) -> str:
    """Take arguments by a schema that no signature could say."""
    return f"Arguments: {', '.join(sorted(ctx.arguments))}."


PLAIN = (
    test_simple_text,
    test_image_content,
    test_audio_content,
    test_embedded_resource,
    test_multiple_content_types,
    test_tool_with_progress,
    test_tool_with_logging,
    test_logging_tool,
    test_error_handling,
    test_x_mcp_header,
    json_schema_2020_12_tool,
)
