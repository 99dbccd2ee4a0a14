"""Local-only endpoints to set faults and to read the record, for whoever is not in this process."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Final

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from infra.local.provider import metadata
from infra.local.provider.authorization_server import HubServer
from infra.local.provider.faults import Fault, Kind, Misbehaviour

BODY_LIMIT: Final = 8 * 1024


class _FaultRequest(BaseModel):
    """{"kind": "refresh", "fault": "hang", "times": 1}"""

    model_config = ConfigDict(extra="forbid")

    kind: Kind
    fault: Fault
    times: int | None = Field(default=None, ge=1)
    seconds: float = Field(default=1.0, ge=0, le=3600)
    address: str = ""
    size: int = Field(default=1024 * 1024, ge=0, le=64 * 1024 * 1024)


class ControlEndpoints:
    """Answers local tools, not web pages: a page could reach the loopback interface too."""

    def __init__(self, server: HubServer) -> None:
        self._server = server

    def routes(self) -> Sequence[Route]:
        return [
            Route(metadata.CONTROL, self.set_fault, methods=["POST"], max_body_size=BODY_LIMIT),
            Route(metadata.CONTROL, self.clear_faults, methods=["DELETE"]),
            Route(metadata.RECORD, self.record, methods=["GET"]),
            Route(metadata.RECORD, self.clear_record, methods=["DELETE"]),
        ]

    async def set_fault(self, request: Request) -> Response:
        if refusal := _refusal(request):
            return refusal
        try:
            wanted = _FaultRequest.model_validate_json(await request.body())
            misbehaviour = Misbehaviour(**wanted.model_dump(exclude={"kind"}))
            self._server.faults.set(wanted.kind, misbehaviour)
        except ValidationError as error:
            fields = sorted({".".join(map(str, each["loc"])) or "body" for each in error.errors()})
            return _bad_request(f"Not acceptable: {', '.join(fields)}. Send JSON like {_FaultRequest.__doc__}")
        except ValueError as error:
            return _bad_request(str(error))
        return Response(status_code=204)

    async def clear_faults(self, request: Request) -> Response:
        if refusal := _refusal(request):
            return refusal
        self._server.faults.clear()
        return Response(status_code=204)

    async def record(self, request: Request) -> Response:
        return _refusal(request) or JSONResponse(asdict(self._server.record))

    async def clear_record(self, request: Request) -> Response:
        if refusal := _refusal(request):
            return refusal
        self._server.record.clear()
        return Response(status_code=204)


def _refusal(request: Request) -> Response | None:
    if "origin" in request.headers or "sec-fetch-site" in request.headers:
        text = "Control endpoints answer local tools, not web pages: use curl without an Origin"
        return JSONResponse({"error": text}, status_code=403)
    return None


def _bad_request(text: str) -> Response:
    return JSONResponse({"error": text}, status_code=400)
