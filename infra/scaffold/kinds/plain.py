"""New tool: answers at once, and asks nobody."""

from typing import Annotated

from pydantic import BaseModel, Field

from app.toolkit import tool


class Count(BaseModel):
    words: int
    characters: int


@tool(title="New tool", read_only=True)
def new_tool(text: Annotated[str, Field(description="The text to count")]) -> Count:
    """Say in one sentence what this does: the model chooses it by that."""
    return Count(words=len(text.split()), characters=len(text))
