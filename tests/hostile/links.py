"""Links of URL mode, and the browsers of those who open them: their owner, somebody else, nobody."""

import contextlib
import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import parse_qsl, urlsplit

import httpx2

from infra.local.identity.scripted_browser import Form, forms_of
from infra.local.person import Intent, ScriptedBrowser
from infra.local.provider import approve
from tests.hostile.draft import FORMS_AND_URLS, Draft, call
from tests.hostile.laboratory import Laboratory
from tests.hostile.wire import Answer, exchange

ACCOUNTS: Final = {"alice": "alice-hub", "bob": "bob-hub"}
_clients = itertools.count(1)


@dataclass(frozen=True)
class Link:
    """What a client was given to show to its user, and how it asks again."""

    lab: Laboratory
    draft: Draft
    asked: dict[str, Any]

    @property
    def url(self) -> str:
        (request,) = self.asked["inputRequests"].values()
        assert request["params"]["mode"] == "url"
        url: str = request["params"]["url"]
        return url

    @property
    def handle(self) -> str:
        return self.url.rpartition("/")[2]

    def retry(self, action: str = "accept") -> Answer:
        """Repeat the call, with this said about the link."""
        answers = {key: {"action": action} for key in self.asked["inputRequests"]}
        again = self.draft.params(inputResponses=answers, requestState=self.asked["requestState"])
        return exchange(self.lab.port, again.wire())

    def is_open(self) -> bool:
        """Whether it still waits for its user, at the same place."""
        answer = self.retry().result
        return answer["resultType"] == "input_required" and Link(self.lab, self.draft, answer).url == self.url

    def is_connected(self) -> bool:
        """Whether the call now runs."""
        return "garden-plans" in text(self.retry())


def text(answer: Answer) -> str:
    """The text of a finished call, or nothing."""
    return "".join(block["text"] for block in answer.result.get("content", ()))


def asked(lab: Laboratory, subject: str = "alice", *, client_id: str | None = None) -> Link:
    """A call that needs the user's account, by a client of its own."""
    token = lab.mint(subject, client_id=client_id or f"client-{next(_clients)}")
    draft = call(token, "list_repositories", FORMS_AND_URLS)
    return Link(lab, draft, exchange(lab.port, draft.wire()).result)


class Browser:
    """One person's browser. Every page of ours that it sees is kept."""

    def __init__(self, lab: Laboratory, person: str | None) -> None:
        self.lab = lab
        self.person = person
        self.scripted = ScriptedBrowser()
        self.http = self.scripted.http
        self.seen: list[httpx2.Response] = []
        self.http.event_hooks = {"response": [self._keep]}

    def _keep(self, response: httpx2.Response) -> None:
        if str(response.url).startswith(self.lab.url):
            self.seen.append(response)

    def sign_in(self) -> None:
        """Sign in at our pages."""
        assert self.person is not None
        self.scripted.open(f"{self.lab.url}/connections", Intent(accounts=(self.person,)))

    def finish(self, link: Link) -> list[str]:
        """Open a link, approve here and there, and come back: the headings on the way."""
        assert self.person is not None
        return self.scripted.open(link.url, Intent(accounts=(self.person, ACCOUNTS[self.person]))).pages

    def get(self, path_or_url: str, **headers: str) -> httpx2.Response:
        url = path_or_url if path_or_url.startswith("http") else self.lab.url + path_or_url
        return self.http.get(url, headers=headers)

    def form(self, link: Link, step: str = "start") -> Form:
        """The form on the page of a link."""
        page = self.get(link.url)
        (form,) = (each for each in forms_of(page.text) if each.action.endswith(f"/{step}"))
        return form

    def post(self, path: str, fields: dict[str, str], **headers: str) -> httpx2.Response:
        """Submit a form as this browser would, but for these headers; an empty one is left out."""
        own = {"origin": self.lab.url, "sec_fetch_site": "same-origin", **headers}
        sent = {name.replace("_", "-"): value for name, value in own.items() if value}
        return self.http.post(self.lab.url + path, data=fields, headers=sent)

    def start(self, link: Link) -> str:
        """Approve on our page: where the browser is sent then."""
        form = self.form(link)
        response = self.post(form.action, form.hidden)
        assert response.status_code == 303, response.text
        location: str = response.headers["location"]
        return location

    def callback(self, link: Link) -> str:
        """Approve here and there: the URL that leads back, which is not opened."""
        assert self.person is not None
        return approve(self.start(link), user=ACCOUNTS[self.person])


@contextlib.contextmanager
def browser(lab: Laboratory, person: str | None = None) -> Iterator[Browser]:
    """A new browser profile; with a `person`, who has signed in."""
    opened = Browser(lab, person)
    with contextlib.closing(opened.scripted):
        if person is not None:
            opened.sign_in()
        yield opened


def query(url: str) -> dict[str, str]:
    """The parameters of a URL."""
    return dict(parse_qsl(urlsplit(url).query))


def exchanges(lab: Laboratory) -> int:
    """How many codes were exchanged at the third party, or tried."""
    return sum(each.grant_type == "authorization_code" for each in lab.stack.hub.record.at("/token"))
