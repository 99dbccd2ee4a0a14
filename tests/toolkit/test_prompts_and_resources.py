"""The decorators `prompt` and `resource`: what is refused at import, and what else they take."""

from enum import StrEnum
from typing import Annotated, Any

import pytest
from pydantic import Field

from app.errors import ConfigurationError
from app.testing import Server
from app.toolkit import Annotations, Context, Icon, ImageContent, TextResourceContents, prompt, resource
from tests.protocol.endpoint import JudgedServer


class Mood(StrEnum):
    CALM = "calm"
    WILD = "wild"


@prompt(name="poem", title="A poem", icons=[Icon("https://e.com/p.png")], meta={"x": 1})
async def write_poem(mood: Annotated[Mood, Field(title="Mood", description="How")], sign: bool = False) -> list[Any]:
    """Write a poem."""
    return [f"A {mood.value} poem, {'signed' if sign else 'unsigned'}.", ImageContent(b"x", "image/png")]


def test_a_prompt_may_be_async_and_have_an_enum_icons_and_meta() -> None:
    client = JudgedServer([write_poem]).client()
    (listed,) = client.request("prompts/list").result["prompts"]
    assert listed["arguments"] == [
        {"name": "mood", "title": "Mood", "description": "How", "required": True},
        {"name": "sign", "required": False},
    ]
    assert (listed["name"], listed["title"], listed["icons"], listed["_meta"]) == (
        "poem",
        "A poem",
        [{"src": "https://e.com/p.png"}],
        {"x": 1},
    )
    texts = client.get_prompt("poem", {"mood": "calm", "sign": "true"}).result["messages"]
    assert texts[0]["content"]["text"] == "A calm poem, signed."
    assert texts[1]["content"]["type"] == "image"


@pytest.mark.parametrize("value", [5, {"text": "x"}, [5]])
def test_a_prompt_that_returns_something_else_is_an_internal_error(value: Any) -> None:
    @prompt
    def odd() -> Any:
        """Return something odd."""
        return value

    assert Server([odd]).client().get_prompt("odd").status == 500


def test_a_completer_of_no_argument_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="rename one of them"):

        @prompt(complete={"citty": lambda typed, context: []})
        def trip(city: str) -> str:
            """Plan a trip."""
            return city


@resource(
    "a://{x}", title="X", annotations=Annotations(priority=1.0), icons=[Icon("https://e.com/x.png")], meta={"y": 2}
)
async def thing(x: str, ctx: Context) -> TextResourceContents | None:
    """A thing."""
    return TextResourceContents("a://other", f"{x} for {ctx.principal.subject}") if x != "none" else None


def test_a_resource_may_be_async_and_say_more() -> None:
    client = JudgedServer([thing]).client()
    (listed,) = client.request("resources/templates/list").result["resourceTemplates"]
    assert listed == {
        "uriTemplate": "a://{x}",
        "name": "thing",
        "title": "X",
        "description": "A thing.",
        "annotations": {"priority": 1.0},
        "icons": [{"src": "https://e.com/x.png"}],
        "_meta": {"y": 2},
    }
    assert client.read("a://b").result["contents"] == [{"uri": "a://other", "text": "b for alice"}]
    assert client.read("a://none").status == 400


@pytest.mark.parametrize(("uri", "remedy"), [("a://{y}", "give both the same names"), ("a://fixed", "the same names")])
def test_variables_and_parameters_must_be_the_same(uri: str, remedy: str) -> None:
    with pytest.raises(ConfigurationError, match=remedy):

        @resource(uri)
        def wrong(x: str) -> str:
            """Be wrong."""
            return x


def test_a_resource_that_returns_something_else_is_an_internal_error() -> None:
    @resource("a://odd")
    def odd() -> Any:
        """Return something odd."""
        return {"x": 1}

    assert Server([odd]).client().read("a://odd").status == 500


def test_two_resources_of_one_uri_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="rename one"):
        Server([thing, thing])
