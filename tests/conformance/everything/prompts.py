"""The prompts: plain, with arguments, with content, and one that asks."""

from collections.abc import Iterable
from typing import Annotated

from pydantic import BaseModel, Field

from app.toolkit import (
    Accepted,
    CompletionContext,
    Context,
    EmbeddedResource,
    ImageContent,
    PromptMessage,
    TextResourceContents,
    prompt,
)
from tests.conformance.everything.samples import PNG


class UserContext(BaseModel):
    context: str


def _words(typed: str, context: CompletionContext) -> Iterable[str]:
    return (word for word in ("test", "testing", "tested") if word.startswith(typed))


@prompt
def test_simple_prompt() -> str:
    """A prompt without arguments."""
    return "This is a simple prompt for testing."


@prompt(complete={"arg1": _words})
def test_prompt_with_arguments(
    arg1: Annotated[str, Field(description="First test argument")],
    arg2: Annotated[str, Field(description="Second test argument")],
) -> str:
    """A prompt with two arguments."""
    return f"Prompt with arguments: arg1='{arg1}', arg2='{arg2}'"


@prompt
def test_prompt_with_embedded_resource(
    resourceUri: Annotated[str, Field(description="URI of the resource to embed")],  # noqa: N803 -- the suite's name
) -> list[PromptMessage]:
    """A prompt with a resource in it."""
    contents = TextResourceContents(resourceUri, "Embedded resource content for testing.", mime_type="text/plain")
    return [
        PromptMessage("user", EmbeddedResource(contents)),
        PromptMessage("user", "Please process the embedded resource above."),
    ]


@prompt
def test_prompt_with_image() -> list[PromptMessage]:
    """A prompt with an image in it."""
    return [
        PromptMessage("user", ImageContent(PNG, "image/png")),
        PromptMessage("user", "Please analyze the image above."),
    ]


@prompt
def test_input_required_result_prompt(ctx: Context) -> str:
    """A prompt that asks."""
    match ctx.ask("user_context", "What context should the prompt use?", UserContext):
        case Accepted(answer):
            return f"Prompt with context: {answer.context}"
        case _:
            return ctx.stop("There is no context.")


PROMPTS = (
    test_simple_prompt,
    test_prompt_with_arguments,
    test_prompt_with_embedded_resource,
    test_prompt_with_image,
    test_input_required_result_prompt,
)
