"""What Valkey holds, as far as anybody may see it: names, kinds, lifetimes and sizes of keys, and never a value."""

from dataclasses import dataclass
from typing import Final

MOST_KEYS: Final = 500


@dataclass(frozen=True)
class StoredKey:
    """`lifetime` in seconds is None for a key without one."""

    name: str
    kind: str
    lifetime: int | None
    size: int


def stored_keys(port: int) -> list[StoredKey]:
    """The keys of the Valkey at a port of this machine, by name. Blocks."""
    import redis

    with redis.Redis(port=port, socket_timeout=2, socket_connect_timeout=2, decode_responses=True) as valkey:
        names: list[str] = sorted(name for name, _ in zip(valkey.scan_iter(count=500), range(MOST_KEYS), strict=False))
        pipeline = valkey.pipeline(transaction=False)
        for name in names:
            pipeline.type(name)
            pipeline.ttl(name)
            pipeline.memory_usage(name)
        found = pipeline.execute()
    each_key = zip(names, found[::3], found[1::3], found[2::3], strict=True)
    # A key may have expired between two commands.
    return [
        StoredKey(name, kind, lifetime if lifetime >= 0 else None, size)
        for name, kind, lifetime, size in each_key
        if size is not None
    ]
