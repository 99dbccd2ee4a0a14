"""The only module that a tool imports: `tool`, the Context it gets, and the answers a user can give.

A tool is a function. It runs from the top in every round: a question that has been answered returns its
answer, one that is open ends the invocation with `input_required`, and the client's retry, on any
instance, runs the function again. So what stands before a question runs once in each round: keep effects
after the last one, or in `Context.once`.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from app.protocol.elicitation import Accepted, Answer, Cancelled, Declined, Invalid, Missing
from app.protocol.features import CompletionContext, Features, Prompt, Resource, Tool
from app.toolkit.context import Context, InputRequired, Question
from app.toolkit.definition import tool

if TYPE_CHECKING:
    from app.protocol.content import (
        Annotations,
        AudioContent,
        BlobResourceContents,
        CallToolResult,
        EmbeddedResource,
        Icon,
        ImageContent,
        PromptMessage,
        ResourceLink,
        TextContent,
        TextResourceContents,
    )
    from app.toolkit.header import Header
    from app.toolkit.model_requests import CreateMessage, CreateMessageResult, ListRoots, Root
    from app.toolkit.prompts import prompt
    from app.toolkit.resources import resource

__all__ = [
    "Accepted",
    "Annotations",
    "Answer",
    "AudioContent",
    "BlobResourceContents",
    "CallToolResult",
    "Cancelled",
    "CompletionContext",
    "Context",
    "CreateMessage",
    "CreateMessageResult",
    "Declined",
    "EmbeddedResource",
    "Features",
    "Header",
    "Icon",
    "ImageContent",
    "InputRequired",
    "Invalid",
    "ListRoots",
    "Missing",
    "Prompt",
    "PromptMessage",
    "Question",
    "Resource",
    "ResourceLink",
    "Root",
    "TextContent",
    "TextResourceContents",
    "Tool",
    "prompt",
    "resource",
    "tool",
]

# What not every server uses is imported by its first use: a cold start pays for each module.
_LATER = {
    "Header": "app.toolkit.header",
    "prompt": "app.toolkit.prompts",
    "resource": "app.toolkit.resources",
    **dict.fromkeys(("CreateMessage", "CreateMessageResult", "ListRoots", "Root"), "app.toolkit.model_requests"),
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_LATER.get(name, "app.protocol.content")), name)
