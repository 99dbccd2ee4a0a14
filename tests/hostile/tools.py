"""What the attacked server offers besides the examples: tools whose every effect is one line in a file.

The file outlives the environment that wrote it, and a line is there before the answer is: an effect that nobody was
told of is seen too.
"""

import os
import time
from typing import Annotated

from pydantic import BaseModel, Field

from app.toolkit import Accepted, Context, Header, InputRequired, Question, prompt, tool

JOURNAL = "PROBE_JOURNAL"
SECONDS = "PROBE_SECONDS"
"""How long it takes from an effect to the answer: the time in which a crash leaves everybody in doubt."""


class Sure(BaseModel):
    confirm: bool = Field(description="Tick to go on")


class Name(BaseModel):
    name: str = Field(description="A name", max_length=40)


def act(effect: str) -> None:
    """Write one effect down: a single append, so that environments do not write into each other's lines."""
    descriptor = os.open(os.environ[JOURNAL], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(descriptor, f"{effect}\n".encode())
    finally:
        os.close(descriptor)
    time.sleep(float(os.environ.get(SECONDS) or 0))


@tool(destructive=True, once=True, scopes=["reports:delete", "reports:read"])
def erase(target: str, ctx: Context) -> str:
    """Erase something for good. Asks first, and happens once."""
    match ctx.ask("confirm", f"Erase {target}?", Sure):
        case Accepted(Sure(confirm=True)):
            act(f"erased {target}")
            return f"{target} is erased."
        case _:
            return ctx.stop(f"The user said no. {target} is still there.")


@tool(destructive=False)
def rename(target: str, ctx: Context) -> str:
    """Rename something. Asks how."""
    match ctx.ask("name", f"What shall {target} be called?", Name):
        case Accepted(Name(name=name)):
            act(f"renamed {target} to {name}")
            return f"{target} is called {name}."
        case _:
            return ctx.stop(f"{target} keeps its name.")


@tool(destructive=True, once=True)
def move(target: str, ctx: Context) -> str:
    """Move something. Asks twice, one question after the other."""
    match ctx.ask("confirm", f"Move {target}?", Sure), ctx.ask("name", f"Where to shall {target} go?", Name):
        case Accepted(Sure(confirm=True)), Accepted(Name(name=place)):
            act(f"moved {target} to {place}")
            return f"{target} is at {place}."
        case _:
            return ctx.stop(f"{target} stays where it is.")


@tool(destructive=False)
def count(
    number: int, ctx: Context, region: Annotated[str, Header("Region")] = "", size: Annotated[int, Header("Size")] = 0
) -> str:
    """Answer with the number, whatever it is. Its other arguments have headers."""
    return f"{number} in {region or 'no region'}, size {size}"


@tool(destructive=False)
def never(ctx: Context) -> InputRequired:
    """Ask the next question in every round."""
    asked = ctx.state or 0
    return InputRequired({f"question-{asked}": Question("One more?", Sure)}, state=asked + 1)


@prompt(name="erase")
def erase_prompt(target: str, ctx: Context) -> str:
    """A prompt with the name of a tool."""
    ctx.ask("confirm", f"Erase {target}?", Sure)
    return f"Describe {target}."


PROBES = (erase, rename, move, count, never, erase_prompt)
