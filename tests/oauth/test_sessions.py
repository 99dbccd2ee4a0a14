"""Browser sessions: how long they last, what the store knows of them, and whose form a CSRF token is for."""

from app.adapters.memory_sessions import MemorySessions
from app.oauth import sessions
from app.oauth.sessions import Session, Sessions
from app.principal import User
from app.sealing import Key, Keyring

NOW = 1_790_000_000.0
KEYRING = Keyring(current=Key(1, bytes(range(32))))
ISSUER = "https://login.example.com"
ALICE = User(ISSUER, "alice")


class Clock:
    """Time as the store sees it."""

    def __init__(self) -> None:
        self.now = NOW

    def __call__(self) -> float:
        return self.now


def start(store: MemorySessions, session_id: str = "S" * 43) -> Session:
    manager = Sessions(store, KEYRING)
    manager.start(ALICE, "alice@example.com", session_id=session_id, csrf_key=session_id[:32].encode(), now=NOW)
    found = manager.find(session_id, now=NOW)
    assert found is not None
    return found


def test_a_session_ends_after_half_an_hour_whatever_the_user_does() -> None:
    """SECURITY section 3: mcp:sess lives 1800 seconds, absolute."""
    clock = Clock()
    store = MemorySessions(clock)
    start(store)
    manager = Sessions(store, KEYRING)
    for age, alive in ((0, True), (sessions.LIFETIME - 1, True), (sessions.LIFETIME, False)):
        clock.now = NOW + age
        assert (manager.find("S" * 43, now=clock.now) is not None) is alive


def test_the_age_in_the_seal_counts_where_the_store_forgets_to() -> None:
    """Redis write access: PERSIST on a stolen key does not prolong a session."""
    frozen = MemorySessions(Clock())
    start(frozen)

    assert Sessions(frozen, KEYRING).find("S" * 43, now=NOW + sessions.LIFETIME) is None


def test_the_store_knows_neither_the_session_id_nor_the_user() -> None:
    """SECURITY section 1, stolen Redis dump."""
    store = MemorySessions(Clock())
    start(store)

    for secret in ("S" * 10, "alice", ISSUER):
        assert secret not in str(store.dump())


def test_a_session_moved_to_another_key_does_not_open() -> None:
    """SECURITY section 1, Redis write access."""
    store = MemorySessions(Clock())
    start(store, "S" * 43)
    start(store, "T" * 43)
    first, second = store.dump()
    store.put(first, store.dump()[second], lifetime=60)

    assert Sessions(store, KEYRING).find("S" * 43, now=NOW) is None
    assert Sessions(store, KEYRING).find("T" * 43, now=NOW) is not None


def test_an_ended_session_opens_nothing() -> None:
    """Sign-out is on the server, not a forgotten cookie."""
    store = MemorySessions(Clock())
    start(store)
    manager = Sessions(store, KEYRING)
    manager.end("S" * 43)

    assert manager.find("S" * 43, now=NOW) is None


def test_a_csrf_token_is_for_one_session_and_one_subject() -> None:
    """SECURITY section 3, step 5: bound to sid and flow."""
    store = MemorySessions(Clock())
    alice, other = start(store, "S" * 43), start(store, "T" * 43)
    token = alice.csrf_token("connect", "handle")

    assert alice.is_csrf_token(token, "connect", "handle")
    assert not other.is_csrf_token(token, "connect", "handle")
    assert not alice.is_csrf_token(token, "connect", "handl", "e")
    assert not alice.is_csrf_token(token, "disconnect", "handle")
    assert not alice.is_csrf_token("", "connect", "handle")
    assert not alice.is_csrf_token("é", "connect", "handle")


def test_a_session_does_not_print_its_key() -> None:
    """Secrets do not print."""
    assert "S" * 10 not in repr(start(MemorySessions(Clock())))
