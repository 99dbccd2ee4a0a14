"""A person at a browser: opens a link, signs in where asked, approves, types a secret, and ends on a page.

Two browsers with the same hands: real Chromium where it is installed, else a scripted one over HTTP.
"""

import contextlib
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol
from urllib.parse import urljoin, urlsplit

import httpx2

from infra.local.identity.scripted_browser import Form, forms_of

if TYPE_CHECKING:
    from selenium.webdriver import Chrome

MOST_PAGES: Final = 12


@dataclass(frozen=True, kw_only=True)
class Intent:
    """What the person wants: which accounts are theirs, whether they agree, what they type."""

    accounts: tuple[str, ...]
    approve: bool = True
    secret: str = field(default="", repr=False)

    def choose(self, forms: list[Form]) -> tuple[Form, Mapping[str, str]] | None:
        """The form to submit and what to add to its hidden fields, or None on a page where nothing is left to do."""
        for account in self.accounts:
            for form in forms:
                if ("user", account) in form.buttons and form.hidden.get("subject") not in self.accounts:
                    if any(each.hidden.get("subject") in self.accounts for each in forms):
                        continue
                    return form, {"user": account}
        decision = ("decision", "approve" if self.approve else "deny")
        for form in forms:
            if decision in form.buttons:
                return form, dict([decision])
            if form.action.endswith("/start" if self.approve else "/decline"):
                return form, {}
            if form.action.endswith("/secret") and self.approve:
                return form, {"value": self.secret}
        return None


@dataclass(frozen=True)
class Visited:
    """Where the person ended. `pages` are the headings on the way."""

    url: str
    pages: list[str]


class Browser(Protocol):
    """One browser profile."""

    name: str

    def open(self, url: str, intent: Intent) -> Visited:
        """Open a link and do what the pages ask. Blocks."""
        ...


class ScriptedBrowser:
    """A browser without a screen or a script engine: our pages need neither."""

    name = "a scripted browser"

    def __init__(self) -> None:
        self.http = httpx2.Client(follow_redirects=False, trust_env=False, timeout=15)

    def close(self) -> None:
        """Forget the profile."""
        self.http.close()

    def open(self, url: str, intent: Intent) -> Visited:
        pages: list[str] = []
        response = self._follow(self.http.get(url))
        for _ in range(MOST_PAGES):
            pages.append(_heading(response.text))
            chosen = intent.choose(forms_of(response.text))
            if chosen is None:
                return Visited(str(response.url), pages)
            form, added = chosen
            here = str(response.url)
            headers = {"origin": _origin(here), "sec-fetch-site": "same-origin"}
            response = self._follow(
                self.http.post(urljoin(here, form.action), data={**form.hidden, **added}, headers=headers)
            )
        raise RuntimeError(f"After {MOST_PAGES} pages there is still something to do: {pages}")

    def _follow(self, response: httpx2.Response) -> httpx2.Response:
        while response.is_redirect:
            response = self.http.get(urljoin(str(response.url), response.headers["location"]))
        return response


class Chromium:
    """The real thing, headless, in a profile of its own."""

    name = "headless Chromium"

    def __init__(self, driver: "Chrome", *, screenshots: Path | None = None) -> None:
        self.driver = driver
        self._screenshots = screenshots

    def open(self, url: str, intent: Intent) -> Visited:
        pages: list[str] = []
        self.driver.get(url)
        for _ in range(MOST_PAGES):
            pages.append(_heading(self.driver.page_source))
            self._picture(pages[-1])
            chosen = intent.choose(forms_of(self.driver.page_source))
            if chosen is None:
                return Visited(self.driver.current_url, pages)
            self._submit(*chosen)
        raise RuntimeError(f"After {MOST_PAGES} pages there is still something to do: {pages}")

    def _submit(self, form: Form, added: Mapping[str, str]) -> None:
        from selenium.common.exceptions import WebDriverException
        from selenium.webdriver.common.by import By
        from selenium.webdriver.support.expected_conditions import staleness_of
        from selenium.webdriver.support.wait import WebDriverWait

        page = self.driver.find_element(By.TAG_NAME, "html")
        shown = self.driver.find_element(By.CSS_SELECTOR, f'form[action="{form.action}"]')
        button = "button"
        for name, value in added.items():
            if (name, value) in form.buttons:
                button = f'button[name="{name}"][value="{value}"]'
            else:
                shown.find_element(By.NAME, name).send_keys(value)
        shown.find_element(By.CSS_SELECTOR, button).click()
        # Between two pages the driver finds no page at all, and says so in several ways.
        wait = WebDriverWait(self.driver, 15, ignored_exceptions=[WebDriverException])
        wait.until(staleness_of(page))
        wait.until(lambda driver: driver.execute_script("return document.readyState") == "complete")

    def _picture(self, heading: str) -> None:
        if self._screenshots is not None:
            number = len(list(self._screenshots.glob("*.png"))) + 1
            name = re.sub(r"[^a-z0-9]+", "-", heading.lower()).strip("-")
            self.driver.save_screenshot(str(self._screenshots / f"{number:02}-{name}.png"))


def chromium_is_here() -> bool:
    """Whether Chromium and its driver are installed."""
    return shutil.which("chromium") is not None and shutil.which("chromedriver") is not None


@contextlib.contextmanager
def new_browser(*, screenshots: Path | None = None) -> Iterator[Browser]:
    """A browser with an empty profile: Chromium where it is installed."""
    if not chromium_is_here():
        with contextlib.closing(ScriptedBrowser()) as scripted:
            yield scripted
        return
    from selenium.webdriver import Chrome, ChromeOptions
    from selenium.webdriver.chrome.service import Service

    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        options = ChromeOptions()
        options.binary_location = str(shutil.which("chromium"))
        for flag in (
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-quic",
            "--disable-dev-shm-usage",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--window-size=900,900",
            # Nothing but this machine is looked up.
            "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
            f"--user-data-dir={profile}",
        ):
            options.add_argument(flag)
        driver = Chrome(options=options, service=Service(str(shutil.which("chromedriver"))))
        try:
            yield Chromium(driver, screenshots=screenshots)
        finally:
            driver.quit()


def _heading(page: str) -> str:
    found = re.search(r"<h1[^>]*>(.*?)</h1>", page, re.DOTALL)
    return re.sub(r"<[^>]+>|\s+", " ", found[1]).strip() if found else ""


def _origin(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"
