"""What a client with an access token gets: the methods that change nothing, and how long they take."""

import base64
import json
import statistics
import time
from collections.abc import Iterator
from typing import Any, Final

from app.protocol import messages
from infra.doctor.finding import Finding, fail, ok
from infra.doctor.http import Http, Unreachable
from infra.doctor.mcp_request import post

_CALLS: Final = 5


def check_with_token(http: Http, url: str, token: str) -> Iterator[Finding]:
    """`server/discover` and `tools/list` with this token, which is sent to `url` and printed nowhere."""
    for method, member in ((messages.DISCOVER, "supportedVersions"), (messages.TOOLS_LIST, "tools")):
        try:
            answers = [post(http, url, method, {"authorization": f"Bearer {token}"}) for _ in range(_CALLS)]
        except Unreachable as error:
            yield fail(method, f"{url} cannot be reached ({error}): look for timeouts in the function's log.")
            return
        answer = answers[-1]
        if answer.status == 401:
            yield fail(method, f"The token is refused: {_why(token, url)}.")
            return
        result = answer.json_object().get("result")
        found = result.get(member) if isinstance(result, dict) else None
        if answer.status != 200 or not isinstance(found, list):
            yield fail(
                method, f"HTTP {answer.status} and no {member}: look into the function's log, which has the reason."
            )
            return
        first, rest = answers[0].seconds, statistics.median(each.seconds for each in answers[1:])
        what = f"{len(found)} tools" if member == "tools" else f"versions {', '.join(map(str, found))}"
        yield ok(method, f"{what[:200]}; {first * 1000:.0f} ms at first, then {rest * 1000:.0f} ms.")


def _why(token: str, url: str) -> str:
    """What is wrong with a token that was refused, as far as its claims show. Nothing is verified here."""
    claims = _claims(token)
    if claims is None:
        return "it is no JWT. Have the authorization server issue JWT access tokens (RFC 9068)"
    audience = claims.get("aud")
    if url not in (audience if isinstance(audience, list) else [audience]):
        found = json.dumps(audience)[:200]
        return f"its audience is {found} and not {url}. Ask for a token with resource={url} (RFC 8707)"
    if isinstance(claims.get("exp"), (int, float)) and claims["exp"] < time.time():
        return "it has expired. Get a new one"
    missing = [name for name in ("iss", "sub", "iat", "exp") if name not in claims]
    if missing or not ("client_id" in claims or "azp" in claims):
        return f"it lacks {', '.join(missing) or 'client_id or azp'}. Have the authorization server put that in"
    return f"its issuer is {str(claims['iss'])[:200]}. Compare that with MCP_ISSUER, and see the reason in the log"


def _claims(token: str) -> dict[str, Any] | None:
    try:
        payload = token.split(".")[1]
        claims = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
    except (IndexError, ValueError):
        return None
    return claims if isinstance(claims, dict) else None
