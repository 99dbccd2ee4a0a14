"""The signatures that are remembered: only as long as the key, the time and the rules allow."""

from collections.abc import Iterator
from unittest.mock import patch

import pytest

from app.authorization import signed_jwt
from app.authorization.access_token import TokenRules
from app.authorization.jwks import FRESH, STALE_IF_ERROR, Jwks
from app.authorization.verified_tokens import VerifiedTokens
from app.errors import InvalidToken, Unavailable
from app.testing import ISSUER, RESOURCE, Clock, Issuer

RULES = TokenRules(ISSUER, RESOURCE)


class Scene:
    """One issuer, one cache, and how often a signature was verified."""

    def __init__(self, capacity: int = 4) -> None:
        self.clock = Clock()
        self.issuer = Issuer(self.clock)
        self.keys = Jwks(self.issuer, issuer=ISSUER)
        self.tokens = VerifiedTokens(self.keys, RULES, capacity=capacity)
        self.verified = 0

    def verify(self, token: str) -> str:
        return self.tokens.verify(token, now=self.clock.now).principal.subject


@pytest.fixture
def scene() -> Iterator[Scene]:
    scene = Scene()
    real = signed_jwt.verify

    def counted(*arguments: object, **named: object) -> object:
        scene.verified += 1
        return real(*arguments, **named)  # type: ignore[arg-type]

    with patch.object(signed_jwt, "verify", counted):
        yield scene


def test_a_token_is_verified_once(scene: Scene) -> None:
    token = scene.issuer.mint("alice")
    assert [scene.verify(token) for _ in range(3)] == ["alice"] * 3
    assert scene.verified == 1


def test_another_token_is_another_signature(scene: Scene) -> None:
    """SECURITY 4.8: by the exact string."""
    token = scene.issuer.mint("alice")
    scene.verify(token)
    for spoilt in (token + "=", token[:-1], token.replace(".", ".."), f" {token}", token + "\ud800"):
        with pytest.raises(InvalidToken):
            scene.verify(spoilt)
    assert scene.verify(scene.issuer.mint("bob")) == "bob"


def test_a_token_is_not_remembered_past_its_expiry(scene: Scene) -> None:
    """Within the leeway it is accepted still, by its signature; after it by nothing."""
    token = scene.issuer.mint("alice", exp=int(scene.clock.now) + 100)
    scene.verify(token)
    scene.clock.advance(100)
    scene.verify(token)
    scene.verify(token)
    assert scene.verified == 3
    scene.clock.advance(30)
    with pytest.raises(InvalidToken, match="expired"):
        scene.verify(token)


def test_a_clock_that_goes_back_refuses_what_is_not_valid_yet(scene: Scene) -> None:
    token = scene.issuer.mint("alice")
    scene.verify(token)
    scene.clock.advance(-60)
    with pytest.raises(InvalidToken, match="not yet valid"):
        scene.verify(token)


def test_a_token_of_a_key_that_went_is_refused(scene: Scene) -> None:
    """RFC 7517 section 5: a key that is no longer in the set is no longer the issuer's."""
    token = scene.issuer.mint("alice")
    scene.verify(token)
    other = Issuer(scene.clock)
    scene.issuer.documents[f"{ISSUER}/jwks"] = other.documents[f"{ISSUER}/jwks"]
    scene.clock.advance(FRESH)
    with pytest.raises(InvalidToken, match="signature"):
        scene.verify(token)


def test_a_key_set_that_was_dropped_verifies_anew(scene: Scene) -> None:
    """As after a SnapStart restore."""
    token = scene.issuer.mint("alice")
    scene.verify(token)
    scene.keys.forget()
    scene.verify(token)
    assert scene.verified == 2


def test_keys_that_are_too_old_to_trust_are_not_trusted_for_a_remembered_token(scene: Scene) -> None:
    token = scene.issuer.mint("alice", exp=int(scene.clock.now) + 86_400)
    scene.verify(token)
    scene.issuer.documents[f"{ISSUER}/jwks"] = Unavailable("down", retry_after=1)
    scene.clock.advance(STALE_IF_ERROR - 1)
    assert scene.verify(token) == "alice"
    scene.clock.advance(0.5)
    assert scene.verify(token) == "alice"
    scene.clock.advance(1)
    with pytest.raises((Unavailable, InvalidToken)):
        scene.verify(token)


def test_no_more_tokens_are_remembered_than_the_capacity(scene: Scene) -> None:
    tokens = [scene.issuer.mint(f"user-{number}") for number in range(6)]
    for token in tokens:
        scene.verify(token)
    assert len(scene.tokens._verified) == 4
    scene.verify(tokens[-1])
    assert scene.verified == 6
    scene.verify(tokens[0])
    assert scene.verified == 7


def test_what_is_remembered_does_not_hold_the_token(scene: Scene) -> None:
    token = scene.issuer.mint("alice")
    scene.verify(token)
    (name,) = scene.tokens._verified
    assert token.encode() not in name
    assert token not in repr(scene.tokens._verified)
