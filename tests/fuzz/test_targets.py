"""Every parser with the corpus and with bytes of hypothesis's own. `make fuzz` does the same guided by coverage."""

from pathlib import Path
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fuzz.budget import no_hang, tries
from tests.fuzz.coverage_guided import CORPUS
from tests.fuzz.generated import as_body, bodies, json_values, spoiled
from tests.fuzz.targets import TARGETS, sealed_token, spoiled_token

SEEDS: Final = sorted(path for path in CORPUS.glob("*/*") if path.is_file())
_ALPHABETS: Final = (b'{}[]",:0123456789.eE+-\\u', b"=?&;%base64 \t", b"rs1.AAAABBBB-_=", b"eyJ0.e30.AA")
data_of_every_kind = st.one_of(
    bodies,
    json_values.map(as_body),
    *(st.lists(st.sampled_from(sorted(alphabet)), max_size=60).map(bytes) for alphabet in _ALPHABETS),
)


@pytest.mark.parametrize("seed", SEEDS, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_what_was_found_before_holds(seed: Path) -> None:
    """Seeds, and inputs that once broke something."""
    with no_hang():
        TARGETS[seed.parent.name](seed.read_bytes())


@pytest.mark.parametrize("target", TARGETS)
@tries(60)
@given(data=data_of_every_kind)
def test_no_bytes_break_a_promise(target: str, data: bytes) -> None:
    """See the docstring of each target for what it promises."""
    with no_hang():
        TARGETS[target](data)


@pytest.mark.parametrize("target", TARGETS)
def test_no_large_input_takes_long(target: str) -> None:
    """A megabyte of what a careless regular expression or a recursive parser would choke on."""
    for piece in (b"[", b'{"a":', b"a", b"=", b"%", b"\\", b'"', b"A.", b"?;", b"9", b" ", b"\xff", b"fuzz://a/"):
        with no_hang():
            TARGETS[target]((piece * 1_000_000)[:1_000_000])


@tries(60)
@given(data=st.data())
def test_a_seed_with_something_changed_breaks_no_promise(data: st.DataObject) -> None:
    """Bytes near those that lead somewhere."""
    seed = data.draw(st.sampled_from(SEEDS))
    content = bytearray(seed.read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(content)))
        content[place : place + data.draw(st.integers(0, 3))] = data.draw(st.binary(max_size=3))
    with no_hang():
        TARGETS[seed.parent.name](bytes(content))


@tries(60)
@given(document=spoiled({"keys": [{"kty": "EC", "crv": "P-256", "kid": "1", "x": "A" * 43, "y": "A" * 43}]}))
def test_no_key_set_breaks_a_promise(document: object) -> None:
    """A key set with something changed."""
    TARGETS["key_set"](as_body(document))


def test_the_targets_can_fail() -> None:
    """A target that never fails would look the same as one that holds."""
    from tests.fuzz import targets

    with pytest.raises(AssertionError):
        sealed_token(targets._SEALED.encode())
    spoiled_token(b"")
    assert not targets._same(1, True)
    assert not targets._same(1, 1.0)
    assert not targets._same(0.0, -0.0)
    assert targets._same({"a": [1]}, {"a": [1]})
