"""ports.FlowStore and ports.VaultStore in one process: for tests and for reading. Nothing survives a restart.

Two instances of a function share no memory, so this cannot stand in for Redis behind one.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from threading import Lock

from app.ports import (
    Elsewhere,
    FlowPointer,
    Gone,
    LockHeld,
    Mismatch,
    Moved,
    Transition,
    VaultEntry,
)


class MemoryFlowStore:
    """Implements ports.FlowStore."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._lock = Lock()
        self._flows: dict[str, tuple[float, dict[str, str]]] = {}

    def create(self, flow_id: str, fields: Mapping[str, str], *, lifetime: int) -> None:
        with self._lock:
            self._flows[flow_id] = (self._clock() + lifetime, dict(fields))

    def read(self, flow_id: str) -> Mapping[str, str] | None:
        with self._lock:
            flow = self._live(flow_id)
            return None if flow is None else dict(flow)

    def move(self, flow_id: str, transition: Transition, *, now: float) -> Moved | Mismatch | Elsewhere | Gone:
        with self._lock:
            flow = self._live(flow_id)
            if flow is None:
                return Gone()
            if flow.get("step") == transition.step:
                return Moved(dict(flow))
            status = flow["status"]
            if status == "exchanging" and not now < float(flow["lock_until"]):
                status = "failed"
            for name, value in transition.guards:
                if flow.get(name) != value:
                    return Mismatch(name, status)
            if status not in transition.sources:
                return Elsewhere(status)
            if transition.attempt_cap is not None:
                attempts = int(flow["attempts"])
                if attempts >= transition.attempt_cap:
                    flow["status"] = "failed_final"
                    return Elsewhere("failed_final")
                flow["attempts"] = str(attempts + 1)
            flow.update(transition.writes, status=transition.target, step=transition.step)
            return Moved(dict(flow))

    def delete(self, flow_id: str) -> None:
        with self._lock:
            self._flows.pop(flow_id, None)

    def _live(self, flow_id: str) -> dict[str, str] | None:
        expires_at, flow = self._flows.get(flow_id, (float("-inf"), None))
        return flow if self._clock() < expires_at else None


@dataclass(frozen=True, slots=True)
class _Slot:
    pointer: FlowPointer
    open: bool


class MemoryVaultStore:
    """Implements ports.VaultStore."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._lock = Lock()
        self._records: dict[str, dict[str, VaultEntry]] = {}
        self._slots: dict[str, dict[str, _Slot]] = {}
        self._locks: dict[tuple[str, str], tuple[float, str]] = {}

    def look(self, user: str, entry: str, slot: str) -> tuple[VaultEntry | None, FlowPointer | None]:
        with self._lock:
            found = self._slots.get(user, {}).get(slot)
            return self._record(user, entry), found.pointer if found else None

    def entries(self, user: str) -> Mapping[str, VaultEntry]:
        with self._lock:
            return dict(self._records.get(user, {}))

    def put(self, user: str, entry: str, new: VaultEntry, *, replaces: str | None) -> bool:
        with self._lock:
            old = self._record(user, entry)
            if old == new:
                return True
            if (old.version if old else None) != replaces:
                return False
            self._records.setdefault(user, {})[entry] = new
            return True

    def delete(self, user: str, entry: str, *, version: str) -> bool:
        with self._lock:
            old = self._record(user, entry)
            if old is None or old.version != version:
                return False
            del self._records[user][entry]
            return True

    def lock(self, user: str, entry: str, owner: str, *, seconds: int) -> VaultEntry | LockHeld | None:
        with self._lock:
            until, holder = self._locks.get((user, entry), (float("-inf"), ""))
            if self._clock() < until and holder != owner:
                return LockHeld()
            self._locks[user, entry] = (self._clock() + seconds, owner)
            return self._record(user, entry)

    def unlock(self, user: str, entry: str, owner: str) -> None:
        with self._lock:
            if self._locks.get((user, entry), (0, ""))[1] == owner:
                del self._locks[user, entry]

    def point(
        self, user: str, slot: str, pointer: FlowPointer, *, replaces: str | None, limit: int, now: float
    ) -> FlowPointer | None:
        with self._lock:
            slots = self._slots.setdefault(user, {})
            for name in [name for name, each in slots.items() if not now < each.pointer.expires_at]:
                del slots[name]
            standing = slots.get(slot)
            if standing is not None and standing.pointer.flow_id != replaces:
                return standing.pointer
            if sum(each.open for name, each in slots.items() if name != slot) >= limit:
                return None
            slots[slot] = _Slot(pointer, open=True)
            return pointer

    def settle(self, user: str, slot: str, flow_id: str) -> None:
        with self._lock:
            found = self._slots.get(user, {}).get(slot)
            if found is not None and found.pointer.flow_id == flow_id:
                self._slots[user][slot] = replace(found, open=False)

    def unpoint(self, user: str, slot: str, flow_id: str) -> None:
        with self._lock:
            found = self._slots.get(user, {}).get(slot)
            if found is not None and found.pointer.flow_id == flow_id:
                del self._slots[user][slot]

    def _record(self, user: str, entry: str) -> VaultEntry | None:
        return self._records.get(user, {}).get(entry)
