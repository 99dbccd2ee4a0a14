"""What is fed with bytes: each target is a function that raises when a promise of a parser does not hold.

hypothesis runs them in `make test`, over the corpus and bytes of its own; `python -m tests.fuzz.coverage_guided`
runs them under libFuzzer, which sees which branches an input takes.
"""

import contextlib
import json
import math
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from pydantic_core import from_json

from app import strict_json
from app.authorization.access_token import TokenRules, verify
from app.authorization.jwks import Jwks, trusted_keys
from app.errors import AuthorizationError, Refused, RequestStateRefused, SealRefused, Unavailable
from app.http import TokenEndpointReply
from app.oauth import token_response
from app.oauth.authorization_response import AuthorizationResponse
from app.oauth.token_response import NoTokens
from app.principal import Principal
from app.protocol.jsonrpc import JSONRPCError
from app.protocol.request_headers import decode_header_value
from app.protocol.request_state import Binding, RequestState, RequestStateCodec
from app.protocol.uri_template import UriTemplate
from app.sealing import Key, Keyring, Purpose, Seal
from app.strict_json import NotStrictJson
from app.testing import ISSUER, RESOURCE, Clock, Issuer
from app.web.visit import MalformedRequest, Visit

Target: TypeAlias = Callable[[bytes], None]

_NOW: Final = 1_790_000_000
_RING: Final = Keyring(current=Key(1, bytes(range(32))))
_SEAL: Final = Seal(_RING, Purpose.REQUEST_STATE)
_BOUND_TO: Final = (b"alice", b"tools/call")
_SEALED: Final = _SEAL.seal({"a": 1}, bound_to=_BOUND_TO)
_CODEC: Final = RequestStateCodec(_RING)
_BINDING: Final = Binding(RESOURCE, Principal(ISSUER, "alice", "client"), "tools/call", "erase", b"{}")
_ISSUER: Final = Issuer(Clock(_NOW))
_KEYS: Final = Jwks(_ISSUER, issuer=ISSUER)
_RULES: Final = TokenRules(ISSUER, RESOURCE)
_TEMPLATE: Final = UriTemplate("fuzz://{owner}/{+path}")


def json_text(data: bytes) -> None:
    """Whatever the strict parser takes, a parser by other people (jiter, in Rust) takes too, and reads the same."""
    try:
        value = strict_json.parse(data)
    except NotStrictJson:
        return
    other = from_json(data, allow_inf_nan=False)
    assert _same(value, other), (value, other)
    # And what it was digested as is the same after a round through a serialiser.
    assert strict_json.canonical(value) == strict_json.canonical(json.loads(json.dumps(value)))
    json.dumps(value, ensure_ascii=False).encode("utf-8")


def _same(one: Any, other: Any) -> bool:
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(_same(each, other[key]) for key, each in one.items())
    if isinstance(one, list):
        return len(one) == len(other) and all(map(_same, one, other))
    if isinstance(one, float):
        return math.copysign(1, one) == math.copysign(1, other) and one == other
    return bool(one == other)


def sealed_token(data: bytes) -> None:
    """A token opens if it is the very one that was sealed, and any other is refused without another exception."""
    token = data.decode("latin-1")
    try:
        _SEAL.open(token, bound_to=_BOUND_TO)
    except SealRefused:
        assert token != _SEALED
        return
    raise AssertionError("a token that nobody sealed has opened")


def spoiled_token(data: bytes) -> None:
    """A sealed token with bytes changed: pairs of a place and a value. It opens only unchanged."""
    token = bytearray(_SEALED.encode())
    for place, value in zip(data[::2], data[1::2], strict=False):
        token[place * 7 % len(token)] = value
    try:
        _SEAL.open(token.decode("latin-1"), bound_to=_BOUND_TO)
    except SealRefused:
        assert token.decode("latin-1") != _SEALED
    else:
        assert token.decode() == _SEALED


def state_claims(data: bytes) -> None:
    """Claims under our own seal, as a future or a past version of us might write them."""
    try:
        claims = json.loads(data)
    except (ValueError, RecursionError):
        return
    if not isinstance(claims, dict):
        return
    try:
        token = _SEAL.seal({"v": 1, **claims}, bound_to=_BINDING.fields())
    except ValueError:
        return
    try:
        state = _CODEC.open(token, _BINDING, now=_NOW)
    except RequestStateRefused:
        return
    assert isinstance(state, RequestState)
    assert 1 <= state.rounds <= _CODEC.max_rounds


def access_token(data: bytes) -> None:
    """No text is an access token of an issuer that has not signed it."""
    try:
        verify(data.decode("latin-1"), _KEYS, _RULES, now=_NOW)
    except (AuthorizationError, Unavailable):
        return
    raise AssertionError("a token that nobody signed was accepted")


def key_set(data: bytes) -> None:
    """Whatever an issuer publishes, the keys that are trusted are public and asymmetric."""
    try:
        document = strict_json.parse(data)
    except NotStrictJson:
        return
    for keys in trusted_keys(document).values():
        for key in keys:
            assert set(key.by_algorithm) <= {"RS256", "PS256", "ES256", "EdDSA"}
            assert not any(hasattr(each, "sign") for each in key.by_algorithm.values())


def header_value(data: bytes) -> None:
    """A header value is decoded or refused, and what is decoded is text."""
    try:
        decoded = decode_header_value(data.decode("latin-1"), "Mcp-Name")
    except JSONRPCError:
        return
    decoded.encode("utf-8")


def resource_uri(data: bytes) -> None:
    """A URI gives every variable of its template, or does not match."""
    variables = _TEMPLATE.match(data.decode("utf-8", "surrogateescape"))
    assert variables is None or set(variables) == {"owner", "path"}


def browser_request(data: bytes) -> None:
    """Query, cookies and form of a browser's request, read or refused."""
    text = data.decode("latin-1")
    headers = {"cookie": text, "content-type": "application/x-www-form-urlencoded"}
    visit = Visit("POST", {}, headers, query=text, form=data, now=_NOW)
    visit.cookie("mcp_sid")
    for read in (visit.query_pairs, visit.fields):
        try:
            read()
        except MalformedRequest:
            continue
    with contextlib.suppress(Refused):
        AuthorizationResponse.read([(text[:3], text[3:]), ("state", text), ("code", text[:2])])


def token_reply(data: bytes) -> None:
    """What a third party's token endpoint answers, read or refused."""
    status = 200 if not data or data[0] % 2 else 400
    reply = TokenEndpointReply(status, "application/json", data[1:])
    try:
        tokens = token_response.read(reply, asked=frozenset(("repo:read",)), now=_NOW)
    except NoTokens:
        tokens = None
    assert tokens is None or (tokens.access_token.isascii() and tokens.access_token.isprintable())
    account = token_response.read_account(reply, "login")
    assert account is None or account.isprintable()


TARGETS: Final[Mapping[str, Target]] = {
    each.__name__: each
    for each in (
        json_text,
        sealed_token,
        spoiled_token,
        state_claims,
        access_token,
        key_set,
        header_value,
        resource_uri,
        browser_request,
        token_reply,
    )
}
