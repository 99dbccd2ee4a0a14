"""What goes wrong, phase by phase, while the load goes on. What happens when is drawn from a seed."""

import asyncio
import contextlib
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from infra.local.emulator import EmulatorError
from infra.local.identity import generate_signing_key
from infra.local.provider import Fault, Kind
from tests.faults.load import Load, Tally
from tests.hostile.key_server import Keys
from tests.hostile.laboratory import Laboratory, hostile_keys
from tests.hostile.store_door import Door

Chaos: TypeAlias = Callable[["Trouble", float], Awaitable[None]]

_OF_THE_THIRD_PARTY: Final = (
    (Kind.CODE, Fault.SERVER_ERROR),
    (Kind.CODE, Fault.HTML),
    (Kind.CODE, Fault.INVALID_GRANT),
    (Kind.CODE, Fault.HUGE),
    (Kind.CODE, Fault.WRONG_TOKEN_TYPE),
    (Kind.CODE, Fault.DRIP),
    (Kind.API, Fault.SERVER_ERROR),
    (Kind.API, Fault.HUGE),
    (Kind.REVOCATION, Fault.SERVER_ERROR),
    (Kind.AUTHORIZATION, Fault.WRONG_ISS),
    (Kind.AUTHORIZATION, Fault.DENIED),
)


class Dice:
    """A seeded generator (splitmix64): the same seed, the same faults."""

    def __init__(self, seed: int) -> None:
        self._state = seed

    def below(self, count: int) -> int:
        """A number from 0 to count - 1."""
        self._state = (self._state + 0x9E3779B97F4A7C15) % 2**64
        mixed = self._state
        mixed = (mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
        mixed = (mixed ^ (mixed >> 27)) * 0x94D049BB133111EB % 2**64
        return (mixed ^ (mixed >> 31)) % count

    def one_of(self, choices: Sequence[Any]) -> Any:
        return choices[self.below(len(choices))]


@dataclass
class Trouble:
    """A hand on everything that can fail."""

    lab: Laboratory
    load: Load
    dice: Dice

    @property
    def tally(self) -> Tally:
        return self.load.tally

    async def kill_somebody(self, function: str | None = None) -> None:
        """End an environment in the middle of whatever it does."""
        there = [each for each in self.lab.stack.emulator.environments() if function in (None, each.function)]
        # Who does something has something to lose.
        names = [each.name for each in there if each.state == "busy"] or [
            each.name for each in there if each.state == "idle"
        ]
        if names:
            self.tally.kills += 1
            self.tally.faults += 1
            # It may have died by itself since, or been replaced.
            with contextlib.suppress(EmulatorError):
                await asyncio.to_thread(self.lab.kill, self.dice.one_of(names))

    @contextlib.asynccontextmanager
    async def door(self, state: Door) -> AsyncIterator[None]:
        """Let nothing else pass to the store and back."""
        self.tally.faults += 1
        door = self.lab.store.door
        await asyncio.to_thread(self.lab.run, door.set(state))
        try:
            yield
        finally:
            await asyncio.to_thread(self.lab.run, door.set(Door.OPEN))


async def nothing(trouble: Trouble, seconds: float) -> None:
    """All is well."""
    await asyncio.sleep(seconds)


async def environments_die(trouble: Trouble, seconds: float) -> None:
    """About one in a second."""
    for _ in range(int(seconds)):
        await asyncio.sleep(0.6 + 0.1 * trouble.dice.below(8))
        await trouble.kill_somebody(trouble.dice.one_of(("mcp", "mcp", "mcp", "web")))


async def the_store_dies_and_comes_back_empty(trouble: Trouble, seconds: float) -> None:
    """Everything that it kept is lost."""
    await asyncio.sleep(seconds / 4)
    trouble.tally.faults += 1
    await asyncio.to_thread(trouble.lab.store.stop)
    await asyncio.sleep(seconds / 4)
    await asyncio.to_thread(trouble.lab.store.start)
    await asyncio.sleep(seconds / 2)


async def the_store_hangs(trouble: Trouble, seconds: float) -> None:
    """It takes connections and says nothing, and then does all that it was told in the meantime."""
    for _ in range(2):
        await asyncio.sleep(seconds / 4)
        trouble.tally.faults += 1
        with trouble.lab.store.hung():
            await asyncio.sleep(seconds / 4)


async def the_store_cannot_be_reached(trouble: Trouble, seconds: float) -> None:
    """Nothing passes; replies get lost; connections are refused, and cut."""
    for state in (Door.SILENT, Door.NO_REPLY, Door.SHUT):
        await asyncio.sleep(seconds / 8)
        async with trouble.door(state):
            await asyncio.sleep(seconds / 6)
    for _ in range(4):
        trouble.tally.faults += 1
        await asyncio.to_thread(trouble.lab.run, trouble.lab.store.door.cut())
        await asyncio.sleep(seconds / 32)


async def the_issuer_fails(trouble: Trouble, seconds: float) -> None:
    """Its keys are not to be had, in each of four ways, for environments that have none yet."""
    for answer in (Keys.DOWN, Keys.HTML, Keys.HUGE, Keys.SLOW):
        trouble.tally.faults += 1
        trouble.lab.keys.answer = answer
        await trouble.kill_somebody("mcp")
        await asyncio.sleep(seconds / 4)
    trouble.lab.keys.answer = Keys.GOOD
    # Who has asked in vain waits half a minute before asking again: a deployment is quicker.
    await asyncio.to_thread(trouble.lab.restart)


async def the_issuer_changes_its_key(trouble: Trouble, seconds: float) -> None:
    """Announced before, used from now on, and the old one withdrawn while tokens of it are about."""
    keys = trouble.lab.stack.identity.server.keys
    old = keys.current.kid
    for key in announced(trouble.lab):
        keys.rotate(key)
    trouble.tally.faults += 1
    await asyncio.sleep(seconds / 2)
    keys.withdraw(str(old))
    trouble.tally.faults += 1
    for _ in range(2):
        await trouble.kill_somebody("mcp")
        await asyncio.sleep(seconds / 4)


async def the_third_party_misbehaves(trouble: Trouble, seconds: float) -> None:
    """A fault a second, for one request or two."""
    hub = trouble.lab.stack.hub
    for _ in range(int(seconds)):
        kind, fault = trouble.dice.one_of(_OF_THE_THIRD_PARTY)
        trouble.tally.faults += 1
        hub.misbehave(kind, fault, times=1 + trouble.dice.below(2))
        await asyncio.sleep(1)
    hub.behave()


async def everything_at_once(trouble: Trouble, seconds: float) -> None:
    """All but a store that loses what it has: against that a guard cannot help."""
    other = asyncio.gather(
        environments_die(trouble, seconds), the_third_party_misbehaves(trouble, seconds), return_exceptions=False
    )
    await the_store_cannot_be_reached(trouble, seconds)
    await other


PHASES: Final[Sequence[tuple[Chaos, float]]] = (
    (nothing, 4),
    (environments_die, 10),
    (the_store_cannot_be_reached, 8),
    (the_store_hangs, 6),
    (the_store_dies_and_comes_back_empty, 6),
    (the_issuer_fails, 8),
    (the_issuer_changes_its_key, 4),
    (the_third_party_misbehaves, 8),
    (everything_at_once, 8),
    (nothing, 3),
)

_announced: dict[int, list[Any]] = {}


def announced(lab: Laboratory) -> list[Any]:
    """The key that the issuer will sign with later, made when it is first asked for."""
    return _announced.setdefault(id(lab), [generate_signing_key()])


def announce_the_next_key(lab: Laboratory) -> None:
    """Publish it with the others from the beginning, as an issuer does."""
    own = lab.stack.identity.server.keys

    def published() -> list[dict[str, Any]]:
        coming = [{**key.as_dict(private=False), "use": "sig", "alg": "ES256"} for key in announced(lab)]
        there = own.jwks()["keys"]
        return [*there, *(key for key in coming if key["kid"] not in {each["kid"] for each in there}), *hostile_keys()]

    lab.keys.published = published


async def run_phases(lab: Laboratory, load: Load, *, clients: int, seed: int) -> list[Tally]:
    """Let every phase pass under load, and every flow come to its end."""
    announce_the_next_key(lab)
    trouble = Trouble(lab, load, Dice(seed))
    running = asyncio.create_task(load.run(clients=clients))
    tallies: list[Tally] = []
    try:
        for chaos, seconds in PHASES:
            load.tally = Tally(chaos.__name__.replace("_", " "))
            tallies.append(load.tally)
            await chaos(trouble, seconds)
    finally:
        load.stopping = True
        await running
    return tallies


def new_seed() -> int:
    """A seed to print, so that a failure can be had again."""
    return secrets.randbelow(2**32)
