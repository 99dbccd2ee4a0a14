"""The ASGI handler: every front door's event, and nothing raises out of it."""

import asyncio
import base64
import json
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import pytest
from fastapi import FastAPI, Request, Response

from app.adapters.aws_lambda import Handler
from app.adapters.mangum import asgi_handler

CONTEXT = SimpleNamespace(aws_request_id="request-1")

Event = dict[str, Any]


def application() -> FastAPI:
    app = FastAPI(openapi_url=None)

    async def echo(request: Request) -> Response:
        body = (await request.body()).decode("utf-8", "replace")
        seen = {
            "method": request.method,
            "path": request.url.path,
            "body": body,
            "cookie": request.headers.get("cookie"),
        }
        response = Response(json.dumps(seen), media_type="application/json")
        response.headers.append("set-cookie", "a=1; Path=/; HttpOnly")
        response.headers.append("set-cookie", "b=2; Path=/; HttpOnly")
        return response

    app.add_route("/{path:path}", echo, methods=["GET", "POST"])
    return app


@pytest.fixture
def handler() -> Handler:
    return asgi_handler(application())


def v2(body: str = "hello", *, encoded: bool = False, **extra: Any) -> Event:
    return {
        "version": "2.0",
        "routeKey": "$default",
        "rawPath": "/mcp",
        "rawQueryString": "",
        "headers": {"host": "api.example.com", "content-type": "application/json"},
        "requestContext": {
            "domainName": "api.example.com",
            "http": {
                "method": "POST",
                "path": "/mcp",
                "protocol": "HTTP/1.1",
                "sourceIp": "192.0.2.1",
                "userAgent": "t",
            },
            "requestId": "r",
            "stage": "$default",
        },
        "body": base64.b64encode(body.encode()).decode() if encoded else body,
        "isBase64Encoded": encoded,
        **extra,
    }


def rest_v1() -> Event:
    return {
        "resource": "/{proxy+}",
        "path": "/mcp",
        "httpMethod": "POST",
        "headers": {"Host": "api.example.com", "Content-Type": "application/json"},
        "multiValueHeaders": {"Host": ["api.example.com"], "Content-Type": ["application/json"]},
        "queryStringParameters": None,
        "multiValueQueryStringParameters": None,
        "requestContext": {
            "resourcePath": "/{proxy+}",
            "httpMethod": "POST",
            "path": "/prod/mcp",
            "stage": "prod",
            "requestId": "r",
            "identity": {"sourceIp": "192.0.2.1"},
        },
        "body": "hello",
        "isBase64Encoded": False,
    }


def load_balancer() -> Event:
    return {
        "requestContext": {"elb": {"targetGroupArn": "arn:aws:elasticloadbalancing:eu-west-1:1:targetgroup/t/1"}},
        "httpMethod": "POST",
        "path": "/mcp",
        "multiValueQueryStringParameters": {},
        "multiValueHeaders": {"host": ["api.example.com"], "content-type": ["application/json"]},
        "body": "hello",
        "isBase64Encoded": False,
    }


def cookies_of(result: dict[str, Any]) -> list[str]:
    """The Set-Cookie headers, where each front door wants them."""
    if "cookies" in result:
        return list(result["cookies"])
    multi = {name.lower(): values for name, values in result.get("multiValueHeaders", {}).items()}
    return list(multi.get("set-cookie", []))


@pytest.mark.parametrize("event", [v2(), rest_v1(), load_balancer()], ids=["HTTP API", "REST API", "ALB"])
def test_every_front_door_is_read_and_gets_both_cookies(handler: Handler, event: Event) -> None:
    """CASES B.1 9: several Set-Cookie are neither lost nor merged."""
    result = handler(event, CONTEXT)
    assert result["statusCode"] == 200
    assert json.loads(result["body"]) == {"method": "POST", "path": "/mcp", "body": "hello", "cookie": None}
    assert cookies_of(result) == ["a=1; Path=/; HttpOnly", "b=2; Path=/; HttpOnly"]


def test_a_base64_body_and_the_cookies_member_arrive_whole(handler: Handler) -> None:
    """CASES B.1 10, 11: HTTP API encodes form posts, and keeps cookies apart from headers."""
    result = handler(v2("größe 😀", encoded=True, cookies=["x=1", "y=2"]), CONTEXT)
    seen = json.loads(result["body"])
    assert seen["body"] == "größe 😀"
    assert seen["cookie"] == "x=1; y=2"


HOSTILE: dict[str, Any] = {
    "none": None,
    "empty": {},
    "a list": [],
    "a string": "x",
    "a warmer": {"source": "aws.events", "detail-type": "Scheduled Event"},
    "headers null": v2() | {"headers": None},
    "bad base64": v2() | {"body": "***", "isBase64Encoded": True},
    "a lone surrogate": v2() | {"body": "\ud800"},
    "two colons in the host": v2() | {"headers": {"host": "a:b:c"}},
    "a port that is none": v2() | {"headers": {"host": "a", "x-forwarded-port": "abc"}},
    "no http": v2() | {"requestContext": {}},
}


@pytest.mark.parametrize("event", HOSTILE.values(), ids=HOSTILE.keys())
def test_nothing_raises_out_of_the_handler(handler: Handler, event: Any) -> None:
    """SECURITY 0.7: Mangum raises for each of these; a raise is a 502 with a stack trace in the log."""
    result = handler(event, CONTEXT)
    assert result["statusCode"] in (200, 400)
    if result["statusCode"] == 400:
        assert json.loads(result["body"]) == {"error": "This function answers HTTP requests"}
    assert handler(v2(), CONTEXT)["statusCode"] == 200, "the next request is served"


def test_an_application_that_fails_answers_500_and_goes_on() -> None:
    """An exception in a page must not end the environment."""
    app = FastAPI(openapi_url=None)
    calls = []

    async def fail(request: Request) -> Response:
        calls.append(1)
        raise RuntimeError("secret detail")

    app.add_route("/{path:path}", fail, methods=["POST"])
    handler = asgi_handler(app)
    for _ in range(2):
        result = handler(v2(), CONTEXT)
        assert result["statusCode"] == 500
        assert "secret detail" not in result["body"]
    assert len(calls) == 2


def test_it_is_called_again_from_inside_a_loop_and_from_many_threads(handler: Handler) -> None:
    """CASES B.1 1, 2, 5, 6: warm calls, concurrent first calls, a caller inside asyncio.run."""

    async def inside() -> int:
        return int(handler(v2(), CONTEXT)["statusCode"])

    assert [handler(v2(), CONTEXT)["statusCode"] for _ in range(3)] == [200, 200, 200]
    assert asyncio.run(inside()) == 200
    with ThreadPoolExecutor(20) as threads:
        results = list(threads.map(lambda number: handler(v2(f"n{number}"), CONTEXT), range(20)))
    assert [json.loads(result["body"])["body"] for result in results] == [f"n{number}" for number in range(20)]
    assert handler(v2(), CONTEXT)["statusCode"] == 200
