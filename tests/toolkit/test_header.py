"""Arguments that are mirrored into headers: which may be, and what is refused at import."""

from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field

from app.errors import ConfigurationError
from app.toolkit import Context, Header, tool


def test_primitive_arguments_can_be_mirrored() -> None:
    @tool
    def route(
        region: Annotated[str, Header("Region"), Field(description="Where")],
        shard: Annotated[int, Header("Shard")],
        mode: Annotated[Literal["a", "b"], Header("Mode")] = "a",
    ) -> str:
        """Route something."""
        return ""

    assert route.headers == {("region",): "Region", ("shard",): "Shard", ("mode",): "Mode"}
    properties = route.definition()["inputSchema"]["properties"]
    assert properties["region"] == {"type": "string", "description": "Where", "x-mcp-header": "Region"}
    assert (properties["mode"]["type"], properties["mode"]["x-mcp-header"]) == ("string", "Mode")


class Place(BaseModel):
    region: Annotated[str, Header("Region")]


@pytest.mark.parametrize(
    ("annotation", "remedy"),
    [
        (Annotated[float, Header("X")], "change its type"),
        (Annotated[list[str], Header("X")], "change its type"),
        (Annotated[str | None, Header("X")], "give it a default instead of None"),
        (Annotated[Place, Header("X")], "change its type"),
        (list[Annotated[str, Header("X")]], "put it on a plain parameter"),
        (Annotated[str, Header("")], "rename it"),
        (Annotated[str, Header("a b")], "rename it"),
        (Annotated[str, Header("a\r\nb")], "rename it"),
        (Annotated[str, Header("é")], "rename it"),
    ],
)
def test_what_clients_would_reject_is_refused_at_import(annotation: Any, remedy: str) -> None:
    """streamable-http, Schema Extension: clients MUST exclude a tool that violates the constraints."""

    def route(region: str) -> str:
        """Route something."""
        return ""

    route.__annotations__["region"] = annotation
    with pytest.raises(ConfigurationError, match=remedy):
        tool(route)


def test_two_headers_of_one_name_are_refused() -> None:
    """streamable-http: case-insensitively unique."""
    with pytest.raises(ConfigurationError, match="give each its own"):

        @tool
        def route(a: Annotated[str, Header("Region")], b: Annotated[str, Header("region")]) -> str:
            """Route something."""
            return ""


def schema(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


def written(input_schema: dict[str, Any]) -> Any:
    @tool(input_schema=input_schema)
    def route(ctx: Context) -> str:
        """Route something."""
        return str(ctx.arguments)

    return route


def test_a_hand_written_schema_can_mirror_nested_arguments() -> None:
    """streamable-http: statically reachable through `properties`."""
    route = written(schema(place=schema(region={"type": "string", "x-mcp-header": "Region"})))
    assert route.headers == {("place", "region"): "Region"}
    assert route.definition()["inputSchema"]["properties"]["place"]["properties"]["region"]["x-mcp-header"] == "Region"


@pytest.mark.parametrize(
    ("input_schema", "remedy"),
    [
        (schema(x={"type": "number", "x-mcp-header": "X"}), "string, integer or boolean"),
        (schema(x={"type": "array", "items": {"type": "string", "x-mcp-header": "X"}}), "plain property"),
        (schema(x={"anyOf": [{"type": "string", "x-mcp-header": "X"}]}), "plain property"),
        ({"type": "array"}, "give it the type object"),
    ],
)
def test_a_hand_written_schema_that_clients_would_reject_is_refused(input_schema: Any, remedy: str) -> None:
    with pytest.raises(ConfigurationError, match=remedy):
        written(input_schema)


def test_a_hand_written_schema_and_typed_parameters_exclude_each_other() -> None:
    with pytest.raises(ConfigurationError, match=r"read ctx\.arguments"):

        @tool(input_schema=schema())
        def route(region: str) -> str:
            """Route something."""
            return region
