"""What a misbehaving endpoint sends instead of its answer."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, Final, assert_never

from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response, StreamingResponse

from infra.local.identity.oauth_messages import Answer
from infra.local.provider.faults import Fault, Misbehaviour

POLL_SECONDS: Final = 0.02
_PAGE: Final = "<!doctype html><title>Down for maintenance</title><h1>We will be back soon</h1>"


def as_json(answer: Answer) -> Response:
    """The answer that is right."""
    return JSONResponse(answer.body, status_code=answer.status, headers=answer.headers)


async def respond(
    request: Request, misbehaviour: Misbehaviour | None, act: Callable[[], Awaitable[Answer]]
) -> Response:
    """Act and answer as JSON, or whatever the fault makes of it."""
    if misbehaviour is None:
        return as_json(await act())
    match misbehaviour.fault:
        case Fault.SLOW:
            await asyncio.sleep(misbehaviour.seconds)
            return as_json(await act())
        case Fault.HANG:
            return as_json(await act()) if await _is_patient(request, misbehaviour) else _to_nobody()
        case Fault.LOST:
            await act()
            await _is_patient(request, misbehaviour)
            return _to_nobody()
        case Fault.DRIP:
            return StreamingResponse(_drip(misbehaviour), media_type="application/json")
        case Fault.HTML:
            return HTMLResponse(_PAGE)
        case Fault.REDIRECT:
            return Response(status_code=302, headers={"Location": misbehaviour.address})
        case Fault.HUGE:
            padding = "x" * misbehaviour.size
            return JSONResponse({"access_token": "hub", "token_type": "Bearer", "padding": padding})
        case Fault.INVALID_GRANT:
            return JSONResponse({"error": "invalid_grant"}, status_code=400)
        case Fault.SERVER_ERROR:
            return JSONResponse({"error": "server_error"}, status_code=500)
        case Fault.PLAIN_TEXT:
            return PlainTextResponse("Something is wrong with the request.", status_code=400)
        case Fault.WRONG_TOKEN_TYPE | Fault.EXPIRES_IN_AS_TEXT | Fault.NO_REFRESH_TOKEN | Fault.FEWER_SCOPES:
            answer = await act()
            if answer.status == 200:
                answer.body = _spoilt(misbehaviour.fault, answer.body)
            return as_json(answer)
        case Fault.WRONG_ISS | Fault.MISSING_ISS | Fault.DENIED:
            raise AssertionError(f"{misbehaviour.fault} is a fault of the authorization endpoint")
        case _:
            assert_never(misbehaviour.fault)


def _spoilt(fault: Fault, tokens: dict[str, Any]) -> dict[str, Any]:
    match fault:
        case Fault.WRONG_TOKEN_TYPE:
            return tokens | {"token_type": "mac"}
        case Fault.EXPIRES_IN_AS_TEXT:
            return tokens | {"expires_in": str(tokens["expires_in"])}
        case Fault.FEWER_SCOPES:
            return tokens | {"scope": " ".join(tokens["scope"].split()[:-1])}
        case _:
            return {name: value for name, value in tokens.items() if name != "refresh_token"}


async def _is_patient(request: Request, misbehaviour: Misbehaviour) -> bool:
    """Wait until Local Hub is told to behave; False when the client gives up before."""
    while not misbehaviour.over.is_set():
        if await request.is_disconnected():
            return False
        await asyncio.sleep(POLL_SECONDS)
    return True


async def _drip(misbehaviour: Misbehaviour) -> AsyncIterator[bytes]:
    # Blanks before a JSON value are well-formed: only the clock tells that nothing will come.
    while not misbehaviour.over.is_set():
        yield b" "
        await asyncio.sleep(POLL_SECONDS)


def _to_nobody() -> Response:
    """For a client that is gone."""
    return Response(status_code=503)
