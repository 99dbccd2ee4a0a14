"""The three ways to make a victim finish what an attacker began (client/elicitation, Phishing; SEP-1036)."""

import pytest

from app.oauth.browser import Completed, Refused
from app.oauth.connections import Connected, Pending
from app.oauth.errors import WrongUser
from tests.oauth.world import ALICE, BOB, World


@pytest.fixture
def world() -> World:
    return World()


def nothing_was_connected(world: World) -> None:
    assert world.provider.posts == []
    assert isinstance(world.call(ALICE), Pending)
    assert isinstance(world.call(BOB), Pending)


def test_a_victim_who_opens_the_attackers_link_is_stopped_before_the_provider(world: World) -> None:
    """Variant 1: Alice sends Bob her connect link. CASES B.7 87."""
    handle = world.handle(principal=ALICE)
    with pytest.raises(WrongUser):
        world.browser.view(handle, BOB.user, now=world.now)
    with pytest.raises(WrongUser):
        world.browser.approve(handle, BOB.user, session_id="session-of-bob", now=world.now)
    nothing_was_connected(world)


def test_a_victim_who_follows_the_attackers_authorization_url_is_stopped_at_the_callback(world: World) -> None:
    """Variant 2: Alice starts herself and sends Bob the provider's URL, whose state is hers."""
    url = world.approve(world.handle(principal=ALICE), ALICE, "session-of-alice")
    bobs_code = world.provider.consent(url)
    outcome = world.back(bobs_code, BOB, "session-of-bob")
    assert outcome == Refused(403, "other_user_or_session")
    assert world.back(bobs_code, None, None) == Refused(403, "no_session")
    nothing_was_connected(world)


def test_a_browser_that_was_signed_in_as_the_attacker_has_another_session(world: World) -> None:
    """Variant 3: Bob's browser was made to be "Alice" by a forged sign-in. Its session is a new one."""
    url = world.approve(world.handle(principal=ALICE), ALICE, "session-of-alice")
    outcome = world.back(world.provider.consent(url), ALICE, "session-in-bobs-browser")
    assert outcome == Refused(403, "other_user_or_session")
    nothing_was_connected(world)


def test_the_attacker_cannot_put_her_own_account_into_the_victims_flow(world: World) -> None:
    """Login CSRF at the provider: Bob's browser gets a callback with a code of Alice's account."""
    alices = dict(world.provider.consent(world.approve(world.handle(principal=ALICE), ALICE, "session-of-alice")))
    bobs = world.provider.consent(world.approve(world.handle(principal=BOB), BOB, "session-of-bob"))
    forged = [("code", alices["code"]), ("state", alices["state"]), ("iss", alices["iss"])]
    assert world.back(forged, BOB, "session-of-bob") == Refused(403, "other_user_or_session")
    assert isinstance(world.back(bobs, BOB, "session-of-bob"), Completed)
    assert isinstance(world.call(BOB), Connected)
    assert isinstance(world.call(ALICE), Pending)


def test_no_connection_passes_between_two_users(world: World) -> None:
    """The vault opens for its user alone."""
    alices, bobs = world.connect(ALICE), world.connect(BOB)
    assert alices.access_token != bobs.access_token
    assert world.call(ALICE) == alices
    assert world.call(BOB) == bobs
