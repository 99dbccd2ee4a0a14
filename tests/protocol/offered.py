"""A server with prompts, resources, mirrored headers and notifications, its every answer judged."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

from app.testing import Client, Reply
from app.toolkit import (
    Accepted,
    BlobResourceContents,
    CompletionContext,
    Context,
    Features,
    Header,
    Icon,
    PromptMessage,
    TextResourceContents,
    prompt,
    resource,
    tool,
)
from tests.protocol.endpoint import JudgedServer, greet


class Tone(BaseModel):
    tone: Literal["formal", "friendly"]


@tool(read_only=True, icons=[Icon("https://example.com/sql.png", "image/png", ["48x48"])])
def execute_sql(
    query: str,
    region: Annotated[str, Header("Region")] = "eu",
    limit: Annotated[int, Header("Limit"), Field(ge=0)] = 10,
    dry_run: Annotated[bool, Header("Dry-Run")] = False,
) -> str:
    """Run a query somewhere."""
    return f"{query} in {region}, {limit}, {dry_run}"


@tool(read_only=True)
def steps(ctx: Context) -> str:
    """Report progress and log on the way."""
    for done in (0, 50, 100):
        ctx.progress(done, total=100, message=f"{done} %")
        ctx.log("debug", {"done": done})
    ctx.log("warning", "nearly too late", logger="steps")
    return "Done."


@tool(read_only=True)
def summarize(text: str, ctx: Context) -> str:
    """Let the client's model write."""
    return ctx.sample("summary", [f"Summarize: {text}"], max_tokens=50, system_prompt="Be brief.").text


@tool(read_only=True)
def workspaces(ctx: Context) -> list[str]:
    """List the client's roots."""
    return [root.uri for root in ctx.roots()]


@prompt
def hello() -> str:
    """Say hello."""
    return "Say hello."


def cities(typed: str, context: CompletionContext) -> list[str]:
    country = context.arguments.get("country", "")
    return [f"{country}{typed}{number}" for number in range(250 if typed == "many" else 2)]


@prompt(title="Plan a trip", complete={"city": cities})
def trip(
    city: Annotated[str, Field(description="Where to")],
    style: Literal["cheap", "chic", "grand"] = "cheap",
    days: int = 3,
) -> list[str | PromptMessage]:
    """Plan a trip."""
    return [f"Plan {days} {style} days in {city}.", PromptMessage("assistant", "With pleasure.")]


@prompt(scopes=["letters:write"])
def letter(to: str, ctx: Context) -> str:
    """Write a letter. Asks for the tone."""
    match ctx.ask("tone", f"Which tone for {to}?", Tone):
        case Accepted(Tone(tone=tone)):
            return f"Write a {tone} letter to {to}."
        case _:
            return ctx.stop("The user chose no tone.")


@prompt
def broken() -> str:
    """Raise, with something secret in the exception."""
    raise RuntimeError("hunter2")


@resource("notes://today", mime_type="text/plain", ttl_ms=60_000, public=True, size=5)
def today() -> str:
    """Today's note."""
    return "Rain."


@resource("notes://logo", mime_type="image/png")
def logo() -> bytes:
    """The logo."""
    return b"\x89PNG"


@resource("notes://by-id/{id}", mime_type="text/plain", complete={"id": lambda typed, context: [f"{typed}1"]})
def note(id: int) -> str | None:
    """A note by its number."""
    return f"Note {id}." if id < 100 else None


@resource("files://{+path}")
def file(path: str) -> list[TextResourceContents | BlobResourceContents]:
    """A file and its signature."""
    return [TextResourceContents(f"files://{path}", path), BlobResourceContents(f"files://{path}.sig", b"\x00\xff")]


@resource("secret://{name}", scopes=["secrets:read"])
def secret(name: str, ctx: Context) -> str:
    """A secret. Asks first."""
    match ctx.ask("tone", f"Read {name}?", Tone):
        case Accepted(Tone(tone=tone)):
            return f"{name}, {tone}"
        case _:
            return ctx.stop("The user said no.")


FEATURES = Features(
    tools=(greet, execute_sql, steps, summarize, workspaces),
    prompts=(hello, trip, letter, broken),
    resources=(today, logo, note, file, secret),
)


def offered(**settings: str) -> JudgedServer:
    """A server of FEATURES. Settings are environment variables without their prefix."""
    return JudgedServer(FEATURES, settings={f"MCP_{name.upper()}": value for name, value in settings.items()})


def error(reply: Reply) -> tuple[int, int]:
    """HTTP status and JSON-RPC code of a refusal."""
    return reply.status, reply.message["error"]["code"]


def with_meta(client: Client, method: str, params: Mapping[str, Any], **meta: Any) -> Reply:
    """A request with more in its `_meta`."""
    return client.request(method, {**params, "_meta": meta})
