"""The proxy adds the token and changes nothing else: what the scenarios send is what the server sees."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

import pytest

from app.http import HttpRequest, HttpResponse
from infra.local.loopback_server import listen, url_of
from tests.conformance.proxy import Proxy, token_proxy

ODD = (
    b"POST /mcp?a=%62&&b HTTP/1.1\r\n"
    b"Host: evil.example.com\r\n"
    b"ORIGIN:http://evil.example.com\r\n"
    b"Mcp-Name:  \tgreet  \r\n"
    b"mcp-name: other\r\n"
    b"Content-Length: 12\r\n"
    b"\r\n"
    b'{"a":"\xc3\xa9"}\n\x00'
)
CHUNKED = (
    b"POST /mcp HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
    b'5;x=y\r\n{"a":\r\n2\r\n1}\r\n0\r\nTrailer: t\r\n\r\n'
)
ANSWER = b"HTTP/1.1 200 Fine\r\nX-A: 1\r\nx-a:  2\r\nContent-Length: 2\r\n\r\n{}"
ACCEPTED = b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n"
UNTIL_THE_END = b"HTTP/1.1 200 OK\r\n\r\nevent"


@contextlib.asynccontextmanager
async def echo(answers: list[bytes], seen: bytearray) -> AsyncIterator[Proxy]:
    """A proxy to a server that keeps the bytes that come, and gives one answer for each of their messages' ends."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while answers and (received := await reader.read(2**16)):
            seen.extend(received)
            reply = answers.pop(0)
            writer.write(reply)
            if reply == UNTIL_THE_END:
                break
        writer.close()

    listener = listen(0)
    server = await asyncio.start_server(answer, sock=listener)
    async with token_proxy() as proxy:
        proxy.target, proxy.token = url_of(listener), "t0ken"
        yield proxy
    server.close()


async def through(proxy: Proxy, request: bytes) -> bytes:
    port = int(proxy.url.rpartition(":")[2])
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request)
    writer.write_eof()
    answer = await reader.read()
    writer.close()
    await writer.wait_closed()
    return answer


@pytest.mark.parametrize(
    "request_bytes", [ODD, CHUNKED, b"GET /mcp HTTP/1.1\r\nHost: a\r\n\r\n"], ids=["odd", "chunked", "no-body"]
)
@pytest.mark.parametrize("answer", [ANSWER, ACCEPTED, UNTIL_THE_END], ids=["result", "empty", "until-the-end"])
def test_only_the_token_is_added(request_bytes: bytes, answer: bytes) -> None:
    """http-header-validation and dns-rebinding-protection are about these very bytes."""
    seen = bytearray()

    async def run() -> bytes:
        async with echo([answer], seen) as proxy:
            return await through(proxy, request_bytes)

    assert asyncio.run(run()) == answer
    first, _, rest = request_bytes.partition(b"\r\n")
    assert bytes(seen) == first + b"\r\nauthorization: Bearer t0ken\r\n" + rest


def test_requests_that_follow_each_other_on_one_connection_are_kept_apart() -> None:
    async def run() -> tuple[bytes, Proxy]:
        async with echo([ANSWER, ACCEPTED], seen) as proxy:
            return await through(proxy, ODD + CHUNKED), proxy

    seen = bytearray()
    answers, proxy = asyncio.run(run())
    assert answers == ANSWER + ACCEPTED
    assert seen.count(b"authorization: Bearer t0ken") == 2
    assert proxy.passed == 2


def test_the_judge_sees_what_passed_and_its_verdict_is_kept() -> None:
    judged: list[tuple[HttpRequest, HttpResponse]] = []

    def judge(request: HttpRequest, response: HttpResponse) -> None:
        judged.append((request, response))
        raise AssertionError("never")

    async def run() -> tuple[bytes, Proxy]:
        async with echo([ANSWER], bytearray()) as proxy:
            proxy.judge = judge
            return await through(proxy, CHUNKED), proxy

    answer, proxy = asyncio.run(run())
    assert answer == ANSWER
    ((request, response),) = judged
    assert (request.method, request.path, request.body) == ("POST", "/mcp", b'{"a":1}')
    assert (response.status, response.body, response.headers["x-a"]) == (200, b"{}", "1,2")
    assert len(proxy.verdicts) == 1
    assert proxy.verdicts[0].startswith("AssertionError: never")
