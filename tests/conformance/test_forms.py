"""The forms of two 2025 scenarios at 2026-07-28, where the suite looks at no form (SEP-1034, SEP-1330).

The scenarios themselves need a request of the server's own in the middle of a call: see legacy.NOT_STATELESS.
"""

import asyncio
from typing import Any

import httpx2

from tests.clients.raw import RawClient
from tests.conformance.server import ServerUnderTest

OPTIONS = ["option1", "option2", "option3"]
TITLED = [
    {"const": "value1", "title": "First option"},
    {"const": "value2", "title": "Second option"},
    {"const": "value3", "title": "Third option"},
]


def rounds(everything: ServerUnderTest, tool: str, key: str, content: dict[str, Any]) -> tuple[dict[str, Any], str]:
    """The properties of the form that a tool shows, and its text after this answer."""

    async def run() -> tuple[dict[str, Any], str]:
        async with httpx2.AsyncClient(trust_env=False) as http:
            client = RawClient(http, f"{everything.emulator.url}/mcp", everything.proxy.token)
            asked = (await client.call(tool, {})).json()["result"]
            answer = {key: {"action": "accept", "content": content}}
            done = await client.call(tool, {}, inputResponses=answer, requestState=asked["requestState"])
            shown = asked["inputRequests"][key]["params"]["requestedSchema"]
            return shown["properties"], done.json()["result"]["content"][0]["text"]

    return asyncio.run(run())


def test_every_primitive_type_has_its_default(everything: ServerUnderTest) -> None:
    """elicitation-sep1034-defaults."""
    content = {"name": "Jane Smith", "age": 25, "score": 88, "status": "inactive", "verified": False}
    properties, text = rounds(everything, "test_elicitation_sep1034_defaults", "defaults", content)
    assert properties == {
        "name": {"type": "string", "default": "John Doe"},
        "age": {"type": "integer", "default": 30},
        "score": {"type": "number", "default": 95.5},
        "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
        "verified": {"type": "boolean", "default": True},
    }
    assert text.startswith('Elicitation completed: action=accepted, content={"name":"Jane Smith","age":25')


def test_every_kind_of_choice_has_its_schema(everything: ServerUnderTest) -> None:
    """elicitation-sep1330-enums, but for the deprecated `enumNames`."""
    content = {
        "untitledSingle": "option1",
        "titledSingle": "value1",
        "untitledMulti": ["option1", "option2"],
        "titledMulti": ["value1", "value2"],
    }
    properties, text = rounds(everything, "test_elicitation_sep1330_enums", "choices", content)
    assert properties == {
        "untitledSingle": {"type": "string", "enum": OPTIONS},
        "titledSingle": {"type": "string", "oneOf": TITLED},
        "untitledMulti": {"type": "array", "items": {"type": "string", "enum": OPTIONS}},
        "titledMulti": {"type": "array", "items": {"anyOf": TITLED}},
    }
    assert '"titledMulti":["value1","value2"]' in text
