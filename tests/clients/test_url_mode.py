"""URL mode through the whole stack: an official client, real pages, a real store, a third party, two functions."""

import asyncio
import contextlib
import os
import signal
import statistics
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import httpx2
import pytest
import redis
from mcp_types import ElicitRequestParams, ElicitRequestURLParams, ElicitResult, TextContent

from infra.local.desk import desk_stack
from infra.local.identity.scripted_browser import forms_of
from infra.local.on_thread import on_thread
from infra.local.person import Browser, Intent, ScriptedBrowser, Visited, new_browser
from infra.local.python_client import signed_in_client
from infra.local.stack import ROOT
from tests.clients.raw import RawClient, mint
from tests.conftest import RunningStack

ALICE = Intent(accounts=("alice", "alice-hub"), secret="sk_live_never_seen_elsewhere")
BOB = Intent(accounts=("bob", "bob-hub"))
URLS: dict[str, Any] = {"elicitation": {"form": {}, "url": {}}}
SCREENSHOTS = ROOT / "build" / "screenshots" / "url-mode"


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningStack]:
    """A stack of this module's own: it restarts, hangs and empties the store."""
    folder = tmp_path_factory.mktemp("url-mode")
    with on_thread(lambda: desk_stack(folder), name="url-mode") as running:
        yield RunningStack(*running)


@pytest.fixture
def alice(stack: RunningStack) -> str:
    """A token of a client that nothing was approved for yet."""
    return mint(stack.stack, "alice", client_id=f"client-{time.time_ns()}")


@pytest.fixture
def store(stack: RunningStack) -> Iterator[Any]:
    """The store, to look inside it."""
    with redis.Redis(port=stack.stack.valkey.port, decode_responses=True) as client:
        yield client


def open_in_new(url: str, intent: Intent, kind: type[ScriptedBrowser] = ScriptedBrowser) -> Visited:
    """Open a link in a browser that knows nobody yet."""
    with contextlib.closing(kind()) as browser:
        return browser.open(url, intent)


@contextlib.asynccontextmanager
async def raw(stack: RunningStack, token: str, capabilities: dict[str, Any] = URLS) -> AsyncIterator[RawClient]:
    async with httpx2.AsyncClient(trust_env=False, timeout=30) as http:
        yield RawClient(http, stack.mcp_url, token, capabilities=capabilities)


async def ask(client: RawClient, tool: str = "list_repositories", **arguments: Any) -> dict[str, Any]:
    response = await client.call(tool, arguments)
    result: dict[str, Any] = response.json()["result"]
    return result


async def retry(
    client: RawClient, asked: dict[str, Any], action: str = "accept", tool: str = "list_repositories", **arguments: Any
) -> dict[str, Any]:
    answers = {key: {"action": action} for key in asked["inputRequests"]}
    response = await client.call(tool, arguments, inputResponses=answers, requestState=asked["requestState"])
    result: dict[str, Any] = response.json()["result"]
    return result


def link(asked: dict[str, Any]) -> str:
    (request,) = asked["inputRequests"].values()
    assert request["params"]["mode"] == "url"
    url: str = request["params"]["url"]
    return url


def text(result: dict[str, Any]) -> str:
    found: str = result["content"][0]["text"]
    return found


@dataclass
class Person:
    """Opens the link of the first question, lets the client retry once too early, and records what happens."""

    browser: Browser
    intent: Intent
    seen: list[str] = field(default_factory=list)
    pages: list[str] = field(default_factory=list)

    def __call__(self, params: ElicitRequestParams) -> ElicitResult:
        assert isinstance(params, ElicitRequestURLParams)
        self.seen.append(params.url)
        if len(self.seen) == 2:
            self.pages = self.browser.open(params.url, self.intent).pages
        return ElicitResult(action="accept")


@pytest.mark.slow
def test_the_official_client_and_a_browser_connect_and_another_environment_answers(stack: RunningStack) -> None:
    """MCP client/elicitation, URL Mode Flow: an early retry gets the same URL, a later one the repositories."""
    served_by: list[str] = []

    async def wire(response: httpx2.Response) -> None:
        if response.request.headers.get("mcp-method") == "tools/call":
            served_by.append(response.headers["x-emulator-environment"])

    async def run(browser: Browser) -> tuple[str, Person]:
        person = Person(browser, ALICE)
        async with signed_in_client(stack.mcp_url, user="alice", answer=person, on_response=wire) as client:
            result = await client.call_tool("list_repositories", {})
        assert isinstance(result.content[0], TextContent)
        return result.content[0].text, person

    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    for old in SCREENSHOTS.glob("*.png"):
        old.unlink()
    with new_browser(screenshots=SCREENSHOTS) as browser:
        listed, person = asyncio.run(run(browser))
    assert "garden-plans" in listed
    assert len(person.seen) == 2
    assert len(set(person.seen)) == 1
    assert person.pages[0] == "Sign in"
    assert "Connect Local Hub?" in person.pages
    assert person.pages[-1] == "Local Hub is connected"
    assert len(served_by) == 3
    assert len(set(served_by)) == 2


@pytest.mark.slow
def test_every_environment_may_be_replaced_between_any_two_steps(stack: RunningStack, alice: str) -> None:
    """CASES B.2 27, B.7 94: no verifier, no state and no flow lives in a process."""

    class Restarting(ScriptedBrowser):
        def _follow(self, response: httpx2.Response) -> httpx2.Response:
            while response.is_redirect:
                stack.restart()
                response = self.http.get(httpx2.URL(str(response.url)).join(response.headers["location"]))
            stack.restart()
            return response

    async def run() -> dict[str, Any]:
        async with raw(stack, alice) as client:
            asked = await ask(client)
            visited = await asyncio.to_thread(open_in_new, link(asked), ALICE, Restarting)
            assert visited.url.endswith("/connect/done")
            return await retry(client, asked)

    assert "garden-plans" in text(asyncio.run(run()))


@pytest.mark.slow
def test_a_thousand_early_retries_get_the_same_url_and_leave_nothing_behind(
    stack: RunningStack, store: Any, alice: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """DESIGN 1.1: never waits. The figure is printed, not judged: see the benchmark."""

    async def run() -> tuple[set[str], list[float], int, int]:
        async with raw(stack, alice) as client:
            asked = await ask(client)
            keys, urls, milliseconds = store.dbsize(), {link(asked)}, []
            for _ in range(1000):
                # Each retry is of the first round: the round cap is the client's affair.
                answers = {key: {"action": "accept"} for key in asked["inputRequests"]}
                response = await client.call(
                    "list_repositories", {}, inputResponses=answers, requestState=asked["requestState"]
                )
                urls.add(link(response.json()["result"]))
                milliseconds.append(float(response.headers["x-emulator-duration-ms"]))
            return urls, milliseconds, keys, store.dbsize()

    urls, milliseconds, before, after = asyncio.run(run())
    assert len(urls) == 1
    assert after == before
    with capsys.disabled():
        worst = statistics.quantiles(milliseconds, n=100)[98]
        print(f"\n1,000 early retries: median {statistics.median(milliseconds):.1f} ms, p99 {worst:.1f} ms")


def test_bob_cannot_finish_what_alice_started_and_alice_still_can(stack: RunningStack, alice: str) -> None:
    """MUST: client/elicitation, Phishing. All three variants of SECURITY 1."""

    async def run(bobs: ScriptedBrowser, alices: ScriptedBrowser) -> None:
        async with raw(stack, alice) as client:
            asked = await ask(client)
            url = link(asked)
            hub_before = len(stack.stack.hub.record.at("/token"))

            # 1: Bob opens the link that Alice sent him.
            refused = await asyncio.to_thread(bobs.open, url, BOB)
            assert "another account" in refused.pages[-1]

            # 2: Alice approves herself, and sends Bob the third party's URL, or her callback.
            await asyncio.to_thread(alices.open, f"{stack.stack.emulator.url}/connections", ALICE)
            third_party = await asyncio.to_thread(_approve, alices, url)
            assert urlsplit(third_party).netloc == urlsplit(stack.stack.hub.url).netloc
            finished = await asyncio.to_thread(bobs.open, third_party, BOB)
            assert "/oauth/callback/" not in finished.url or finished.pages[-1] != "Local Hub is connected"

            # 3: a browser without any session.
            nobody = await asyncio.to_thread(open_in_new, third_party, Intent(accounts=("bob-hub",)))
            assert nobody.pages[-1] != "Local Hub is connected"

            assert len(stack.stack.hub.record.at("/token")) == hub_before, "no code was exchanged"
            assert link(await retry(client, asked)) == url, "the flow is as it was"
            await asyncio.to_thread(alices.open, url, ALICE)
            assert "garden-plans" in text(await retry(client, asked))

    # Nobody is connected before this test.
    _disconnect(stack)
    with contextlib.closing(ScriptedBrowser()) as bobs, contextlib.closing(ScriptedBrowser()) as alices:
        asyncio.run(run(bobs, alices))


def _approve(browser: ScriptedBrowser, url: str) -> str:
    page = browser.http.get(url)
    (form,) = [each for each in forms_of(page.text) if each.action.endswith("/start")]
    origin = "{0.scheme}://{0.netloc}".format(urlsplit(url))
    response = browser.http.post(
        origin + form.action, data=form.hidden, headers={"origin": origin, "sec-fetch-site": "same-origin"}
    )
    location: str = response.headers["location"]
    return location


def _disconnect(stack: RunningStack) -> None:
    async def run() -> None:
        async with raw(stack, mint(stack.stack, "alice")) as client:
            await client.call("disconnect", {})

    asyncio.run(run())


@pytest.mark.parametrize(
    ("action", "said"), [("decline", "declined"), ("cancel", "not finished")], ids=["decline", "cancel"]
)
def test_decline_and_cancel_end_the_call_and_say_which(stack: RunningStack, action: str, said: str) -> None:
    """SECURITY 3, state table."""

    async def run() -> dict[str, Any]:
        async with raw(stack, mint(stack.stack, f"someone-{action}")) as client:
            return await retry(client, await ask(client), action)

    result = asyncio.run(run())
    assert result["isError"] is True
    assert said in text(result)


def test_a_client_without_url_mode_gets_the_link_as_text_and_its_next_call_finishes(stack: RunningStack) -> None:
    """CASES B.4 36-39: many hosts declare `elicitation: {}`, which is form mode only."""
    _disconnect(stack)

    async def run() -> tuple[str, str]:
        token = mint(stack.stack, "alice", client_id="form-only")
        async with raw(stack, token, {"elicitation": {}}) as client:
            first = text(await ask(client))
            (url,) = [word for word in first.split() if "/connect/" in word]
            await asyncio.to_thread(open_in_new, url, ALICE)
            return first, text(await ask(client))

    first, second = asyncio.run(run())
    assert 'call the tool "list_repositories" again' in first
    assert "garden-plans" in second


def test_the_store_restarted_empty_leads_to_a_new_link(stack: RunningStack, store: Any) -> None:
    """SECURITY 5.139: a lost flow is a new URL, and an old link is a page that says so."""

    async def run() -> None:
        async with raw(stack, mint(stack.stack, "alice", client_id="emptied")) as client:
            asked = await ask(client)
            store.flushall()
            again = await retry(client, asked)
            assert link(again) != link(asked)
            visited = await asyncio.to_thread(open_in_new, link(asked), ALICE)
            assert visited.pages[-1] not in ("Connect Local Hub?", "Local Hub is connected")
            await asyncio.to_thread(open_in_new, link(again), ALICE)
            assert "garden-plans" in text(await retry(client, again))

    asyncio.run(run())


@pytest.mark.parametrize("trouble", ["hung", "down"])
def test_an_outage_of_the_store_is_503_at_once_and_forms_go_on(trouble: str, tmp_path: Path) -> None:
    """DESIGN 5: what needs the store answers 503 with Retry-After; what needs none goes on."""

    async def run(stack: RunningStack) -> None:
        process = stack.stack.valkey._process
        async with raw(stack, mint(stack.stack, "alice")) as client:
            asked = await ask(client)
            if trouble == "hung":
                os.kill(process.pid, signal.SIGSTOP)
            else:
                stack.stack.valkey.stop()
            try:
                refused = await client.call("list_repositories", {})
                assert refused.status_code == 503
                assert int(refused.headers["retry-after"]) > 0
                form = await client.call("delete_report", {"target": "Q1"})
                assert form.json()["result"]["resultType"] == "input_required"
                page = await client.http.get(link(asked))
                assert page.status_code in (303, 503)
            finally:
                if trouble == "hung":
                    os.kill(process.pid, signal.SIGCONT)
            if trouble == "hung":
                assert link(await retry(client, asked)) == link(asked)

    with on_thread(lambda: desk_stack(tmp_path, environments=1), name="outage") as running:
        asyncio.run(run(RunningStack(*running)))


def test_nothing_secret_is_in_the_store_the_log_the_answers_or_the_urls(stack: RunningStack, store: Any) -> None:
    """SECURITY 1, stolen dump and leaked log: every secret of a whole run is looked for everywhere."""
    _disconnect(stack)
    answers: list[str] = []
    hub_server: Any = stack.stack.hub.server

    class Recording(ScriptedBrowser):
        def __init__(self) -> None:
            super().__init__()
            self.cookies: set[str] = set()
            self.urls: list[str] = []
            self.http.event_hooks = {"response": [self._note]}

        def _note(self, response: httpx2.Response) -> None:
            self.urls.append(str(response.url))
            self.cookies |= {value for value in response.cookies.values() if len(value) > 20}

    async def run(browser: Recording) -> list[str]:
        token = mint(stack.stack, "alice", client_id="leaks")
        async with raw(stack, token) as client:

            async def wire(response: httpx2.Response) -> None:
                await response.aread()
                answers.append(response.text)

            client.http.event_hooks = {"response": [wire]}
            asked = await ask(client)
            await asyncio.to_thread(browser.open, link(asked), ALICE)
            connected = await retry(client, asked)
            assert "garden-plans" in text(connected)
            typed = await ask(client, "charge_card", cents=100)
            if "inputRequests" in typed:
                await asyncio.to_thread(browser.open, link(typed), ALICE)
            handles = [link(each).rpartition("/")[2] for each in (asked, typed) if "mode" in str(each)]
            return [token, *handles]

    with contextlib.closing(Recording()) as browser:
        token, *handles = asyncio.run(run(browser))
    provider_tokens = [*hub_server.ledger.access_tokens, *hub_server.ledger.refresh_tokens]
    codes = [value for url in browser.urls for name, value in _query(url) if name in ("code", "state")]
    secrets = [token, ALICE.secret, *provider_tokens, *browser.cookies]
    assert len(provider_tokens) >= 2
    assert codes
    assert browser.cookies

    log = "\n".join(stack.stack.emulator.logs())
    dump = _dump(store)
    wire = "\n".join(answers)
    urls = "\n".join(browser.urls)
    for secret in [*secrets, *handles, *codes]:
        assert secret not in log
        assert secret not in dump
    for secret in [*secrets, *codes]:
        assert secret not in wire
    for secret in secrets:
        assert secret not in urls
    assert "alice" not in dump
    assert stack.stack.identity.url not in dump
    assert not stack.stack.hub.record.any_jwt, "no MCP token went to the third party"


def _query(url: str) -> list[tuple[str, str]]:
    return parse_qsl(urlsplit(url).query)


def _dump(client: Any) -> str:
    read = {
        "hash": client.hgetall,
        "string": client.get,
        "zset": lambda key: client.zrange(key, 0, -1, withscores=True),
    }
    return repr([[key, read[client.type(key)](key)] for key in client.keys("*")])
