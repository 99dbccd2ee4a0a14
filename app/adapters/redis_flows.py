"""ports.FlowStore on Redis: one hash for each flow, and one script that takes every step."""

import json
from collections.abc import Mapping
from typing import Any

from app.adapters import redis_keys
from app.adapters.redis_connection import Redis, Script
from app.errors import Unavailable
from app.ports import Elsewhere, Gone, Mismatch, Moved, Transition

_CREATE = Script("""
-- KEYS[1] flow   ARGV[1] seconds to live, then fields and values
redis.call('HSET', KEYS[1], unpack(ARGV, 2))
redis.call('EXPIRE', KEYS[1], ARGV[1])
return 'created'
""")

_READ = Script("""
-- KEYS[1] flow
return redis.call('HGETALL', KEYS[1])
""")

_MOVE = Script("""
-- KEYS[1] flow   ARGV[1] the transition, as JSON   ARGV[2] now
local flat = redis.call('HGETALL', KEYS[1])
if #flat == 0 then return {'gone'} end
local flow = {}
for i = 1, #flat, 2 do flow[flat[i]] = flat[i + 1] end

local move = cjson.decode(ARGV[1])
-- Sent again after a lost reply: it was carried out then.
if flow.step == move.step then return {'moved', unpack(flat)} end

local status = flow.status
if status == 'exchanging' and not (tonumber(ARGV[2]) < tonumber(flow.lock_until)) then status = 'failed' end
for _, guard in ipairs(move.guards) do
    if flow[guard[1]] ~= guard[2] then return {'mismatch', guard[1], status} end
end
local standing_at_a_source = false
for _, source in ipairs(move.sources) do standing_at_a_source = standing_at_a_source or source == status end
if not standing_at_a_source then return {'elsewhere', status} end

if move.attempt_cap then
    if tonumber(flow.attempts) >= move.attempt_cap then
        redis.call('HSET', KEYS[1], 'status', 'failed_final')
        return {'elsewhere', 'failed_final'}
    end
    redis.call('HINCRBY', KEYS[1], 'attempts', 1)
end
for _, write in ipairs(move.writes) do redis.call('HSET', KEYS[1], write[1], write[2]) end
-- No EXPIRE: no step makes a flow live longer.
redis.call('HSET', KEYS[1], 'status', move.target, 'step', move.step)
return {'moved', unpack(redis.call('HGETALL', KEYS[1]))}
""")

_DELETE = Script("""
-- KEYS[1] flow
return redis.call('DEL', KEYS[1])
""")


class RedisFlowStore:
    """Implements ports.FlowStore."""

    def __init__(self, redis: Redis) -> None:
        self._redis = redis

    def create(self, flow_id: str, fields: Mapping[str, str], *, lifetime: int) -> None:
        flat = [part for pair in fields.items() for part in pair]
        self._redis.run(_CREATE, [redis_keys.flow(flow_id)], [lifetime, *flat])

    def read(self, flow_id: str) -> Mapping[str, str] | None:
        return _fields(self._redis.run(_READ, [redis_keys.flow(flow_id)])) or None

    def move(self, flow_id: str, transition: Transition, *, now: float) -> Moved | Mismatch | Elsewhere | Gone:
        move: dict[str, object] = {
            "step": transition.step,
            "sources": sorted(transition.sources),
            "target": transition.target,
            "guards": [list(guard) for guard in transition.guards],
            "writes": [list(write) for write in transition.writes.items()],
        }
        if transition.attempt_cap is not None:
            move["attempt_cap"] = transition.attempt_cap
        match self._redis.run(_MOVE, [redis_keys.flow(flow_id)], [json.dumps(move), repr(now)]):
            case ["moved", *flat]:
                return Moved(_fields(flat))
            case ["mismatch", field, status]:
                return Mismatch(field, status)
            case ["elsewhere", status]:
                return Elsewhere(status)
            case ["gone"]:
                return Gone()
            case _:
                raise Unavailable("redis: unknown verdict", retry_after=1)

    def delete(self, flow_id: str) -> None:
        self._redis.run(_DELETE, [redis_keys.flow(flow_id)])


def _fields(flat: list[Any]) -> dict[str, str]:
    return dict(zip(flat[::2], flat[1::2], strict=True))
