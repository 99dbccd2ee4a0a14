"""Honest clients and their users, many at once: what they do when something fails, and what became of each flow.

A client here does what its documentation would tell it to: a request that got no answer is sent again, as it was; a
503 is tried again later; a 401 gets a new token; an `input_required` without a question is answered at once. What it
does not do is begin anew: a flow that ends without its result, and without having been told so, is lost.
"""

import asyncio
import contextlib
import itertools
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Coroutine
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

import httpx2

from infra.local.person import Intent, ScriptedBrowser
from tests.hostile.draft import FORMS_AND_URLS, Draft, accept, call
from tests.hostile.laboratory import Laboratory

PATIENCE: Final = 40.0
"""Seconds after which a client gives a flow up as lost. A lease, and what an environment needs to start."""
PACE: Final = 0.15
"""Seconds that a client rests between two flows."""
_LONGEST_WAIT: Final = 0.4
_numbers: Final = itertools.count(1)


class End(StrEnum):
    """What became of a flow."""

    FINISHED = "finished"
    TOLD = "told"
    """The client got a sentence that says what happened or what to do."""
    LOST = "lost"


@dataclass
class Tally:
    """What was counted in one phase."""

    name: str
    faults: int = 0
    kills: int = 0
    requests: int = 0
    retried: int = 0
    unavailable: int = 0
    """503 with Retry-After: a function says that something of ours is down."""
    gateway: int = 0
    """The gateway's own answer for an environment that died."""
    gateway_said: Counter[str] = field(default_factory=Counter)
    pages: int = 0
    ends: Counter[End] = field(default_factory=Counter)
    reloads: int = 0
    """Pages that a person had to open again."""
    slowest: float = 0.0
    wrong: list[str] = field(default_factory=list)
    """Answers that nobody should ever get."""
    told: Counter[str] = field(default_factory=Counter)


class Load:
    """Runs flows until it is told to stop. `tally` is where things are counted now."""

    def __init__(self, lab: Laboratory) -> None:
        self.lab = lab
        self.tally = Tally("start")
        self.stopping = False
        self.guarded: list[str] = []
        """What was to be erased or moved, each once at most."""

    async def run(self, *, clients: int, people: tuple[str, ...] = ("alice", "bob")) -> None:
        """Keep going with so many clients of forms and of guarded tools, and these people who connect accounts."""
        limits = httpx2.Limits(max_connections=clients + 4)
        async with httpx2.AsyncClient(trust_env=False, timeout=35, limits=limits) as http:
            kinds = (self._form, self._guarded, self._guarded_twice)
            flows = [self._repeat(http, kinds[number % len(kinds)]) for number in range(clients)]
            flows += [self._repeat(http, _Person(self, person).connects) for person in people]
            await asyncio.gather(*flows)

    async def _repeat(self, http: httpx2.AsyncClient, flow: Callable[["Client"], Coroutine[Any, Any, None]]) -> None:
        while not self.stopping:
            client = Client(self, http, f"user-{next(_numbers)}")
            tally = self.tally
            try:
                async with asyncio.timeout(PATIENCE):
                    await flow(client)
            except Told as told:
                tally.ends[End.TOLD] += 1
                tally.told[str(told)[:70]] += 1
            except AssertionError as error:
                tally.wrong.append(f"{error} (last: {client.last})")
            except KeyError as error:
                tally.wrong.append(f"no {error} (last: {client.last})")
            except TimeoutError:
                tally.ends[End.LOST] += 1
                tally.wrong.append(f"lost after: {client.last}")
            else:
                tally.ends[End.FINISHED] += 1
            await asyncio.sleep(PACE)

    async def _form(self, client: "Client") -> None:
        draft = client.call("rename", target=client.subject)
        asked = await client.begin(draft)
        answers = {"name": accept(name="something else")}
        await client.finish(draft, asked, answers, f"{client.subject} is called something else.")

    async def _guarded(self, client: "Client") -> None:
        target = client.subject
        self.guarded.append(f"erased {target}")
        draft = client.call("erase", target=target)
        asked = await client.begin(draft)
        await client.finish(draft, asked, {"confirm": accept(confirm=True)}, f"{target} is erased.")

    async def _guarded_twice(self, client: "Client") -> None:
        target = client.subject
        self.guarded.append(f"moved {target} to the attic")
        draft = client.call("move", target=target)
        asked = await client.begin(draft)
        asked = await client.answer(draft, asked, {"confirm": accept(confirm=True)})
        await client.finish(draft, asked, {"name": accept(name="the attic")}, f"{target} is at the attic.")


class Told(Exception):
    """The flow has ended with a sentence."""


def expect(result: dict[str, Any], text: str) -> None:
    """Raise Told for a result that says something else, and AssertionError for one that is no result."""
    assert result["resultType"] == "complete", result
    said = "".join(block["text"] for block in result["content"])
    if result.get("isError"):
        raise Told(said)
    assert text in said, said


@dataclass
class Client:
    """One client of one user, in one flow."""

    load: Load
    http: httpx2.AsyncClient
    subject: str
    client_id: str = "https://client.example.com/client.json"
    last: str = "nothing"

    def __post_init__(self) -> None:
        self._token = self._mint()

    def _mint(self) -> str:
        return self.load.lab.mint(self.subject, client_id=self.client_id)

    def call(self, tool: str, **arguments: Any) -> Draft:
        """A call of a tool."""
        return call(self._token, tool, FORMS_AND_URLS, **arguments)

    async def begin(self, draft: Draft) -> dict[str, Any]:
        """Send the first round: the first question."""
        result = await self.ask(draft)
        if result["resultType"] == "complete":
            expect(result, "nothing ends without a question")
        return result

    async def answer(self, draft: Draft, asked: dict[str, Any], answers: dict[str, Any]) -> dict[str, Any]:
        """Send the answers, and come again as long as it is still running elsewhere: the next question, or the end."""
        result = await self.ask(draft.params(inputResponses=answers, requestState=asked["requestState"]))
        while result["resultType"] == "input_required" and "inputRequests" not in result:
            result = await self.ask(draft.params(requestState=result["requestState"]))
        if result.get("isError"):
            expect(result, "")
        return result

    async def finish(self, draft: Draft, asked: dict[str, Any], answers: dict[str, Any], text: str) -> None:
        """Send the last answers."""
        expect(await self.answer(draft, asked, answers), text)

    async def ask(self, draft: Draft) -> dict[str, Any]:
        """Send a request until it is answered. Never gives up: the flow's patience ends it."""
        headers = {name.lower(): str(value) for name, value in draft.headers}
        while True:
            self.load.tally.requests += 1
            headers["authorization"] = f"Bearer {self._token}"
            started = time.perf_counter()
            try:
                response = await self.http.post(self.load.lab.url + "/mcp", content=draft.content, headers=headers)
            except httpx2.HTTPError as error:
                self.last = type(error).__name__
                self.load.tally.wrong.append(f"no answer: {self.last}")
                await asyncio.sleep(_LONGEST_WAIT)
                continue
            tally = self.load.tally
            tally.slowest = max(tally.slowest, time.perf_counter() - started)
            self.last = f"{response.status_code} {response.text[:200]}"
            answer = _json(response)
            match response.status_code:
                case 200:
                    result: dict[str, Any] = answer["result"]
                    return result
                case 503 if "retry-after" in response.headers:
                    tally.unavailable += 1
                    await asyncio.sleep(min(float(response.headers["retry-after"]), _LONGEST_WAIT))
                case 401 if answer == {"error": "invalid_token"}:
                    self._token = self._mint()
                case 500 | 502 | 503 | 504 if set(answer) == {"message"}:
                    tally.gateway += 1
                    tally.gateway_said[f"mcp {response.status_code}"] += 1
                case status:
                    tally.wrong.append(f"{status} {response.text[:200]}")
                    raise Told(f"{status}")
            tally.retried += 1


def _json(response: httpx2.Response) -> Any:
    with contextlib.suppress(ValueError):
        return response.json()
    return {}


class _Person:
    """Connects an account again and again, with a new client each time, and a browser of their own."""

    def __init__(self, load: Load, name: str) -> None:
        self._load = load
        self._name = name

    async def connects(self, client: Client) -> None:
        client = Client(client.load, client.http, self._name, client_id=f"client-{next(_numbers)}")
        await client.ask(client.call("disconnect"))
        draft = client.call("list_repositories")
        result = await client.ask(draft)
        async with _browser() as browser:
            browser.http.event_hooks = {"response": [self._note]}
            while result["resultType"] == "input_required":
                answers = {key: {"action": "accept"} for key in result["inputRequests"]}
                if result["inputRequests"]:
                    (asked,) = result["inputRequests"].values()
                    await asyncio.to_thread(self._open, browser, asked["params"]["url"])
                result = await client.ask(draft.params(inputResponses=answers, requestState=result["requestState"]))
        expect(result, f"{self._name}-hub")

    def _open(self, browser: ScriptedBrowser, url: str) -> None:
        """Open a link. Whatever page it ends on, the client asks again, and has the link once more if it must."""
        intent = Intent(accounts=(self._name, f"{self._name}-hub"))
        try:
            browser.open(url, intent)
        except (httpx2.HTTPError, KeyError, ValueError, RuntimeError):
            # A page of the gateway's has no form, and one in the middle leads nowhere: people open the link again.
            self._load.tally.reloads += 1

    def _note(self, response: httpx2.Response) -> None:
        tally = self._load.tally
        if not str(response.url).startswith(self._load.lab.url):
            return
        response.read()
        tally.pages += 1
        tally.slowest = max(tally.slowest, float(response.headers["x-emulator-duration-ms"]) / 1000)
        if response.status_code < 500:
            return
        if response.status_code == 503 and "retry-after" in response.headers:
            tally.unavailable += 1
        elif set(_json(response)) == {"message"}:
            tally.gateway += 1
            tally.gateway_said[f"page {response.status_code}"] += 1
        else:
            tally.wrong.append(f"page: {response.status_code} {response.text[:200]}")


@contextlib.asynccontextmanager
async def _browser() -> AsyncIterator[ScriptedBrowser]:
    browser = ScriptedBrowser()
    try:
        yield browser
    finally:
        await asyncio.to_thread(browser.close)


def doubled(load: Load) -> list[str]:
    """What has happened more than once, of what must not."""
    happened = Counter(load.lab.effects())
    return [effect for effect in load.guarded if happened[effect] > 1]
