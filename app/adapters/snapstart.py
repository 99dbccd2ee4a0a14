"""SnapStart: what a snapshot may hold, and what every environment that is restored from it must fetch for itself.

A snapshot is taken once, after INIT of a published version, and restored as often as Lambda likes: what it holds is
in each of them, days later too. Keys in it would outlive their rotation, connections and credentials are dead.
"""

from typing import Protocol, runtime_checkable


@runtime_checkable
class Forgetful(Protocol):
    """Holds what it has fetched or opened, and fetches or opens it again when it is needed next."""

    def forget(self) -> None:
        """Drop it all. Raises nothing: a hook that fails is an environment that does not start."""
        ...


@runtime_checkable
class Preparable(Protocol):
    """Imports lazily what a request may need."""

    def prepare(self) -> None:
        """Import it. Fetches and connects nothing."""
        ...


def register(*held: object) -> None:
    """Before the snapshot, forget and then prepare; after a restore, forget. Nothing where there are no snapshots."""
    try:
        from snapshot_restore_py import register_after_restore, register_before_snapshot
    except ImportError:
        # Only Lambda's managed runtimes from Python 3.12 on bring it.
        return

    def before_snapshot() -> None:
        forget(*held)
        for each in held:
            if isinstance(each, Preparable):
                each.prepare()

    register_before_snapshot(before_snapshot)
    register_after_restore(forget, *held)


def forget(*held: object) -> None:
    """Let everything forget that can."""
    for each in held:
        if isinstance(each, Forgetful):
            each.forget()
