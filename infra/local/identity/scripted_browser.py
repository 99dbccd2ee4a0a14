"""Goes through the sign-in and consent pages like a person's browser, for demos and tests without a screen."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from html.parser import HTMLParser
from types import TracebackType
from typing import Final, Self
from urllib.parse import urljoin, urlsplit

import httpx2

from infra.local.identity.trusted_certificates import trusted_certificates

MOST_STEPS: Final = 8


class SignInFailed(Exception):
    """The pages did not lead to a redirect to the client; the message says where they ended."""


def sign_in(authorization_url: str, *, user: str, approve: bool = True) -> str:
    """Sign in as `user`, approve or deny, and return the URL that the browser would be sent to at the client.

    That URL is not opened: it is the client's own. Blocks, so in an event loop call it in a thread.
    """
    with ScriptedBrowser() as browser:
        return browser.sign_in(authorization_url, user=user, approve=approve)


class ScriptedBrowser:
    """One browser profile: its cookies last as long as it does."""

    def __init__(self) -> None:
        self.http = httpx2.Client(verify=trusted_certificates(), follow_redirects=False, trust_env=False, timeout=10.0)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.http.close()

    def open(self, url: str) -> httpx2.Response:
        """The page at a URL, without any redirect."""
        return self.http.get(url)

    def sign_in(self, authorization_url: str, *, user: str, approve: bool = True) -> str:
        """Like the function of this name; a later call may find the user still signed in."""
        response = self.open(authorization_url)
        for _ in range(MOST_STEPS):
            page = str(response.url)
            if response.is_redirect:
                target = urljoin(page, response.headers["location"])
                if _origin(target) != _origin(authorization_url):
                    return target
                response = self.open(target)
            else:
                response = self._submit(page, _choose(response, user=user, approve=approve))
        raise SignInFailed(f"After {MOST_STEPS} steps the browser is still at {_origin(authorization_url)}")

    def _submit(self, page: str, submission: "_Submission") -> httpx2.Response:
        headers = {"Origin": _origin(page), "Sec-Fetch-Site": "same-origin"}
        return self.http.post(urljoin(page, submission.action), data=dict(submission.fields), headers=headers)


@dataclass
class Form:
    """A form as a browser sees it: where it goes, what it carries, which buttons it has."""

    action: str
    hidden: dict[str, str] = field(default_factory=dict)
    buttons: list[tuple[str, str]] = field(default_factory=list)


@dataclass(frozen=True)
class _Submission:
    action: str
    fields: Mapping[str, str]


class _PageParser(HTMLParser):
    """The forms of a page with their hidden fields and buttons, and what its headings and paragraphs say."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.forms: list[Form] = []
        self.words: list[str] = []
        self._reading = False
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._reading = self._reading or tag in ("h1", "p")
        values = {name: value or "" for name, value in attrs}
        if tag == "form":
            self.forms.append(Form(values.get("action", "")))
        elif tag == "input" and values.get("type") == "hidden":
            self.forms[-1].hidden[values["name"]] = values["value"]
        elif tag == "button" and "name" in values:
            self.forms[-1].buttons.append((values["name"], values["value"]))

    def handle_endtag(self, tag: str) -> None:
        self._reading = self._reading and tag not in ("h1", "p")

    def handle_data(self, data: str) -> None:
        if self._reading:
            self.words.extend(data.split())


def forms_of(page: str) -> list[Form]:
    """The forms of an HTML page, in order."""
    return _PageParser(page).forms


def _choose(response: httpx2.Response, *, user: str, approve: bool) -> _Submission:
    # The account comes first: a page that offers it is not yet, or no longer, about this user.
    for wanted in (("user", user), ("decision", "approve" if approve else "deny")):
        for form in forms_of(response.text):
            if wanted in form.buttons and form.hidden.get("subject", user) == user:
                return _Submission(form.action, form.hidden | dict([wanted]))
    said = " ".join(_PageParser(response.text).words)
    raise SignInFailed(f"The page ({response.status_code}) has no button for {user}. It says: {said}")


def _origin(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"
