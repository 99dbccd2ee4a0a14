"""Remembered approvals: what one covers, what ends it, and what cannot make one."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any, cast

import pytest

from app.adapters.memory_effects import MemoryApprovalStore
from app.adapters.redis_approvals import RedisApprovalStore
from app.adapters.redis_connection import connect
from app.effects.approvals import (
    MAX_AGE,
    MAX_LIFETIME,
    MAX_PER_USER,
    SESSION,
    Approvals,
    Permission,
    Source,
    lifetime_of,
)
from app.errors import ConfigurationError, Unavailable
from app.oauth.handles import Names
from app.ports import ApprovalStore
from app.principal import Principal
from app.protocol import request_state
from app.sealing import Keyring, Purpose, Seal
from tests.adapters.contracts.valkey import Server, running
from tests.effects.world import (
    ALICE,
    ALICE_ELSEWHERE,
    ALICE_OF_ANOTHER_ISSUER,
    BOB,
    KEYRING,
    NEW,
    OLD,
    START,
)

DEPLOY = Permission("deploy", terms=b"digest of the question")
BILLING = replace(DEPLOY, arguments={"service": "billing"})


class World:
    def __init__(self, store: ApprovalStore | None = None) -> None:
        self.store = store or MemoryApprovalStore()
        self.keyring = KEYRING
        self.now = float(START)

    @property
    def approvals(self) -> Approvals:
        return Approvals(self.store, self.keyring)

    def remember(
        self,
        who: Principal = ALICE,
        what: Permission = DEPLOY,
        *,
        lifetime: int = SESSION,
        asked_at: int | None = None,
    ) -> bool:
        asked_at = int(self.now) if asked_at is None else asked_at
        return self.approvals.remember(
            who, what, source=Source.FORM, lifetime=lifetime, asked_at=asked_at, now=self.now
        )

    def is_remembered(self, who: Principal = ALICE, what: Permission = DEPLOY) -> bool:
        return self.approvals.check(who, what, now=self.now) is not None

    def withdraw_all(self) -> None:
        for each in self.approvals.list(ALICE.user, now=self.now):
            assert self.approvals.withdraw(ALICE.user, each.id, now=self.now)


@pytest.fixture
def in_cluster(cluster: Server) -> Iterator[World]:
    connection = connect(cluster.url, cluster=True)
    yield World(RedisApprovalStore(connection))
    connection.close()


@pytest.fixture(params=["memory", "cluster"])
def world(request: pytest.FixtureRequest) -> World:
    return World() if request.param == "memory" else cast(World, request.getfixturevalue("in_cluster"))


def test_a_yes_is_remembered_until_it_ends(world: World) -> None:
    """`approval="session"`: twelve hours from the question."""
    assert not world.is_remembered()
    assert world.remember()
    assert world.is_remembered()
    world.now += SESSION - 1
    assert world.is_remembered()
    world.now += 1
    assert not world.is_remembered()
    assert world.approvals.list(ALICE.user, now=world.now) == []


@pytest.mark.parametrize("other", [BOB, ALICE_ELSEWHERE, ALICE_OF_ANOTHER_ISSUER])
def test_a_yes_is_for_one_user_and_one_client(world: World, other: Principal) -> None:
    """Per principal: issuer, subject, client."""
    world.remember()
    assert not world.is_remembered(other)


@pytest.mark.parametrize(
    ("given", "asked", "covered"),
    [
        (DEPLOY, replace(DEPLOY, tool="destroy"), False),
        (DEPLOY, replace(DEPLOY, terms=b"another question"), False),
        (DEPLOY, BILLING, False),
        (BILLING, DEPLOY, False),
        (BILLING, replace(BILLING, arguments={"service": "search"}), False),
        (BILLING, replace(BILLING, arguments={"service": "billing", "force": True}), False),
        (BILLING, replace(BILLING, arguments={}), False),
        (BILLING, replace(BILLING, arguments={"service": "billing"}), True),
        (replace(DEPLOY, arguments={"n": 1}), replace(DEPLOY, arguments={"n": 1.0}), True),
        (replace(DEPLOY, arguments={"n": 1}), replace(DEPLOY, arguments={"n": True}), False),
        (replace(DEPLOY, arguments={"n": 1}), replace(DEPLOY, arguments={"n": "1"}), False),
    ],
)
def test_a_yes_covers_the_tool_the_terms_and_the_arguments_it_was_given_for(
    world: World, given: Permission, asked: Permission, covered: bool
) -> None:
    """A changed wording asks again (DESIGN section 3); arguments compare as in SECURITY section 2.3."""
    world.remember(what=given)
    assert world.is_remembered(what=given)
    assert world.is_remembered(what=asked) is covered


def test_the_user_sees_what_is_remembered_the_newest_first(world: World) -> None:
    """The connections page."""
    world.remember(what=DEPLOY)
    world.now += 60
    world.remember(ALICE_ELSEWHERE, BILLING, lifetime=86_400)
    world.remember(BOB)
    first, second = world.approvals.list(ALICE.user, now=world.now)
    assert (first.tool, first.client_id, first.arguments) == (
        "deploy",
        ALICE_ELSEWHERE.client_id,
        '{"service":"billing"}',
    )
    assert (first.since, first.until, first.source) == (START + 60, START + 60 + 86_400, Source.FORM)
    assert (second.tool, second.client_id, second.arguments) == ("deploy", ALICE.client_id, None)
    assert (second.since, second.until) == (START, START + SESSION)


def test_long_arguments_are_shortened_for_the_page_and_compared_whole(world: World) -> None:
    """A record has to fit under a seal."""
    text = "é" * 100_000
    long = replace(DEPLOY, arguments={"text": text})
    assert world.remember(what=long)
    assert world.is_remembered(what=long)
    assert not world.is_remembered(what=replace(DEPLOY, arguments={"text": text + "x"}))
    (shown,) = world.approvals.list(ALICE.user, now=world.now)
    assert shown.arguments is not None
    assert len(shown.arguments) == 200
    assert shown.arguments.endswith("…")


def test_a_withdrawn_yes_is_asked_for_again(world: World) -> None:
    """The button on the connections page."""
    world.remember()
    (approval,) = world.approvals.list(ALICE.user, now=world.now)
    assert not world.approvals.withdraw(BOB.user, approval.id, now=world.now)
    assert world.approvals.withdraw(ALICE.user, approval.id, now=world.now)
    assert not world.is_remembered()
    assert world.approvals.list(ALICE.user, now=world.now) == []
    assert not world.approvals.withdraw(ALICE.user, approval.id, now=world.now + 1)
    assert not world.approvals.withdraw(ALICE.user, "x" * 43, now=world.now)


def test_an_answer_that_is_shown_again_does_not_undo_a_withdrawal(world: World) -> None:
    """A state opens for up to an hour after the question: its answer is older than what the user did since."""
    asked_at = int(world.now)
    world.remember(lifetime=MAX_LIFETIME)
    world.withdraw_all()
    for seconds in (0, 1, MAX_AGE - 1, 59):
        world.now += seconds
        assert not world.remember(lifetime=MAX_LIFETIME, asked_at=asked_at)
        assert not world.is_remembered()
    assert world.remember(lifetime=MAX_LIFETIME)
    assert world.is_remembered()


def test_an_answer_that_is_shown_again_does_not_prolong_a_yes(world: World) -> None:
    """It runs from when the question was asked."""
    asked_at = int(world.now)
    world.remember(lifetime=600)
    world.now += 599
    assert world.remember(lifetime=600, asked_at=asked_at)
    assert world.is_remembered()
    world.now += 1
    assert not world.is_remembered()
    assert not world.remember(lifetime=600, asked_at=asked_at)


def test_a_withdrawal_outlives_every_state_that_could_answer_again() -> None:
    """app.effects cannot import app.protocol: the two numbers are compared here."""
    assert MAX_AGE == request_state.MAX_AGE


def test_a_user_has_a_bounded_number_of_them(world: World) -> None:
    """Past it the user is asked each time; another user is not."""
    for number in range(MAX_PER_USER):
        assert world.remember(what=replace(DEPLOY, arguments={"n": number}))
    assert not world.remember()
    assert not world.is_remembered()
    assert world.remember(BOB)
    world.now += SESSION
    assert world.remember()


@pytest.mark.parametrize("lifetime", [0, -1, MAX_LIFETIME + 1, float("nan"), float("inf")])
def test_a_lifetime_has_bounds(world: World, lifetime: Any) -> None:
    """Nothing is remembered for ever."""
    with pytest.raises(ValueError, match="kept for 1 to"):
        world.remember(lifetime=lifetime)


def test_the_tools_declaration_is_read_strictly() -> None:
    """`@tool(approval="session" | timedelta)`; anything else stops the server at its start."""
    assert lifetime_of("session") == SESSION == 43_200
    assert lifetime_of(timedelta(days=30)) == 30 * 86_400
    assert lifetime_of(timedelta(days=90)) == MAX_LIFETIME
    for wrong in ("always", "", None, True, 3600, timedelta(0), timedelta(days=-1), timedelta(days=91)):
        with pytest.raises(ConfigurationError, match="90 days"):
            lifetime_of(wrong)


def test_there_is_no_source_that_is_no_person() -> None:
    """A remembered yes is never made by a model or a fallback."""
    assert {each.value for each in Source} == {"form", "page"}


def test_a_yes_that_was_moved_or_damaged_is_none(world: World) -> None:
    """Write access to the store: another user's, another client's, another tool's record does not open."""
    world.remember(BOB)
    world.remember(ALICE_ELSEWHERE)
    world.remember(ALICE, replace(DEPLOY, tool="read"))
    user = Names(KEYRING).user
    world.remember(what=BILLING)
    names = {each.arguments: each.id for each in world.approvals.list(ALICE.user, now=world.now)}
    target = names['{"service":"billing"}']
    foreign = [*world.store.entries(user(BOB.user)).values(), *world.store.entries(user(ALICE.user)).values()]
    own = world.store.look(user(ALICE.user), target)
    for sealed in ["", "damaged", *(each for each in foreign if each != own)]:
        world.store.keep(
            user(ALICE.user), target, sealed, asked_at=START, expires_at=START + 60, limit=9, now=world.now
        )
        assert not world.is_remembered(what=BILLING)
    assert len(foreign) == 4


def test_a_record_with_other_claims_is_none(world: World) -> None:
    """A later version of this code wrote it."""
    world.remember()
    (approval,) = world.approvals.list(ALICE.user, now=world.now)
    bound_to = (b"approval", b"v1", ALICE.issuer.encode(), ALICE.subject.encode(), approval.id.encode())
    good = {"tool": "deploy", "client": "c", "args": None, "src": "form", "iat": 1, "exp": START + 60, "terms": ""}
    wrong: list[dict[str, object]] = [{}, {**good, "src": "model"}, {"tool": "deploy"}]
    for claims in wrong:
        sealed = Seal(KEYRING, Purpose.VAULT).seal(claims, bound_to=bound_to)
        name = Names(KEYRING).user(ALICE.user)
        world.store.keep(name, approval.id, sealed, asked_at=START, expires_at=START + 60, limit=9, now=world.now)
        assert not world.is_remembered()
        assert world.approvals.list(ALICE.user, now=world.now) == []


def test_approvals_outlive_a_rotation_and_end_with_their_key(world: World) -> None:
    """Then the user is asked once more."""
    world.remember()
    world.keyring = Keyring(current=NEW, retired=(OLD,), pepper=OLD)
    assert world.is_remembered()
    world.keyring = Keyring(current=NEW, pepper=OLD)
    assert not world.is_remembered()


def test_a_dump_of_the_store_tells_nothing(in_cluster: World, cluster: Server) -> None:
    """SECURITY section 1, stolen Redis dump. All of one user is under the vault's name for them."""
    in_cluster.remember(what=BILLING)
    dumped = cluster.dump()
    assert f"mcp:yes:{{{Names(KEYRING).user(ALICE.user)}}}" in dumped
    in_cluster.withdraw_all()
    dumped += cluster.dump()
    hidden = ["deploy", "billing", "service", ALICE.subject, "login.example", "client-one", "digest"]
    assert not [each for each in hidden if each in dumped]


def test_an_outage_is_unavailable_and_no_yes() -> None:
    """Fails closed: the user is asked."""
    with running() as server:
        connection = connect(server.url)
        world = World(RedisApprovalStore(connection))
        world.remember()
    with pytest.raises(Unavailable):
        world.is_remembered()
    with pytest.raises(Unavailable):
        world.remember()
    connection.close()
