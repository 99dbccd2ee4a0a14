"""Reads a form body strictly: one media type, UTF-8, a bounded number of fields."""

from typing import Final
from urllib.parse import parse_qsl

from authlib.oauth2.rfc6749 import InvalidRequestError
from starlette.requests import Request

from infra.local.identity.oauth_messages import Parameters

MEDIA_TYPE: Final = "application/x-www-form-urlencoded"
MOST_FIELDS: Final = 64


async def read_form(request: Request) -> Parameters:
    """The fields of a POST in order; an `invalid_request` error for anything else."""
    if request.headers.get("content-type", "").split(";")[0].strip().lower() != MEDIA_TYPE:
        raise InvalidRequestError(f"The body must be a form: send Content-Type {MEDIA_TYPE}")
    try:
        return parse_parameters((await request.body()).decode("utf-8"))
    except UnicodeDecodeError:
        raise InvalidRequestError("The body is not UTF-8: percent-encode it") from None


def parse_parameters(encoded: str) -> Parameters:
    try:
        return parse_qsl(encoded, keep_blank_values=True, max_num_fields=MOST_FIELDS, errors="strict")
    except ValueError:
        raise InvalidRequestError(f"The parameters are not UTF-8 or more than {MOST_FIELDS}: send fewer") from None
