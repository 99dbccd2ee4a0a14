"""Which route takes a request."""

import pytest

from infra.local.emulator.routes import Route, RouteTable, route_key

TABLE = RouteTable(
    Route(key=key, function="f")
    for key in (
        "$default",
        "ANY /pets/{proxy+}",
        "GET /pets/{id}",
        "ANY /pets/dog",
        "GET /pets/dog",
        "GET /pets/{id}/toys/{toy}",
        "ANY /mcp",
    )
)


@pytest.mark.parametrize(
    ("method", "path", "key", "parameters"),
    [
        ("GET", "/pets/dog", "GET /pets/dog", {}),
        ("POST", "/pets/dog", "ANY /pets/dog", {}),
        ("GET", "/pets/7", "GET /pets/{id}", {"id": "7"}),
        ("POST", "/pets/7", "ANY /pets/{proxy+}", {"proxy": "7"}),
        ("GET", "/pets/a/toys/b c", "GET /pets/{id}/toys/{toy}", {"id": "a", "toy": "b c"}),
        ("GET", "/pets/a/b/c", "ANY /pets/{proxy+}", {"proxy": "a/b/c"}),
        ("GET", "/pets", "$default", {}),
        ("GET", "/", "$default", {}),
        ("DELETE", "/mcp", "ANY /mcp", {}),
        ("DELETE", "/mcp/", "$default", {}),
        ("GET", "/mcpx", "$default", {}),
        ("GET", "/pets/line\nbreak", "GET /pets/{id}", {"id": "line\nbreak"}),
    ],
)
def test_the_most_specific_route_wins(method: str, path: str, key: str, parameters: dict[str, str]) -> None:
    """AWS: http-api-develop-routes, "Route selection": full match, greedy variable, $default."""
    match = TABLE.match(method, path)
    assert match is not None
    assert (match.route.key, match.path_parameters) == (key, parameters)


def test_without_a_default_route_there_may_be_no_match() -> None:
    """AWS: http-api-develop-routes."""
    assert RouteTable([Route(key="GET /a", function="f")]).match("GET", "/b") is None


@pytest.mark.parametrize("path", ["$default", "/$default"])
def test_the_default_route_is_written_with_or_without_a_slash(path: str) -> None:
    """AWS exports "/$default", SAM writes "$default"."""
    assert route_key("any", path) == "$default"
