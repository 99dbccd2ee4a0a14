"""The contracts of oauth.sessions.SessionStore and oauth.sign_in.LoginStore."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from app.oauth.sessions import SessionStore
from app.oauth.sign_in import LoginStore


class SessionStoreContract:
    """Subclasses bring `sessions` and `advance`."""

    def test_a_text_is_read_as_often_as_one_asks(self, sessions: SessionStore) -> None:
        """SessionStore.get."""
        sessions.put("a", "sealed", lifetime=60)
        assert [sessions.get("a"), sessions.get("a"), sessions.get("b")] == ["sealed", "sealed", None]

    def test_a_text_ends_with_its_lifetime(self, sessions: SessionStore, advance: Callable[[float], None]) -> None:
        """SECURITY section 3: absolute, reading does not prolong it."""
        sessions.put("a", "sealed", lifetime=60)
        advance(59)
        assert sessions.get("a") == "sealed"
        advance(1.1)
        assert sessions.get("a") is None

    def test_a_later_text_replaces_the_earlier_one(self, sessions: SessionStore) -> None:
        """SessionStore.put."""
        sessions.put("a", "first", lifetime=60)
        sessions.put("a", "second", lifetime=60)
        assert sessions.get("a") == "second"

    def test_a_deleted_text_is_gone(self, sessions: SessionStore) -> None:
        """SessionStore.delete, also of nothing."""
        sessions.put("a", "sealed", lifetime=60)
        sessions.delete("a")
        sessions.delete("a")
        assert sessions.get("a") is None


class LoginStoreContract:
    """Subclasses bring `logins` and `advance`."""

    def test_a_login_is_taken_once(self, logins: LoginStore) -> None:
        """LoginStore.take."""
        logins.put("a", "sealed", lifetime=60)
        assert [logins.take("a"), logins.take("a"), logins.take("b")] == ["sealed", None, None]

    def test_of_many_takers_one_gets_it(self, logins: LoginStore) -> None:
        """LoginStore.take: read and delete at once."""
        logins.put("a", "sealed", lifetime=60)
        with ThreadPoolExecutor(8) as pool:
            taken = list(pool.map(lambda _: logins.take("a"), range(32)))
        assert sorted(each for each in taken if each) == ["sealed"]

    def test_a_login_ends_with_its_lifetime(self, logins: LoginStore, advance: Callable[[float], None]) -> None:
        """SECURITY section 3: 300 s."""
        logins.put("a", "sealed", lifetime=60)
        advance(60.1)
        assert logins.take("a") is None
