"""Two users, two clients, one flow, and time that passes when it is told to."""

from collections.abc import Iterator
from itertools import count

from app.effects.once import Effect, request_digest
from app.principal import Principal
from app.sealing import Key, Keyring

START = 1_800_000_000
ALICE = Principal("https://login.example.com", "alice-subject", "https://client-one.example/metadata.json")
ALICE_ELSEWHERE = ALICE._replace(client_id="https://client-two.example/metadata.json")
ALICE_OF_ANOTHER_ISSUER = ALICE._replace(issuer="https://other.example.com")
BOB = ALICE._replace(subject="bob-subject")
OLD = Key(1, bytes(range(32)))
NEW = Key(2, bytes(range(32, 64)))
KEYRING = Keyring(current=OLD)

FLOW = bytes(range(16))
YES = request_digest(b"tools/call", b"close_ticket", answers={"close": {"action": "accept"}})
NO = request_digest(b"tools/call", b"close_ticket", answers={"close": {"action": "decline"}})
EFFECT = Effect(flow_id=FLOW, principal=ALICE, request_digest=YES, expires_at=START + 3600)
RESULT = {"content": [{"type": "text", "text": "The ticket is closed."}], "n": 1.5}


class Clock:
    """Seconds since the epoch."""

    def __init__(self, now: float = START) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


def owners() -> Iterator[bytes]:
    """Fresh nonces that a test can name."""
    return (number.to_bytes(16, "big") for number in count(1))
