"""requestState: its bytes, what it is bound to, how long it lives, and the one answer to everything else."""

import hashlib
import json
import math
from base64 import urlsafe_b64encode
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from app import strict_json
from app.errors import ConfigurationError, RequestStateRefused
from app.principal import Principal
from app.protocol import request_state
from app.protocol.request_state import (
    CLOCK_SKEW,
    LIFETIME,
    MAX_AGE,
    MAX_ROUNDS,
    Binding,
    RequestState,
    RequestStateCodec,
)
from app.sealing import Key, Keyring, Purpose, Seal, length_prefixed
from app.strict_json import JsonObject
from app.testing import CLIENT_ID, ISSUER, RESOURCE, Client, Reply, Server, accept
from app.toolkit import Accepted, Context, tool
from tests import rs1_by_hand as by_hand

VECTORS: dict[str, Any] = json.loads((Path(__file__).parents[1] / "vectors/request_state_vectors.json").read_text())
PURPOSE = Purpose.REQUEST_STATE.value
NOW = 1_790_000_000
KEY = Key(1, bytes(range(32)))
OTHER_KEY = Key(2, bytes(range(32, 64)))
CODEC = RequestStateCodec(Keyring(current=KEY))
BINDING = Binding(
    "https://mcp.example.com/mcp",
    Principal("https://as.example.com", "user-1", "https://app.example.com/client.json"),
    "tools/call",
    "delete_report",
    b'{"target":"Q3"}',
)


def binding_of(vector: JsonObject) -> Binding:
    context = vector["context"]
    return Binding(
        audience=context["aud"],
        principal=Principal(context["iss"], context["sub"], context["client_id"]),
        method=context["method"],
        target=context["target"],
        arguments=strict_json.canonical(context["args"]),
    )


def refusal(token: object, *, codec: RequestStateCodec = CODEC, binding: Binding = BINDING, now: float = NOW) -> str:
    """Why a state does not open. Anything but RequestStateRefused fails the test."""
    try:
        opened = codec.open(token, binding, now=now)  # type: ignore[arg-type]
    except RequestStateRefused as refused:
        return refused.reason
    raise AssertionError(f"the state opens: {opened}")


def forged(**claims: Any) -> str:
    """What only a holder of the key could send: other claims in a good seal. `...` leaves a claim out."""
    good: JsonObject = {"v": 1, "fid": "A" * 22, "fst": NOW, "iat": NOW, "exp": NOW + 600, "n": 1, "q": {}}
    kept = {name: value for name, value in {**good, **claims}.items() if value is not ...}
    return by_hand.seal(
        json.dumps(kept).encode(),
        secret=KEY.secret,
        kid=1,
        salt=bytes(32),
        purpose=PURPOSE,
        bound_to=BINDING.fields(),
    )


# The published vectors


@pytest.mark.parametrize("name", VECTORS)
def test_a_published_vector_agrees_byte_for_byte(name: str) -> None:
    """SECURITY 2.8: in both directions, in every intermediate value, and with a second implementation."""
    vector = VECTORS[name]
    kid, secret, salt = vector["kid"], bytes.fromhex(vector["key"]), bytes.fromhex(vector["salt"])
    binding = binding_of(vector)
    seal = Seal(Keyring(current=Key(kid, secret)), Purpose.REQUEST_STATE)
    claims = json.loads(vector["plaintext"])

    assert binding.arguments == vector["args_canonical"].encode()
    assert hashlib.sha256(binding.arguments).hexdigest() == vector["args_digest"]
    assert binding.fields()[-1].hex() == vector["args_digest"]
    prefix = (PURPOSE.encode(), b"rs1", kid.to_bytes(4, "big"))
    assert length_prefixed(*prefix, *binding.fields()).hex() == vector["aad"]
    assert seal._seal(claims, bound_to=binding.fields(), salt=salt) == vector["token"]
    assert seal.open(vector["token"], bound_to=binding.fields()) == claims
    assert len(vector["token"]) == vector["token_len"]

    derived = by_hand.derive(secret, purpose=PURPOSE, kid=kid, salt=salt)
    assert derived.key.hex() == vector["enc_key"]
    assert derived.nonce.hex() == vector["nonce"]
    assert derived.commitment.hex() == vector["commitment"]
    assert by_hand.associated_data(PURPOSE, kid, binding.fields()).hex() == vector["aad"]
    text = vector["plaintext"].encode()
    assert by_hand.padded(text.rstrip(b" ")) == text
    sealed = by_hand.seal(text, secret=secret, kid=kid, salt=salt, purpose=PURPOSE, bound_to=binding.fields())
    assert sealed == vector["token"]
    opened = by_hand.open_(sealed, secret=secret, purpose=PURPOSE, bound_to=binding.fields())
    assert opened == text


def test_a_published_state_opens_as_what_it_says() -> None:
    """SECURITY 2.2, Plaintext, and vector V2."""
    vector = VECTORS["V2 unicode sub, numeric canonicalisation"]
    state = CODEC.open(vector["token"], binding_of(vector), now=NOW + 100)
    assert state == RequestState(
        flow_id=b"\x01" * 16,
        first_issued_at=NOW,
        rounds=2,
        questions={"dup": "q2"},
        answers={"resolution": {"action": "accept", "content": {"resolution": "Duplicate"}}},
        state=None,
    )


def test_a_seal_around_no_claims_is_no_state() -> None:
    """SECURITY 2.8, vector V4: the edge of the format, and not of the protocol."""
    (vector,) = (each for name, each in VECTORS.items() if name.startswith("V4"))
    assert refusal(vector["token"], binding=binding_of(vector)) == "version"


# Round trips


STATES = st.builds(
    RequestState,
    flow_id=st.binary(min_size=16, max_size=16),
    first_issued_at=st.just(NOW),
    rounds=st.integers(0, MAX_ROUNDS - 1),
    questions=st.dictionaries(st.text(), st.text(), max_size=4),
    answers=st.dictionaries(st.text(), st.fixed_dictionaries({"action": st.text()}), max_size=4),
    state=st.none()
    | st.text()
    | st.lists(st.integers() | st.booleans())
    | st.dictionaries(st.text(), st.floats(-1, 1)),
    waits=st.integers(0, 1),
)
NAMES = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
BINDINGS = st.builds(
    Binding,
    audience=NAMES,
    principal=st.builds(Principal, NAMES, NAMES, NAMES),
    method=NAMES,
    target=NAMES,
    arguments=st.binary(max_size=20),
)


@settings(deadline=None, max_examples=100)
@given(state=STATES, binding=BINDINGS)
def test_what_was_sealed_comes_back_one_round_later(state: RequestState, binding: Binding) -> None:
    """SECURITY 2.2, Plaintext: the round is counted by the seal."""
    opened = CODEC.open(CODEC.seal(state, binding, now=NOW), binding, now=NOW)
    assert opened == state._replace(rounds=state.rounds + 1)


@settings(deadline=None, max_examples=100)
@given(binding=BINDINGS, other=BINDINGS)
def test_a_state_opens_for_its_own_request_only(binding: Binding, other: Binding) -> None:
    """SECURITY 2.2, AAD."""
    token = CODEC.seal(request_state.begin(now=NOW, entropy=bytes(16)), binding, now=NOW)
    if other != binding:
        assert refusal(token, binding=other) == "tag"


def test_the_claims_are_the_documented_ones_and_no_others() -> None:
    """SECURITY 2.2, Plaintext. What is empty does not travel."""
    state = RequestState(b"\x00" * 16, NOW - 60, 1, {"confirm": "digest"}, {"a": {"action": "accept"}}, {"id": 7})
    token = CODEC.seal(state, BINDING, now=NOW)
    text = by_hand.open_(token, secret=KEY.secret, purpose=PURPOSE, bound_to=BINDING.fields())
    assert json.loads(text) == {
        "v": 1,
        "fid": "A" * 22,
        "fst": NOW - 60,
        "iat": NOW,
        "exp": NOW + 600,
        "n": 2,
        "q": {"confirm": "digest"},
        "a": {"a": {"action": "accept"}},
        "s": {"id": 7},
    }
    waited = CODEC.seal(state._replace(rounds=2, waits=2), BINDING, now=NOW)
    text = by_hand.open_(waited, secret=KEY.secret, purpose=PURPOSE, bound_to=BINDING.fields())
    assert json.loads(text)["w"] == 2
    fresh = CODEC.seal(request_state.begin(now=NOW, entropy=bytes(16)), BINDING, now=NOW)
    text = by_hand.open_(fresh, secret=KEY.secret, purpose=PURPOSE, bound_to=BINDING.fields())
    assert set(json.loads(text)) == {"v", "fid", "fst", "iat", "exp", "n", "q"}


# What it is bound to


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(BINDING._replace(audience="https://staging.example.com/mcp"), id="94: staging, same key"),
        pytest.param(BINDING._replace(audience=BINDING.audience + "/"), id="a slash at the audience"),
        pytest.param(
            BINDING._replace(principal=Principal("https://as2.example.com", "user-1", BINDING.principal.client_id)),
            id="88: same sub at another issuer",
        ),
        pytest.param(BINDING._replace(principal=BINDING.principal._replace(subject="user-2")), id="86: another user"),
        pytest.param(
            BINDING._replace(principal=BINDING.principal._replace(subject="User-1")), id="sub in another case"
        ),
        pytest.param(
            BINDING._replace(principal=BINDING.principal._replace(client_id="https://evil.example/c.json")),
            id="another client of the same user",
        ),
        pytest.param(BINDING._replace(principal=BINDING.principal._replace(client_id="")), id="61: no client"),
        pytest.param(BINDING._replace(method="prompts/get"), id="89: a prompt of the same name"),
        pytest.param(BINDING._replace(method="resources/read"), id="89: a resource of the same name"),
        pytest.param(BINDING._replace(target="delete_reports"), id="89: another tool"),
        pytest.param(BINDING._replace(target="delete_repor"), id="89: a shorter name"),
        pytest.param(BINDING._replace(arguments=b'{"target":"Q4"}'), id="89: other arguments"),
        pytest.param(BINDING._replace(arguments=b"{}"), id="89: no arguments"),
        pytest.param(BINDING._replace(method="tools/calld", target="elete_report"), id="a byte from target to method"),
        pytest.param(
            BINDING._replace(principal=Principal("https://as.example.comu", "ser-1", BINDING.principal.client_id)),
            id="88: a byte from sub to issuer",
        ),
        pytest.param(
            BINDING._replace(principal=Principal("https://as.example.co", "muser-1", BINDING.principal.client_id)),
            id="88: a byte from issuer to sub",
        ),
    ],
)
def test_a_state_does_not_open_for_another_request(other: Binding) -> None:
    """SECURITY 2.2, AAD; items 86 to 94; CASES 61 and 105."""
    token = CODEC.seal(request_state.begin(now=NOW, entropy=bytes(16)), BINDING, now=NOW)
    assert refusal(token, binding=other) == "tag"


def test_the_whole_digest_of_the_arguments_is_bound() -> None:
    """SECURITY 2.3: a truncated one would leave 2^64 work for a client that picks both argument sets."""
    assert BINDING.fields()[-1] == hashlib.sha256(BINDING.arguments).digest()
    assert len(BINDING.fields()[-1]) == 32


def test_the_digest_of_a_question_is_that_of_its_canonical_form() -> None:
    """DESIGN 3: an answer is pinned to the question shown, whatever the order of its members."""
    one = {"method": "elicitation/create", "params": {"message": "é?", "mode": "form", "n": 1}}
    same = {"params": {"n": 1.0, "mode": "form", "message": "é?"}, "method": "elicitation/create"}
    digest = hashlib.sha256(strict_json.canonical(one)).digest()
    assert request_state.digest(one) == urlsafe_b64encode(digest).decode().rstrip("=")
    assert request_state.digest(one) == request_state.digest(same)
    assert request_state.digest(one) != request_state.digest({**one, "params": {**one["params"], "message": "e?"}})  # type: ignore[dict-item]


# How long it lives


@pytest.mark.parametrize(
    ("now", "reason"),
    [
        (NOW - CLOCK_SKEW - 1, "future"),
        (NOW - CLOCK_SKEW, None),
        (NOW - 1, None),
        (NOW, None),
        (NOW + LIFETIME - 1, None),
        (NOW + LIFETIME - 0.5, None),
        (NOW + LIFETIME, "expired"),
        (NOW + LIFETIME + 10**9, "expired"),
        (0, "future"),
        (math.inf, "expired"),
        (-math.inf, "future"),
        (math.nan, "future"),
    ],
)
def test_a_state_is_valid_from_a_minute_before_its_issue_until_it_expires(now: float, reason: str | None) -> None:
    """SECURITY 2.2 and item 95. A clock that is no number proves nothing."""
    token = CODEC.seal(request_state.begin(now=NOW, entropy=bytes(16)), BINDING, now=NOW)
    if reason is None:
        assert CODEC.open(token, BINDING, now=now).rounds == 1  # type: ignore[arg-type]
    else:
        assert refusal(token, now=now) == reason


def test_a_fresh_looking_chain_ends_an_hour_after_its_first_round() -> None:
    """SECURITY item 95: the age cap counts from the first issue, which each seal carries on."""
    codec = RequestStateCodec(Keyring(current=KEY), max_rounds=100)
    state, now = request_state.begin(now=NOW, entropy=bytes(16)), NOW
    while now < NOW + MAX_AGE:
        token = codec.seal(state, BINDING, now=now)
        now += 300
        state = codec.open(token, BINDING, now=now)
        assert (state.first_issued_at, state.flow_id) == (NOW, bytes(16))
    assert refusal(codec.seal(state, BINDING, now=now), codec=codec, now=now + 1) == "age"


def test_the_ninth_round_is_refused() -> None:
    """SECURITY item 95: the round cap is inside the seal, where a client cannot reset it."""
    state = request_state.begin(now=NOW, entropy=bytes(16))
    for round_ in range(1, MAX_ROUNDS + 1):
        state = CODEC.open(CODEC.seal(state, BINDING, now=NOW), BINDING, now=NOW)
        assert state.rounds == round_
    assert refusal(CODEC.seal(state, BINDING, now=NOW)) == "rounds"


def test_the_limits_can_be_configured() -> None:
    """SECURITY item 95, TTL 2 s; CASES 22: the cap is configurable."""
    codec = RequestStateCodec(Keyring(current=KEY), lifetime=2, max_age=4, max_rounds=1)
    state = request_state.begin(now=NOW, entropy=bytes(16))
    token = codec.seal(state, BINDING, now=NOW)
    assert codec.open(token, BINDING, now=NOW + 1).rounds == 1
    assert refusal(token, codec=codec, now=NOW + 2) == "expired"
    late = codec.seal(state, BINDING, now=NOW + 4)
    assert refusal(late, codec=codec, now=NOW + 5) == "age"
    again = codec.seal(state._replace(rounds=1), BINDING, now=NOW)
    assert refusal(again, codec=codec, now=NOW) == "rounds"


@pytest.mark.parametrize("limit", ["lifetime", "max_age", "max_rounds"])
@pytest.mark.parametrize("value", [math.inf, math.nan, 0, -1, 2.5, True, "600", None])
def test_a_limit_that_limits_nothing_is_refused_at_the_start(limit: str, value: Any) -> None:
    """CASES 62: a lifetime of infinity made states that never expired."""
    with pytest.raises(ConfigurationError, match=f"{limit}.*whole number"):
        RequestStateCodec(Keyring(current=KEY), **{limit: value})


NO_INTEGERS: list[Any] = [None, math.nan, math.inf, "1790000000", True, [], {}, 1.5]
NO_FLOW_IDS: list[Any] = [None, 5, "", "A", "AAAA", "A" * 44, "é" * 22, [], "=" * 22]
NO_OBJECTS: list[Any] = [None, [], "x", 5, True]
NO_VERSIONS: list[Any] = [0, 2, None, "1", [1]]


@pytest.mark.parametrize(
    ("claims", "reason"),
    [
        ({"v": ...}, "version"),
        *[({claim: ...}, "claims") for claim in ("fid", "fst", "iat", "exp", "n")],
        *[({claim: value}, "claims") for claim in ("fst", "iat", "exp", "n", "w") for value in NO_INTEGERS],
        *[({"fid": value}, "claims") for value in NO_FLOW_IDS],
        *[({claim: value}, "claims") for claim in ("q", "a") for value in NO_OBJECTS],
        *[({"v": value}, "version") for value in NO_VERSIONS],
        *[({"n": value}, "rounds") for value in (0, -1, MAX_ROUNDS + 1, 10**30)],
        *[({"w": value}, "rounds") for value in (-1, 2, -(10**30), 10**30)],
        ({"iat": NOW + CLOCK_SKEW + 1}, "future"),
        ({"exp": NOW}, "expired"),
        ({"fst": NOW - MAX_AGE - 1}, "age"),
        ({"fst": -(10**30)}, "age"),
    ],
    ids=str,
)
def test_claims_that_we_would_never_seal_are_refused(claims: JsonObject, reason: str) -> None:
    """STYLE 4.10: acceptance is stated positively. The next version's claims are no reason for a crash."""
    assert CODEC.open(forged(), BINDING, now=NOW).rounds == 1
    assert refusal(forged(**claims)) == reason


# Through the endpoint


class Confirm(BaseModel):
    confirm: bool


done: list[Any] = []


@tool(destructive=True)
def erase(target: Any, ctx: Context, note: Any = None) -> str:
    """Erase something. Asks first."""
    match ctx.ask("confirm", f"Erase {target}?", Confirm):
        case Accepted(Confirm(confirm=True)):
            done.append(target)
            return f"Erased {target}."
        case _:
            return ctx.stop("Kept.")


@tool(destructive=True)
def erase_all(target: Any, ctx: Context, note: Any = None) -> str:
    """Erase everything. Asks the very same question first."""
    match ctx.ask("confirm", f"Erase {target}?", Confirm):
        case Accepted(Confirm(confirm=True)):
            done.append(("all", target))
            return "Erased everything."
        case _:
            return ctx.stop("Kept.")


@pytest.fixture
def server() -> Server:
    done.clear()
    return Server([erase, erase_all])


@pytest.fixture
def alice(server: Server) -> Client:
    return server.client("alice")


YES = {"confirm": accept(confirm=True)}


def call(arguments: JsonObject | None = None, *, name: str = "erase") -> JsonObject:
    return {"name": name, "arguments": {"target": "Q3"} if arguments is None else arguments}


def asked(client: Client, params: JsonObject | None = None) -> str:
    """The state of a question that was put to a client."""
    reply = client.request("tools/call", params or call())
    state: str = reply.result["requestState"]
    return state


def retried(client: Client, state: object, params: JsonObject | None = None) -> Reply:
    return client.request("tools/call", {**(params or call()), "inputResponses": YES, "requestState": state})


FROZEN = {
    "code": -32602,
    "message": "Invalid or expired requestState",
    "data": {"reason": "invalid_request_state"},
}


def assert_frozen(reply: Reply) -> None:
    """R: the one answer, and nothing was done."""
    expected = {"jsonrpc": "2.0", "id": reply.message["id"], "error": FROZEN}
    assert reply.status == 400
    assert reply.http.body == json.dumps(expected, separators=(",", ":")).encode()
    assert "requestState" in reply.http.facts["reason"]
    assert done == []


def test_a_retry_with_its_state_goes_on(alice: Client) -> None:
    """The good case, without which the refusals would prove nothing."""
    assert retried(alice, asked(alice)).text == "Erased Q3."
    assert done == ["Q3"]


TAMPERED: list[tuple[str, Callable[[str], object]]] = [
    ("a character flipped at the start", lambda state: state[:4] + ("B" if state[4] == "A" else "A") + state[5:]),
    (
        "a character flipped in the middle",
        lambda state: state[:200] + ("B" if state[200] == "A" else "A") + state[201:],
    ),
    ("a character flipped at the end", lambda state: state[:-1] + ("B" if state[-1] == "A" else "A")),
    ("trimmed by one", lambda state: state[:-1]),
    ("cut in half", lambda state: state[: len(state) // 2]),
    ("a word appended", lambda state: state + "-TAMPERED"),
    ("padding appended", lambda state: state + "=="),
    ("a space appended", lambda state: state + " "),
    ("a NUL appended", lambda state: state + "\x00"),
    ("a newline appended", lambda state: state + "\n"),
    ("an emoji appended", lambda state: state + "😀"),
    ("sent twice over", lambda state: state + state),
    ("empty", lambda state: ""),
    ("40 KB of A", lambda state: "A" * 40_000),
    ("a megabyte less the rest", lambda state: "rs1." + "A" * 1_000_000),
    ("a claims object", lambda state: {"v": 1, "q": {"confirm": "x"}, "n": 1}),
    ("claims as JSON text", lambda state: json.dumps({"step": "signed-in"})),
    ("claims as Base64", lambda state: "rs1." + urlsafe_b64encode(b'{"step":"signed-in"}').decode().rstrip("=")),
    ("a number", lambda state: 5),
    ("true", lambda state: True),
    ("false", lambda state: False),
    ("a list", lambda state: [state]),
    ("another version", lambda state: state.replace("rs1.", "rs2.")),
    ("another key id", lambda state: by_hand.spelled((7).to_bytes(4, "big") + by_hand.body_of(state)[4:])),
]


@pytest.mark.parametrize("tamper", [pytest.param(tamper, id=what) for what, tamper in TAMPERED])
def test_every_altered_state_gets_the_same_answer(alice: Client, tamper: Callable[[str], object]) -> None:
    """SECURITY 2.7, items 83, 85 and 106; CASES 65, 75 and 81."""
    assert_frozen(retried(alice, tamper(asked(alice))))


@pytest.mark.parametrize(
    "params",
    [
        pytest.param(call({"target": "Q4"}), id="another value"),
        pytest.param(call({"target": "q3"}), id="another case"),
        pytest.param(call({"Target": "Q3"}), id="another case of the key"),
        pytest.param(call({"target": "Q3", "note": None}), id="one argument more, null"),
        pytest.param(call({"target": "Q3", "confirm": True}), id="77: the answer as an argument"),
        pytest.param(call({}), id="no argument"),
        pytest.param({"name": "erase"}, id="arguments left out"),
        pytest.param(call(name="erase_all"), id="a tool that asks the same question"),
    ],
)
def test_a_state_serves_no_other_call(alice: Client, params: JsonObject) -> None:
    """SECURITY item 89: confirms X, executes Y."""
    assert_frozen(retried(alice, asked(alice), params))


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (1, "1"),
        (1, True),
        (0, False),
        (0, ""),
        (None, 0),
        (1, [1]),
        ([], {}),
        (1, 1.5),
        (9007199254740992, 9007199254740993),
        ("é", "e\u0301"),
    ],
)
def test_values_that_look_alike_are_other_arguments(alice: Client, first: Any, second: Any) -> None:
    """SECURITY 2.3 and item 89."""
    assert_frozen(retried(alice, asked(alice, call({"target": first})), call({"target": second})))


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ('{"target":1,"note":"é"}', '{"note":"\\u00e9","target":1}'),
        ('{"target":1}', '{ "target" : 1.0 }'),
        ('{"target":1}', '{"target":1e0}'),
        ('{"target":0}', '{"target":-0.0}'),
        ('{"target":9007199254740992}', '{"target":9007199254740992.0}'),
        ('{"target":[{"b":1,"a":2}]}', '{"target":[{"a":2.0,"b":1}]}'),
    ],
)
def test_another_spelling_of_the_same_arguments_goes_on(server: Server, first: str, second: str) -> None:
    """SECURITY 2.3: the client's JSON library may write them anew."""
    client = server.client("alice")

    def post(arguments: str, **members: Any) -> Reply:
        meta = {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": client.capabilities,
        }
        params = json.dumps({"name": "erase", "_meta": meta, **members})
        body = f'{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{params[:-1]},"arguments":{arguments}}}}}'
        headers = {"mcp-protocol-version": "2026-07-28", "mcp-method": "tools/call", "mcp-name": "erase"}
        return client.post(body.encode(), headers)

    state = post(first).result["requestState"]
    assert post(second, requestState=state, inputResponses=YES).text.startswith("Erased")


def test_a_state_is_for_its_user_and_its_client(server: Server, alice: Client) -> None:
    """SECURITY item 86; MCP client/elicitation, Security 1: bound to the client and the user."""
    state = asked(alice)
    assert_frozen(retried(server.client("bob"), state))
    assert_frozen(retried(server.client("alice", client_id="https://other.example/c.json"), state))
    assert_frozen(retried(server.client("Alice"), state))
    assert retried(server.client("alice"), state).text == "Erased Q3."


def test_states_of_two_open_flows_cannot_be_swapped(alice: Client) -> None:
    """CASES 75."""
    one, other = asked(alice), asked(alice, call({"target": "Q4"}))
    assert_frozen(retried(alice, one, call({"target": "Q4"})))
    assert_frozen(retried(alice, other))


def test_a_state_of_staging_is_not_one_of_production(server: Server, alice: Client) -> None:
    """SECURITY item 94: the same keys, another audience."""
    url = "https://staging.example.com/mcp"
    staging = Server([erase], keyring=server.keyring, settings={"MCP_RESOURCE_URL": url})
    bound_there = staging.client("alice")
    bound_there.token = staging.issuer.mint("alice", aud=url)
    state = asked(bound_there)
    assert_frozen(retried(alice, state))
    assert retried(bound_there, state).text == "Erased Q3."


def test_an_expired_state_gets_the_frozen_answer_and_the_call_can_begin_again(server: Server, alice: Client) -> None:
    """SECURITY item 95; CASES 82: the frozen answer is no dead end."""
    state = asked(alice)
    server.clock.advance(LIFETIME)
    refused = retried(alice, state)
    assert_frozen(refused)
    assert refused.http.facts["reason"] == "requestState refused: expired"
    assert retried(alice, asked(alice)).text == "Erased Q3."


def test_another_user_a_tampered_and_an_expired_state_get_the_same_bytes(server: Server, alice: Client) -> None:
    """SECURITY item 106: apart from the id. An attacker learns nothing by comparing."""
    state = asked(alice)
    replies = [
        retried(server.client("bob"), state),
        retried(alice, state[:-1]),
        retried(alice, state, call({"target": "Q4"})),
        retried(alice, 5),
    ]
    server.clock.advance(LIFETIME)
    replies.append(retried(alice, state))
    assert len({reply.http.body.replace(b'"id":%d' % reply.message["id"], b"") for reply in replies}) == 1
    assert len({json.dumps(dict(reply.http.headers), sort_keys=True) for reply in replies}) == 1
    assert len({reply.http.facts["reason"] for reply in replies}) == 3


@pytest.mark.parametrize("state", [None, ...], ids=["null", "left out"])
def test_answers_without_a_state_count_for_nothing(alice: Client, state: object) -> None:
    """SECURITY item 98; CASES 66: a null state is none, and the question is asked."""
    params = {**call(), "inputResponses": YES}
    reply = alice.request("tools/call", params if state is ... else {**params, "requestState": state})
    assert reply.result["resultType"] == "input_required"
    assert list(reply.asked) == ["confirm"]
    assert done == []


def test_nothing_is_sealed_for_a_caller_without_a_name(server: Server, alice: Client) -> None:
    """CASES 79: elicitation is tied to an authenticated user."""
    for token in ("", "x", server.issuer.mint("alice", client_id=""), server.issuer.mint("")):
        reply = alice.request("tools/call", call(), authorization=f"Bearer {token}" if token else None)
        assert reply.status == 401
        assert b"requestState" not in reply.http.body


@pytest.mark.parametrize("member", ["inputResponses", "requestState"])
@pytest.mark.parametrize("method", ["tools/list", "server/discover"])
def test_a_method_of_one_round_takes_no_member_of_a_retry(alice: Client, method: str, member: str) -> None:
    """CASES 81."""
    reply = alice.request(method, {member: {}})
    assert (reply.status, reply.error["code"]) == (400, -32602)


def test_a_state_survives_a_rotation_and_not_the_loss_of_its_key(server: Server, alice: Client) -> None:
    """SECURITY items 92 and 97: on any instance, after a restart, with the old key retired."""
    first, second = asked(alice), asked(alice)
    server.keyring = Keyring(current=OTHER_KEY, retired=[server.keyring.current])
    server.restart()
    assert retried(alice, first).text == "Erased Q3."
    done.clear()
    server.keyring = Keyring(current=OTHER_KEY)
    server.restart()
    assert_frozen(retried(alice, second))


def test_a_new_access_token_of_the_same_user_goes_on(server: Server, alice: Client) -> None:
    """CASES 90: the state is bound to the user and not to the token artifact."""
    state = asked(alice)
    server.clock.advance(300)
    alice.token = server.issuer.mint("alice", jti="another", scope="more")
    assert retried(alice, state).text == "Erased Q3."


def test_a_state_says_nothing_to_who_carries_it(alice: Client) -> None:
    """DESIGN 1.2: what travels is sealed."""
    body = by_hand.body_of(asked(alice, call({"target": "sentinel-report"})))
    for told in (b"sentinel", b"confirm", b"alice", CLIENT_ID.encode(), ISSUER.encode(), RESOURCE.encode()):
        assert told not in body
