"""The vault: a record opens for its user and its entry alone, and outlives a rotation of the keys."""

import pytest

from app.errors import ConfigurationError
from app.oauth.connections import Connected, Pending, Stored
from app.oauth.handles import Names, digest, flow_id, flow_of_state, is_handle, state
from app.ports import VaultEntry
from app.principal import User
from app.sealing import BlindIndex, Key, Keyring, Purpose
from tests.oauth.world import ALICE, BOB, KEYRING, World

OLD = KEYRING.current
NEW = Key(2, bytes(range(32, 64)))


@pytest.fixture
def world() -> World:
    return World()


def stored(world: World, user: User, entry: str = "provider:acme") -> VaultEntry:
    return world.vault.entries(Names(KEYRING).user(user))[entry]


def overwrite(world: World, user: User, sealed: str, entry: str = "provider:acme") -> None:
    """What somebody with write access to the store can do."""
    name = Names(KEYRING).user(user)
    old = world.vault.entries(name).get(entry)
    assert world.vault.put(name, entry, VaultEntry("forged", sealed), replaces=old.version if old else None)


def test_alices_record_under_bobs_key_is_no_connection_of_bob(world: World) -> None:
    """SECURITY section 5, 134: Bob gets a new flow, never her token."""
    world.connect(ALICE)
    overwrite(world, BOB.user, stored(world, ALICE.user).sealed)
    assert isinstance(world.call(BOB), Pending)
    assert world.browser.connections(BOB.user, now=world.now) == []
    assert isinstance(world.connect(BOB), Connected)


def test_a_record_of_another_entry_is_none_of_this_one(world: World) -> None:
    """The entry stands in the associated data."""
    world.connect()
    overwrite(world, ALICE.user, stored(world, ALICE.user).sealed, "provider:other")
    assert isinstance(world.call(provider="other"), Pending)
    overwrite(world, ALICE.user, stored(world, ALICE.user).sealed, "secret:api_key")
    assert isinstance(world.ask(), Pending)


@pytest.mark.parametrize(
    "damage", [lambda s: s[:-1], lambda s: s[:-2] + ("QQ" if s.endswith("AA") else "AA"), lambda s: "", lambda s: "é😀"]
)
def test_a_damaged_record_leads_to_a_new_flow(world: World, damage: object) -> None:
    """SECURITY section 5, 134: corrupted -> new flow, no 500."""
    world.connect()
    overwrite(world, ALICE.user, damage(stored(world, ALICE.user).sealed))  # type: ignore[operator]
    assert isinstance(world.call(), Pending)
    assert world.browser.connections(ALICE.user, now=world.now) == []
    assert isinstance(world.connect(), Connected)


def test_a_damaged_record_can_be_disconnected(world: World) -> None:
    """What nobody can read can still be thrown away."""
    world.connect()
    overwrite(world, ALICE.user, "damaged")
    assert world.browser.disconnect(ALICE.user, "acme", now=world.now)
    assert not world.browser.disconnect(ALICE.user, "acme", now=world.now)


def test_a_record_with_other_claims_is_no_record(world: World) -> None:
    """A later version of this code wrote it."""
    from app.sealing import Seal

    user = ALICE.user
    bound_to = (b"vault", b"v1", user.issuer.encode(), user.subject.encode(), b"provider:acme")
    wrong: tuple[dict[str, object], ...] = ({}, {"approved_clients": []}, {"approved_clients": {"c": 5}, "created": 1})
    for claims in wrong:
        overwrite(world, user, Seal(KEYRING, Purpose.VAULT).seal(claims, bound_to=bound_to))
        assert isinstance(world.call(), Pending)


def test_connections_outlive_a_rotation(world: World) -> None:
    """Keyring: add as retired, make current, drop the old one; the pepper stays."""
    connected = world.connect()
    world.browser.store_secret(world.handle(world.ask()), ALICE.user, "typed", now=world.now)
    for ring in (
        Keyring(current=OLD, retired=(NEW,), pepper=OLD),
        Keyring(current=NEW, retired=(OLD,), pepper=OLD),
        Keyring(current=NEW, pepper=OLD),
    ):
        world.keyring = ring
        assert world.call() == connected
        assert world.ask() == Stored("typed")


def test_a_connection_that_nobody_used_during_a_rotation_is_asked_for_again(world: World) -> None:
    """Its key has left. No error: the user connects once more."""
    world.connect()
    world.keyring = Keyring(current=NEW, pepper=OLD)
    assert isinstance(world.call(), Pending)
    assert isinstance(world.connect(), Connected)


def test_an_open_flow_outlives_a_rotation(world: World) -> None:
    """Any instance, before and after a deployment."""
    handle = world.handle()
    url = world.approve(handle)
    world.keyring = Keyring(current=NEW, retired=(OLD,), pepper=OLD)
    assert world.handle() == handle
    world.back(world.provider.consent(url))
    assert isinstance(world.call(), Connected)


def test_a_ring_of_several_keys_must_name_its_pepper() -> None:
    """Guessing would rename every stored connection in the middle of a rotation."""
    with pytest.raises(ConfigurationError, match="pepper"):
        World(keyring=Keyring(current=NEW, retired=(OLD,))).call()
    assert Keyring(current=OLD).pepper is OLD
    assert Keyring(current=NEW, pepper=OLD).pepper is OLD
    assert "pepper" not in repr(Keyring(current=NEW, pepper=OLD))


def test_names_tell_nothing_and_never_run_together() -> None:
    """HMAC under the pepper, for one purpose, over length-prefixed fields."""
    index = BlindIndex(KEYRING, Purpose.VAULT)
    names = [
        index.of("user", "ab", "c"),
        index.of("user", "a", "bc"),
        index.of("user", "abc"),
        index.of("slot", "ab", "c"),
        BlindIndex(KEYRING, Purpose.FLOW).of("user", "ab", "c"),
        BlindIndex(Keyring(current=NEW), Purpose.VAULT).of("user", "ab", "c"),
    ]
    assert len(set(names)) == len(names)
    assert {len(name) for name in names} == {43}
    assert index.of("user", "ab", "c") == names[0]
    assert BlindIndex(Keyring(current=NEW, pepper=OLD), Purpose.VAULT).of("user", "ab", "c") == names[0]


def test_a_name_is_this_one_in_every_release() -> None:
    """A change would lose every stored connection: the value is pinned."""
    assert BlindIndex(KEYRING, Purpose.VAULT).of("user", "https://login.example.com", "alice") == (
        "VkxxqntZUa0hRuLf4wIXHNoI03nRIOwrPBzA8inaRdE"
    )


def test_a_flow_id_does_not_lead_back_to_its_handle() -> None:
    """SECURITY section 3: fid = SHA-256("flow" || handle)."""
    handle = "A" * 43
    assert is_handle(handle)
    assert flow_id(handle) == "wjyi860HGijRlqHd6zILEd5GMi36sfarmmWrQw0l9Do"
    assert flow_id(handle) == digest("flow", handle) != digest("state", handle)
    nonce = "B" * 43
    assert flow_of_state(state(flow_id(handle), nonce)) == flow_id(handle)
    assert flow_of_state(state(flow_id(handle), nonce) + "\n") is None
    assert flow_of_state(f"{flow_id(handle)}.short") is None


def test_a_pointer_moved_to_another_user_leads_nowhere(world: World) -> None:
    """Write access to the store: Bob is not sent to Alice's link, and still gets his own."""
    handle = world.handle(principal=ALICE)
    names = Names(KEYRING)
    slot = names.slot(ALICE.client_id, "provider:acme")
    pointer = world.vault.look(names.user(ALICE.user), "provider:acme", slot)[1]
    assert pointer is not None
    world.vault.point(names.user(BOB.user), slot, pointer, replaces=None, limit=5, now=world.now)
    bobs = world.handle(principal=BOB)
    assert bobs != handle
    assert world.browser.view(bobs, BOB.user, now=world.now).kind == "connect"
