"""The rules of rotation: what may be done with a ring, and when."""

from collections.abc import Callable

import pytest

from app.adapters import wrapped_keyring
from app.adapters.stale_if_error import MAX_FRESH
from app.adapters.wrapped_keyring import State, WrappedKeyring
from app.oauth import flow, sessions, sign_in
from app.protocol import request_state
from infra import key_rotation
from infra.key_rotation import OUTLIVED, READ_BY_ALL, NotSafe, add, create, drop, promote, restore, retire

NOW = 1_790_000_000
KEY_ARN = "arn:aws:kms:eu-central-1:111122223333:key/1234abcd"


def ring(*, keys: int = 1) -> WrappedKeyring:
    """A ring whose key 2 seals, with more keys that open, all of them old enough."""
    made = create("app", KEY_ARN, pepper=b"pepper", key=b"first", now=NOW - 2 * OUTLIVED)
    for number in range(keys - 1):
        made = add(made, f"key {number}".encode(), now=NOW - OUTLIVED)
    return made


def states(of: WrappedKeyring) -> dict[int, str]:
    return {key.kid: key.state.value for key in of.keys}


def test_a_ring_begins_with_a_pepper_and_a_key_that_seals() -> None:
    """The pepper is none of the keys: each of them can leave one day."""
    made = ring()
    assert (made.pepper.kid, states(made), made.last_kid) == (1, {2: "mint"}, 2)
    assert made.get(1) is None


def test_a_rotation_takes_four_steps() -> None:
    """SECURITY 2.6."""
    made = add(ring(), b"second", now=NOW)
    assert states(made) == {2: "mint", 3: "verify"}
    made = promote(made, 3, now=NOW + READ_BY_ALL)
    assert states(made) == {2: "verify", 3: "mint"}
    made = retire(made, 2, now=NOW + READ_BY_ALL + OUTLIVED)
    assert states(made) == {2: "retired", 3: "mint"}
    made = drop(made, 2)
    assert states(made) == {3: "mint"}
    assert made.pepper == ring().pepper


def test_a_key_seals_only_when_every_instance_can_open_it() -> None:
    """An instance may have read the list just before the key was in it, and keeps it for 11 minutes."""
    made = add(ring(), b"second", now=NOW)
    with pytest.raises(NotSafe, match=r"promote it at 2026-09-21 14:25:20 UTC, in 1 s"):
        promote(made, 3, now=NOW + READ_BY_ALL - 1)
    assert promote(made, 3, now=NOW + READ_BY_ALL).mint.kid == 3
    assert READ_BY_ALL > MAX_FRESH


def test_a_key_opens_for_as_long_as_something_that_it_sealed_is_valid() -> None:
    """It may have sealed until every instance knew better, and the oldest flow lives for an hour."""
    made = promote(ring(keys=2), 3, now=NOW)
    with pytest.raises(NotSafe, match=r"retire it at .* UTC, in 1 s"):
        retire(made, 2, now=NOW + OUTLIVED - 1)
    assert states(retire(made, 2, now=NOW + OUTLIVED))[2] == "retired"
    longest = max(request_state.MAX_AGE, flow.LIFETIME, sessions.LIFETIME, sign_in.LIFETIME)
    assert READ_BY_ALL + longest <= OUTLIVED


def test_a_compromised_key_is_replaced_without_a_wait() -> None:
    """SECURITY 2.6: drop at once; flows on their way start over."""
    made = add(ring(), b"second", now=NOW)
    made = promote(made, 3, now=NOW, compromised=True)
    made = retire(made, 2, now=NOW, compromised=True)
    assert states(drop(made, 2)) == {3: "mint"}


@pytest.mark.parametrize("compromised", [False, True])
def test_the_key_that_seals_cannot_be_retired(compromised: bool) -> None:
    """Nothing could be sealed, and nothing opened: not even a compromise is a reason."""
    with pytest.raises(NotSafe, match="add and promote another one first"):
        retire(ring(keys=2), 2, now=NOW, compromised=compromised)


def test_the_pepper_is_out_of_reach() -> None:
    """It names what is stored: without it every connection is lost."""
    steps: list[Callable[[], object]] = [
        lambda: promote(ring(), 1, now=NOW, compromised=True),
        lambda: retire(ring(), 1, now=NOW, compromised=True),
        lambda: restore(ring(), 1, now=NOW),
        lambda: drop(ring(), 1),
    ]
    for step in steps:
        with pytest.raises(NotSafe, match="the pepper"):
            step()


def test_a_retired_key_can_come_back_and_is_promoted_after_the_same_wait() -> None:
    """Somebody misses it."""
    retired = retire(ring(keys=2), 3, now=NOW)
    with pytest.raises(NotSafe, match="restore 3 first"):
        promote(retired, 3, now=NOW + OUTLIVED)
    back = restore(retired, 3, now=NOW)
    assert states(back)[3] == "verify"
    with pytest.raises(NotSafe, match="not every instance has read"):
        promote(back, 3, now=NOW + 1)


def test_steps_that_are_none_are_refused() -> None:
    """Each with what to do instead."""
    retired = retire(ring(keys=2), 3, now=NOW)
    steps: list[tuple[Callable[[], object], str]] = [
        (lambda: promote(ring(), 2, now=NOW), "seals already"),
        (lambda: promote(ring(), 9, now=NOW), "There is no key 9. The ring has 2."),
        (lambda: retire(retired, 3, now=NOW), "retired already"),
        (lambda: restore(ring(), 2, now=NOW), "not retired"),
        (lambda: drop(ring(keys=2), 3), "retire 3 first"),
        (lambda: drop(ring(), 2), "retire 2 first"),
    ]
    for step, told in steps:
        with pytest.raises(NotSafe, match=told):
            step()


def test_no_id_is_given_twice() -> None:
    """An instance may still have the list in which the id was another key's."""
    made = drop(retire(ring(keys=3), 4, now=NOW), 4)
    assert add(made, b"fourth", now=NOW).keys[-1].kid == 5


def test_a_ring_is_the_same_after_it_was_stored() -> None:
    """What one operator writes, another reads."""
    made = retire(ring(keys=4), 3, now=NOW)
    assert wrapped_keyring.parse(made.dump()) == made
    assert made.get(3) is not None
    assert {key.state for key in made.keys} == set(State)


def test_a_step_changes_nothing_else() -> None:
    """Ciphertexts are random bytes to us: one that is lost is lost for good."""
    before = ring(keys=3)
    after = key_rotation.promote(before, 3, now=NOW)
    assert [key.wrapped for key in after.keys] == [key.wrapped for key in before.keys]
    assert [key.since for key in after.keys] == [NOW, NOW, before.keys[2].since]
