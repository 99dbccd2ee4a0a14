"""The resources: a text, a picture, one that changes, and a template."""

import json

from app.toolkit import resource
from tests.conformance.everything.samples import PNG


@resource("test://static-text", name="static-text", mime_type="text/plain", ttl_ms=60_000, public=True)
def static_text() -> str:
    """A text."""
    return "This is the content of the static text resource."


@resource("test://static-binary", name="static-binary", mime_type="image/png")
def static_binary() -> bytes:
    """A picture."""
    return PNG


@resource("test://watched-resource", name="watched-resource", mime_type="text/plain")
def watched() -> str:
    """A text that older clients may want to watch."""
    return "Watched resource content"


@resource("test://template/{id}/data", name="template-data", mime_type="application/json")
def template_data(id: str) -> str:
    """Data for an id."""
    return json.dumps({"id": id, "templateTest": True, "data": f"Data for ID: {id}"})


RESOURCES = (static_text, static_binary, watched, template_data)
