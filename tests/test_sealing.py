"""The seal rs1, byte by byte: its format, everything that must not open, and secrets that must not show."""

import hashlib
import inspect
import json
import os
import traceback
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Callable, Iterator
from itertools import pairwise, permutations
from pathlib import Path
from string import ascii_letters, digits
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.errors import ConfigurationError, SealRefused
from app.sealing import MAX_CLAIMS, MAX_TOKEN, BlindIndex, Key, Keyring, Purpose, Seal, length_prefixed
from tests import rs1_by_hand as by_hand

VECTORS: dict[str, Any] = json.loads((Path(__file__).parent / "vectors/purposes.json").read_text())

FIRST = Key(1, bytes(range(32)))
SECOND = Key(2, bytes(range(32, 64)))
BOUND_TO = (b"https://mcp.example.com/mcp", b"https://as.example.com", b"user-1", b"client", b"tools/call", b"erase")
SENTINEL = "sentinel-plaintext"
ALPHABET = ascii_letters + digits + "-_"


def sealed(
    claims: dict[str, Any] | None = None, *, key: Key = FIRST, purpose: Purpose = Purpose.REQUEST_STATE, salt: int = 7
) -> str:
    """A token that is the same in every run, of a length whose last character has no spare bits."""
    claims = {"s": SENTINEL, "n": "." * 70} if claims is None else claims
    return Seal(Keyring(current=key), purpose)._seal(claims, bound_to=BOUND_TO, salt=bytes([salt]) * 32)


TOKEN = sealed()
BODY = by_hand.body_of(TOKEN)
ONE_KEY = Seal(Keyring(current=FIRST), Purpose.REQUEST_STATE)


def refusal(token: object, *, seal: Seal = ONE_KEY, bound_to: tuple[bytes, ...] = BOUND_TO) -> str:
    """Why a token does not open. Anything but SealRefused fails the test."""
    try:
        opened = seal.open(token, bound_to=bound_to)
    except SealRefused as refused:
        return refused.reason
    raise AssertionError(f"{token!r} opens: {opened}")


# The format


def test_hkdf_by_hand_is_hkdf() -> None:
    """RFC 5869 appendix A.1: the second implementation is judged before it judges."""
    output = by_hand.hkdf_sha256(bytes([0x0B] * 22), salt=bytes(range(13)), info=bytes(range(0xF0, 0xFA)), length=42)
    assert output.hex() == ("3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf34007208d5b887185865")


def test_every_purpose_has_a_vector() -> None:
    """SECURITY 2.6. requestState has its own file."""
    assert {f"mcp/{name}" for name in VECTORS} | {"mcp/request-state"} == {purpose.value for purpose in Purpose}


@pytest.mark.parametrize("name", VECTORS)
def test_both_implementations_agree_on_a_vector_byte_for_byte(name: str) -> None:
    """SECURITY 2.2, in both directions and in every intermediate value."""
    vector = VECTORS[name]
    kid, purpose = vector["kid"], vector["purpose"]
    secret, salt = bytes.fromhex(vector["key"]), bytes.fromhex(vector["salt"])
    bound_to = [field.encode() for field in vector["bound_to"]]
    seal = Seal(Keyring(current=Key(kid, secret)), Purpose(purpose))

    assert seal._seal(vector["claims"], bound_to=bound_to, salt=salt) == vector["token"]
    assert seal.open(vector["token"], bound_to=bound_to) == vector["claims"]
    assert len(vector["token"]) == vector["token_len"]

    derived = by_hand.derive(secret, purpose=purpose, kid=kid, salt=salt)
    assert [derived.key.hex(), derived.nonce.hex(), derived.commitment.hex()] == [
        vector["enc_key"],
        vector["nonce"],
        vector["commitment"],
    ]
    assert by_hand.associated_data(purpose, kid, bound_to).hex() == vector["aad"]
    opened = by_hand.open_(vector["token"], secret=secret, purpose=purpose, bound_to=bound_to)
    assert opened == vector["plaintext"].encode()
    by_the_other = by_hand.seal(opened, secret=secret, kid=kid, salt=salt, purpose=purpose, bound_to=bound_to)
    assert by_the_other == vector["token"]


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda children: st.lists(children, max_size=4) | st.dictionaries(st.text(), children, max_size=4),
    max_leaves=12,
)
CLAIMS = st.dictionaries(st.text(), JSON_VALUES, max_size=5)
CONTEXTS = st.lists(st.binary(max_size=40), max_size=8)


@settings(deadline=None, max_examples=150)
@given(claims=CLAIMS, bound_to=CONTEXTS, purpose=st.sampled_from(Purpose), key=st.sampled_from([FIRST, SECOND]))
def test_what_one_implementation_seals_the_other_opens(
    claims: dict[str, Any], bound_to: list[bytes], purpose: Purpose, key: Key
) -> None:
    """SECURITY 2.2, for any claims and any context."""
    seal = Seal(Keyring(current=key), purpose)
    token = seal.seal(claims, bound_to=bound_to)
    assert seal.open(token, bound_to=bound_to) == claims
    text = by_hand.open_(token, secret=key.secret, purpose=purpose.value, bound_to=bound_to)
    assert json.loads(text) == claims
    assert len(text) % 64 == 0
    by_the_other = by_hand.seal(
        text, secret=key.secret, kid=key.kid, salt=b"\xa5" * 32, purpose=purpose.value, bound_to=bound_to
    )
    assert seal.open(by_the_other, bound_to=bound_to) == claims


@settings(deadline=None, max_examples=150)
@given(bound_to=CONTEXTS, other=CONTEXTS)
def test_a_token_opens_in_its_own_context_only(bound_to: list[bytes], other: list[bytes]) -> None:
    """SECURITY 2.2: the associated data has one reading."""
    token = ONE_KEY.seal({}, bound_to=bound_to)
    assert ONE_KEY.open(token, bound_to=bound_to) == {}
    if other != bound_to:
        assert refusal(token, bound_to=tuple(other)) == "tag"


@settings(deadline=None, max_examples=200)
@given(data=st.data())
def test_an_edited_token_does_not_open(data: st.DataObject) -> None:
    """SECURITY 5, item 83: any run of characters replaced by any other text."""
    start = data.draw(st.integers(0, len(TOKEN)))
    end = data.draw(st.integers(start, len(TOKEN)))
    inserted = data.draw(st.text(alphabet=ALPHABET + ".=\n\u0661é", max_size=12) | st.text(max_size=4))
    edited = TOKEN[:start] + inserted + TOKEN[end:]
    if edited != TOKEN:
        refusal(edited)


# What must not open


def test_no_single_bit_can_be_flipped() -> None:
    """SECURITY 2.8, negative set: and the reason tells which guard stopped it."""
    reasons = {bit: _refusal_of_flipped(bit) for bit in range(8 * len(BODY))}
    assert set(reasons.values()) == {"kid", "commitment", "tag"}
    assert all(reasons[bit] == "kid" for bit in range(32))
    assert all(reasons[bit] == "commitment" for bit in range(32, 8 * 68))
    assert all(reasons[bit] == "tag" for bit in range(8 * 68, 8 * len(BODY)))


def _refusal_of_flipped(bit: int) -> str:
    flipped = bytearray(BODY)
    flipped[bit // 8] ^= 0x80 >> bit % 8
    return refusal(by_hand.spelled(bytes(flipped)))


def test_no_prefix_of_a_token_opens() -> None:
    """SECURITY 5, item 83: truncated at every length."""
    for length in range(len(TOKEN)):
        refusal(TOKEN[:length])


def test_no_character_can_be_replaced_left_out_or_doubled() -> None:
    """SECURITY 5, item 83: each character."""
    for position, character in enumerate(TOKEN):
        for other in ("A", "_", "=", ".", " ", "\u0661"):
            if other != character:
                refusal(TOKEN[:position] + other + TOKEN[position + 1 :])
        for edited in (TOKEN[:position] + TOKEN[position + 1 :], TOKEN[:position] + character + TOKEN[position:]):
            if edited != TOKEN:
                refusal(edited)


@pytest.mark.parametrize(("blocks", "spare_bits"), [(1, 4), (2, 2), (3, 0)])
def test_the_last_character_has_one_spelling(blocks: int, spare_bits: int) -> None:
    """CASES 62: a decoder that ignores the spare bits of the last character takes several tokens for one."""
    token = sealed({"s": "x" * (64 * (blocks - 1) + 1)})
    assert (len(by_hand.body_of(token)) * 8) % 6 == {4: 2, 2: 4, 0: 0}[spare_bits]
    reasons = [refusal(token[:-1] + other) for other in ALPHABET if other != token[-1]]
    assert len(reasons) == 63
    assert reasons.count("shape") >= 2**spare_bits - 1


@pytest.mark.parametrize(
    "spell",
    [
        pytest.param(lambda token: token + "=", id="one padding character"),
        pytest.param(lambda token: token + "==", id="two padding characters"),
        pytest.param(lambda token: token + "A", id="one more character"),
        pytest.param(lambda token: token + "AAAA", id="three more bytes"),
        pytest.param(lambda token: token + "-TAMPERED", id="a word appended"),
        pytest.param(lambda token: token + "\n", id="a newline appended"),
        pytest.param(lambda token: token + "\x00", id="a NUL appended"),
        pytest.param(lambda token: token + " ", id="a space appended"),
        pytest.param(lambda token: " " + token, id="a space in front"),
        pytest.param(lambda token: "\ufeff" + token, id="a byte order mark in front"),
        pytest.param(lambda token: token[:40] + "\n" + token[40:], id="a line break within"),
        pytest.param(lambda token: token + "\u0661", id="an Arabic digit"),
        pytest.param(lambda token: token[:-1] + "\uff21", id="a full-width letter"),
        pytest.param(lambda token: token[:-1] + "\ud800", id="a lone surrogate"),
        pytest.param(lambda token: "RS1." + token[4:], id="the prefix in capitals"),
        pytest.param(lambda token: "rs2." + token[4:], id="another version"),
        pytest.param(lambda token: "rs1" + token[4:], id="no dot"),
        pytest.param(lambda token: "rs1.." + token[4:], id="two dots"),
        pytest.param(lambda token: "rs1.rs1." + token[4:], id="the prefix twice"),
        pytest.param(lambda token: token[4:], id="no prefix"),
        pytest.param(lambda token: token + "." + token[4:], id="two bodies"),
        pytest.param(lambda token: "rs1." + b64encode(BODY).decode(), id="the other Base64 alphabet"),
        pytest.param(lambda token: "rs1." + BODY.hex(), id="hexadecimal"),
        pytest.param(lambda token: "rs1.", id="an empty body"),
        pytest.param(lambda token: "", id="nothing"),
        pytest.param(lambda token: by_hand.spelled(BODY[:83]), id="a body shorter than an empty token"),
    ],
)
def test_a_token_has_one_spelling(spell: Callable[[str], str]) -> None:
    """SECURITY 2.2: strict, canonical base64url without padding. Nothing is decrypted for the rest."""
    misspelt = spell(TOKEN)
    assert misspelt != TOKEN
    # Some bodies decode: they are longer by whole bytes, or read as another version's.
    assert refusal(misspelt) in ("shape", "tag", "kid")


@pytest.mark.parametrize("token", [None, True, 1, 1.5, b"rs1.AAAA", [], ["rs1.AAAA"], {}, {"token": "rs1."}])
def test_only_text_is_a_token(token: object) -> None:
    """SECURITY 2.7: the state is whatever JSON value the client sent."""
    assert refusal(token) == "shape"


def test_oversized_input_is_refused_by_its_length_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """SECURITY 5, item 85: 40 KB of A, without decoding a byte of it."""
    monkeypatch.setattr("app.sealing.urlsafe_b64decode", _must_not_run)
    assert refusal("A" * 40_000) == "length"
    assert refusal("rs1." + "A" * (MAX_TOKEN - 3)) == "length"
    with pytest.raises(AssertionError, match="was not expected to run"):
        ONE_KEY.open("rs1." + "A" * (MAX_TOKEN - 4), bound_to=())


def test_an_unknown_key_id_derives_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """SECURITY 2.6: an attacker picks the kid, and must not make us work for it."""
    monkeypatch.setattr(Seal, "_derive", _must_not_run)
    for kid in (0, 2, 256, 2**24, 2**32 - 1):
        assert refusal(by_hand.spelled(kid.to_bytes(4, "big") + BODY[4:])) == "kid"


def _must_not_run(*_: object, **__: object) -> None:
    raise AssertionError("this was not expected to run")


@pytest.mark.parametrize("changed", range(len(BOUND_TO)))
@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda field: field + b"x", id="longer"),
        pytest.param(lambda field: field[:-1], id="shorter"),
        pytest.param(lambda field: field + b"\x00", id="NUL appended"),
        pytest.param(lambda field: field + b"/", id="slash appended"),
        pytest.param(lambda field: field.swapcase(), id="other case"),
        pytest.param(lambda field: b"", id="empty"),
        pytest.param(lambda field: field.replace(b"e", "\u0435".encode()), id="a Cyrillic letter"),
    ],
)
def test_a_token_does_not_open_with_one_field_changed(changed: int, change: Callable[[bytes], bytes]) -> None:
    """SECURITY 2.2: every field of the context is authenticated."""
    fields = list(BOUND_TO)
    fields[changed] = change(fields[changed])
    if tuple(fields) != BOUND_TO:
        assert refusal(TOKEN, bound_to=tuple(fields)) == "tag"


def rearranged() -> Iterator[tuple[str, tuple[bytes, ...]]]:
    for border in range(len(BOUND_TO) - 1):
        before, left, right, after = (
            BOUND_TO[:border],
            BOUND_TO[border],
            BOUND_TO[border + 1],
            BOUND_TO[border + 2 :],
        )
        yield f"byte over border {border} to the left", (*before, left + right[:1], right[1:], *after)
        yield f"byte over border {border} to the right", (*before, left[:-1], left[-1:] + right, *after)
        yield f"fields {border} and {border + 1} swapped", (*before, right, left, *after)
        yield f"fields {border} and {border + 1} joined", (*before, left + right, *after)
        yield f"everything moved into field {border}", (*before, left + right, b"", *after)
    for left_out in range(len(BOUND_TO)):
        yield f"field {left_out} left out", BOUND_TO[:left_out] + BOUND_TO[left_out + 1 :]
    yield "one empty field more", (*BOUND_TO, b"")
    yield "one empty field in front", (b"", *BOUND_TO)
    yield "no field", ()
    yield "length prefixes smuggled into one field", (length_prefixed(*BOUND_TO)[4:],)


@pytest.mark.parametrize("fields", [pytest.param(fields, id=what) for what, fields in rearranged()])
def test_nothing_moves_across_a_field_border(fields: tuple[bytes, ...]) -> None:
    """SECURITY 5, item 88: sub "a" of "xb" is not sub "ab" of "x"."""
    assert refusal(TOKEN, bound_to=fields) == "tag"


@pytest.mark.parametrize(("one", "other"), list(permutations(Purpose, 2)))
def test_a_token_of_one_purpose_serves_no_other(one: Purpose, other: Purpose) -> None:
    """DESIGN 5: purposes never mix, with one ring for all."""
    token = sealed(purpose=one)
    assert refusal(token, seal=Seal(Keyring(current=FIRST), other)) == "commitment"


# What only the holder of a key could send


@pytest.mark.parametrize(
    "text",
    [b"[]", b"5", b'"text"', b"null", b"not JSON", b'{"a":', b"\xff\xfe", b"", b"[" * 5000, b'{"a":"\xff"}'],
    ids=lambda text: repr(text[:12]),
)
def test_a_good_seal_around_no_json_object_is_refused_too(text: bytes) -> None:
    """STYLE 4.7: `open` verifies. Another writer with the same key is no reason for a crash."""
    token = by_hand.seal(
        text,
        secret=FIRST.secret,
        kid=1,
        salt=bytes(32),
        purpose=Purpose.REQUEST_STATE.value,
        bound_to=BOUND_TO,
        pad=bool(text),
    )
    assert refusal(token) == "claims"


# Keys


def test_a_retired_key_opens_and_the_current_one_seals() -> None:
    """SECURITY 2.6 and item 92: the minted kid is the current key's."""
    ring = Keyring(current=SECOND, retired=[FIRST])
    rotated = Seal(ring, Purpose.REQUEST_STATE)
    assert rotated.open(TOKEN, bound_to=BOUND_TO)["s"] == SENTINEL
    fresh = rotated.seal({}, bound_to=BOUND_TO)
    assert by_hand.body_of(fresh)[:4] == (2).to_bytes(4, "big")
    assert rotated.is_current(fresh)
    assert not rotated.is_current(TOKEN)


def test_a_dropped_key_opens_nothing_any_more() -> None:
    """SECURITY 2.6: after a compromise the key is dropped at once."""
    assert refusal(TOKEN, seal=Seal(Keyring(current=SECOND), Purpose.REQUEST_STATE)) == "kid"


def test_a_rotation_of_three_deployments_never_refuses_a_token() -> None:
    """SECURITY 2.6: two versions run at once during each of them."""
    deployments = [
        Keyring(current=FIRST),
        Keyring(current=FIRST, retired=[SECOND]),
        Keyring(current=SECOND, retired=[FIRST]),
        Keyring(current=SECOND),
    ]
    for older, newer in pairwise(deployments):
        for sealing, opening in ((older, newer), (newer, older)):
            token = Seal(sealing, Purpose.REQUEST_STATE).seal({"a": 1}, bound_to=BOUND_TO)
            assert Seal(opening, Purpose.REQUEST_STATE).open(token, bound_to=BOUND_TO) == {"a": 1}


def test_swapped_ring_entries_are_caught_before_decryption() -> None:
    """SECURITY 2.1, key commitment: an operator gave the ids to the wrong keys."""
    swapped = Keyring(current=Key(1, SECOND.secret), retired=[Key(2, FIRST.secret)])
    assert refusal(TOKEN, seal=Seal(swapped, Purpose.REQUEST_STATE)) == "commitment"


@pytest.mark.parametrize("secret", [SECOND.secret, FIRST.secret], ids=["another key", "the very same key"])
def test_a_key_id_cannot_be_transplanted(secret: bytes) -> None:
    """SECURITY 5, item 91: the kid stands in the derivation, so even one secret under two ids is two keys."""
    ring = Keyring(current=FIRST, retired=[Key(2, secret)])
    transplanted = by_hand.spelled((2).to_bytes(4, "big") + BODY[4:])
    assert refusal(transplanted, seal=Seal(ring, Purpose.REQUEST_STATE)) == "commitment"


@pytest.mark.parametrize(
    ("build", "told"),
    [
        pytest.param(lambda: Key(1, b"short"), "has 5 bytes", id="too short"),
        pytest.param(lambda: Key(1, bytes(33)), "has 33 bytes", id="too long"),
        pytest.param(lambda: Key(0, bytes(32)), "renumber", id="id zero"),
        pytest.param(lambda: Key(-1, bytes(32)), "renumber", id="id below zero"),
        pytest.param(lambda: Key(2**32, bytes(32)), "renumber", id="id beyond 32 bits"),
        pytest.param(lambda: Keyring(current=FIRST, retired=[FIRST]), "its own", id="the same id twice"),
        pytest.param(lambda: Keyring(current=FIRST, retired=[SECOND]).pepper, "pepper", id="no pepper to tell"),
    ],
)
def test_a_ring_that_cannot_work_is_refused_with_the_remedy(build: Callable[[], object], told: str) -> None:
    """STYLE 4.13."""
    with pytest.raises(ConfigurationError, match=told):
        build()


def test_the_largest_key_id_works() -> None:
    """SECURITY 2.2: kid is four bytes."""
    key = Key(2**32 - 1, FIRST.secret)
    seal = Seal(Keyring(current=key), Purpose.FLOW)
    assert seal.open(seal.seal({"a": 1}, bound_to=()), bound_to=()) == {"a": 1}


# Chance


def test_no_two_tokens_of_equal_claims_are_equal() -> None:
    """SECURITY 2.1: a fresh key and nonce for every token."""
    tokens = [ONE_KEY.seal({}, bound_to=()) for _ in range(200)]
    assert len({by_hand.body_of(token)[4:36] for token in tokens}) == 200
    assert len({by_hand.body_of(token)[68:] for token in tokens}) == 200


def test_the_salt_is_drawn_by_the_seal_and_by_nobody_else(monkeypatch: pytest.MonkeyPatch) -> None:
    """STYLE 4.3: no caller may choose it, and no snapshot may hold it."""
    assert list(inspect.signature(Seal.seal).parameters) == ["self", "claims", "bound_to"]
    drawn: list[int] = []

    def urandom(size: int) -> bytes:
        drawn.append(size)
        return b"\x55" * size

    monkeypatch.setattr(os, "urandom", urandom)
    token = Seal(Keyring(current=FIRST), Purpose.FLOW).seal({}, bound_to=())
    assert drawn == [32]
    assert by_hand.body_of(token)[4:36] == b"\x55" * 32


# Size


def claims_of(size: int) -> dict[str, str]:
    """Claims that are exactly so many bytes of JSON."""
    return {"s": "x" * (size - len('{"s":""}'))}


def test_the_largest_claims_make_a_token_that_opens() -> None:
    """SECURITY 2.4: 16 KiB of claims stay far below 32 KiB of token."""
    token = ONE_KEY.seal(claims_of(MAX_CLAIMS), bound_to=BOUND_TO)
    assert len(token) < MAX_TOKEN
    assert ONE_KEY.open(token, bound_to=BOUND_TO) == claims_of(MAX_CLAIMS)


def test_larger_claims_are_not_sealed() -> None:
    """SECURITY 2.4: the mint fails, and says by how much."""
    with pytest.raises(ValueError, match="16385 bytes of claims; at most 16384"):
        ONE_KEY.seal(claims_of(MAX_CLAIMS + 1), bound_to=BOUND_TO)
    with pytest.raises(ValueError, match="at most 16384"):
        # One emoji is twelve bytes of escaped JSON: the measure is bytes, not characters.
        ONE_KEY.seal({"s": "😀" * 1400}, bound_to=BOUND_TO)


@pytest.mark.parametrize("claims", [{"a": float("nan")}, {"a": float("inf")}, {"a": object()}, {"a": b"bytes"}])
def test_only_json_is_sealed(claims: dict[str, Any]) -> None:
    """RFC 8259 section 6: what could not be read back is refused where it is written."""
    with pytest.raises((ValueError, TypeError)):
        ONE_KEY.seal(claims, bound_to=())


def test_yes_and_no_are_equally_long() -> None:
    """SECURITY 2.4: what the user answered does not show in a length."""
    lengths = {
        len(ONE_KEY.seal({"a": {"confirm": answer}, "n": 2}, bound_to=BOUND_TO))
        for answer in ("yes", "no", "", True, False, None, "perhaps, who knows")
    }
    assert len(lengths) == 1


def test_lengths_grow_in_steps_of_64_bytes() -> None:
    """SECURITY 2.2: right-padded with spaces to a multiple of 64."""
    for size in range(10, 200):
        body = by_hand.body_of(ONE_KEY.seal(claims_of(size), bound_to=()))
        assert len(body) == 4 + 32 + 32 + 16 + -(-size // 64) * 64


# Secrets


def renderings(secret: bytes) -> list[str]:
    return [
        secret.hex(),
        repr(secret)[2:-1],
        b64encode(secret).decode().rstrip("="),
        urlsafe_b64encode(secret).decode().rstrip("="),
        str(list(secret)),
    ]


SECRET = hashlib.sha256(b"a secret for this test").digest()


def failures() -> Iterator[tuple[str, Callable[[], object]]]:
    key = Key(5, SECRET)
    seal = Seal(Keyring(current=key, retired=[FIRST]), Purpose.VAULT)
    token = seal.seal({"token": SENTINEL}, bound_to=(b"alice",))
    yield "opened in another context", lambda: seal.open(token, bound_to=(b"bob",))
    yield "opened with a broken tag", lambda: seal.open(token[:-4] + "AAAA", bound_to=(b"alice",))
    yield "opened with another purpose", lambda: Seal(Keyring(current=key), Purpose.FLOW).open(token, bound_to=())
    yield "sealed what is no JSON", lambda: seal.seal({"token": SENTINEL, "bad": object()}, bound_to=())
    yield "sealed too much", lambda: seal.seal({"token": SENTINEL * 2000}, bound_to=())
    yield "made of half a key", lambda: Key(5, SECRET[:31])
    yield "put into a ring twice", lambda: Keyring(current=key, retired=[key])
    yield "asked for a pepper", lambda: BlindIndex(Keyring(current=key, retired=[FIRST]), Purpose.VAULT).of("a")


@pytest.mark.parametrize("fail", [pytest.param(fail, id=what) for what, fail in failures()])
def test_no_failure_tells_a_secret(fail: Callable[[], object]) -> None:
    """STYLE 4.14: what a log would show of the exception, and of everything it came from."""
    with pytest.raises((SealRefused, ConfigurationError, ValueError, TypeError)) as failed:
        fail()
    seen, error = [], failed.value
    chained: BaseException | None = error
    while chained is not None:
        seen += [str(chained), repr(chained), repr(vars(chained))]
        chained = chained.__cause__ or chained.__context__
    text = "\n".join([*seen, *traceback.format_exception(error)])
    assert SENTINEL not in text
    assert not [each for each in (*renderings(SECRET), *renderings(SECRET[:31])) if each in text]


def test_nothing_that_holds_a_key_prints_it() -> None:
    """STYLE 4.14: `repr` shows the kid."""
    key = Key(5, SECRET)
    ring = Keyring(current=key, retired=[FIRST], pepper=Key(9, SECRET))
    holders = [key, ring, Seal(ring, Purpose.VAULT), BlindIndex(ring, Purpose.VAULT)]
    text = "\n".join(f"{holder} {holder!r} {[holder]}" for holder in holders)
    assert "Key(kid=5)" in text
    assert "Keyring(current=5, retired=[1])" in text
    assert not [each for each in renderings(SECRET) if each in text]


# Names in a store


def test_a_blind_index_is_the_same_name_before_and_after_a_rotation() -> None:
    """SECURITY 3: keys in the store are HMACs of identities, and connections outlive a key."""
    before = BlindIndex(Keyring(current=FIRST), Purpose.VAULT).of("iss", "alice")
    after = BlindIndex(Keyring(current=SECOND, retired=[FIRST], pepper=FIRST), Purpose.VAULT).of("iss", "alice")
    dropped = BlindIndex(Keyring(current=SECOND, pepper=FIRST), Purpose.VAULT).of("iss", "alice")
    assert before == after == dropped
    assert len(before) == 43


@pytest.mark.parametrize(
    ("purpose", "pepper", "fields"),
    [
        pytest.param(Purpose.ONCE, FIRST, ("iss", "alice"), id="another purpose"),
        pytest.param(Purpose.VAULT, SECOND, ("iss", "alice"), id="another pepper"),
        pytest.param(Purpose.VAULT, FIRST, ("issa", "lice"), id="a byte over the border"),
        pytest.param(Purpose.VAULT, FIRST, ("alice", "iss"), id="another order"),
        pytest.param(Purpose.VAULT, FIRST, ("iss", "alice", ""), id="an empty field more"),
    ],
)
def test_a_blind_index_tells_apart(purpose: Purpose, pepper: Key, fields: tuple[str, ...]) -> None:
    """SECURITY 3: a name stands for one list of fields under one key."""
    name = BlindIndex(Keyring(current=FIRST), Purpose.VAULT).of("iss", "alice")
    assert BlindIndex(Keyring(current=pepper), purpose).of(*fields) != name
