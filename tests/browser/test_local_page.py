"""The local page in a real Chromium: a call with its question, both rounds on the wire, and what disturbs them."""

import json
import re
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any
from urllib.parse import urlsplit

import pytest
from selenium.common.exceptions import WebDriverException
from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.wait import WebDriverWait

from infra.local.person import Chromium, Intent, new_browser
from tests.browser.driving import SECONDS, complaints
from tests.browser.test_page_design import _LOW_CONTRAST
from tests.conftest import RunningStack

APPROVE = Intent(accounts=("alice",))
# The page is refused once, to learn where its user signs in; a dropped response is what a test asked for.
EXPECTED = ("401 (Unauthorized)", "ERR_CONTENT_LENGTH_MISMATCH")


class Page:
    """The page in a browser, with the hands of a person."""

    def __init__(self, browser: Chrome, stack: RunningStack) -> None:
        self.browser = browser
        self.url = f"{stack.stack.emulator.url}/"

    def wait(self, condition: Callable[[], Any]) -> Any:
        patience = WebDriverWait(self.browser, SECONDS, ignored_exceptions=[WebDriverException])
        return patience.until(lambda _: condition())

    def see(self, text: str, within: str = "main") -> None:
        """Wait until a part of the page says this."""
        self.wait(lambda: text in self.browser.find_element(By.CSS_SELECTOR, within).text)

    def press(self, text: str) -> None:
        self.wait(lambda: self.browser.find_element(By.XPATH, f"//button[normalize-space()='{text}']")).click()

    def sign_in(self) -> None:
        self.browser.get(self.url)
        self.press("Sign in")
        self.wait(lambda: not self.browser.current_url.startswith(self.url))
        Chromium(self.browser).open(self.browser.current_url, APPROVE)
        self.see("Signed in as Alice.", "header")
        self.wait(lambda: self.browser.find_element(By.ID, "tool"))

    def choose(self, tool: str, **arguments: str) -> None:
        self.browser.find_element(By.CSS_SELECTOR, f'#tool option[value="{tool}"]').click()
        for name, value in arguments.items():
            self.browser.find_element(By.NAME, name).send_keys(value)

    def call(self, tool: str, **arguments: str) -> None:
        self.choose(tool, **arguments)
        self.press("Call")

    def exchanges(self, what: str) -> list[str]:
        """The lines of the wire that begin like this."""
        lines = self.browser.find_elements(By.CSS_SELECTOR, "#wire summary")
        return [line.text for line in lines if what in line.text]


@pytest.fixture
def page(stack: RunningStack) -> Iterator[Page]:
    """The page in a new browser profile."""
    with new_browser() as browser:
        assert isinstance(browser, Chromium)
        yield Page(browser.driver, stack)


@pytest.fixture(scope="module", autouse=True)
def forgotten(stack: RunningStack) -> None:
    """Every report and ticket is there as at a start, whatever ran before."""
    stack.restart()


def served_by(line: str) -> str:
    return line.split()[0]


def test_a_question_is_answered_after_every_environment_was_replaced(page: Page, stack: RunningStack) -> None:
    """DESIGN promise 1, as a person sees it."""
    page.sign_in()
    page.call("delete_report", target="Q3")
    page.see("Delete the report Q3? This cannot be undone.", ".question")
    before = stack.environments()
    page.press("Replace all environments")
    page.see("All environments are new.")
    page.browser.find_element(By.CSS_SELECTOR, ".question input").click()
    page.press("Accept")
    page.see("The report Q3 is deleted.", "#dialogue")

    page.wait(lambda: page.exchanges("round 2"))
    first, second = page.exchanges("delete_report")
    assert "round 1" in first
    assert "asks confirm" in first
    assert "complete" in second
    assert served_by(first) in before
    assert served_by(second) in stack.environments() - before
    page.wait(lambda: f"{served_by(second)}\nserved last" in page.browser.find_element(By.ID, "environments").text)
    assert [each for each in complaints(page.browser) if not any(known in each for known in EXPECTED)] == []


@pytest.mark.parametrize(("button", "text"), [("Decline", "The user declined."), ("Cancel", "The user dismissed")])
def test_decline_and_cancel_are_two_answers(page: Page, button: str, text: str) -> None:
    """DESIGN promise 4."""
    page.sign_in()
    page.call("delete_report", target="Q1")
    page.see("Delete the report Q1?", ".question")
    page.press(button)
    page.see(text, "#dialogue")
    page.see("The call ended without success", "#dialogue")


def test_every_kind_of_field_reaches_the_tool_as_its_own_type(page: Page) -> None:
    """client/elicitation, Requested Schema: a date, a multiple choice, a number with a default."""
    page.sign_in()
    page.call("plan_visit", site="Lisbon")
    page.see("When shall we visit Lisbon?", "#dialogue")
    page.browser.find_element(By.NAME, "day").send_keys("12242026")
    for item in ("laptop", "cables"):
        page.browser.find_element(By.CSS_SELECTOR, f'input[value="{item}"]').click()
    for form in page.browser.find_elements(By.CSS_SELECTOR, "form.question"):
        form.find_element(By.CSS_SELECTOR, "button.primary").click()
    page.see("how many technicians?", "#dialogue")
    assert page.browser.find_element(By.NAME, "people").get_attribute("value") == "1"
    page.press("Accept")
    page.see("Result", "#dialogue-heading")
    shown = page.browser.find_element(By.CSS_SELECTOR, "#dialogue pre").text
    assert json.loads(shown) == {"site": "Lisbon", "day": "2026-12-24", "items": ["laptop", "cables"], "people": 1}


def test_a_lost_response_can_be_asked_for_again(page: Page, stack: RunningStack) -> None:
    """DESIGN promise 5: the page tells that nobody knows, and repeats the very request."""
    page.sign_in()
    page.press("Drop the next response")
    page.see("gets lost on the way")
    page.call("assign_ticket", id="T-1", agent="ben")
    page.see("No response came", "#dialogue")
    page.wait(lambda: page.exchanges("the response was dropped"))
    page.press("Send the same request again")
    page.see("ben takes T-1.", "#dialogue")
    assert [effect for effect in stack.effects() if effect.startswith("assigned T-1")][-2:] == [
        "assigned T-1 to ben"
    ] * 2


def test_a_connection_shows_its_keys_and_no_value(page: Page, stack: RunningStack) -> None:
    """DESIGN promise 3: names are hashed, and what is behind them is not sent to the page at all."""
    page.sign_in()
    page.call("list_repositories")
    page.see("Connect your Local Hub account", ".question")
    link = page.browser.find_element(By.CSS_SELECTOR, ".question a").get_attribute("href")
    assert link is not None
    page.wait(lambda: "mcp:flow:" in page.browser.find_element(By.ID, "keys").text)
    rows = page.browser.find_element(By.ID, "keys").text.splitlines()
    assert all(re.fullmatch(r"mcp:\S+ \w+ (\d+ s|until deleted) \d+", row) for row in rows), rows
    handle = urlsplit(link).path.rpartition("/")[2]
    assert handle not in page.browser.find_element(By.ID, "keys").text

    Chromium(page.browser).open(link, Intent(accounts=("alice", "alice-hub")))
    page.browser.get(page.url)
    page.wait(lambda: "mcp:vault:" in page.browser.find_element(By.ID, "keys").text)
    page.wait(lambda: page.exchanges("/connect/"))
    assert handle not in "".join(page.exchanges("/connect/"))
    page.wait(lambda: page.browser.find_elements(By.ID, "tool"))
    page.call("list_repositories")
    page.see("Result", "#dialogue-heading")


def test_no_token_is_in_the_page(page: Page) -> None:
    """Neither in its source nor in what it shows: the wire has the token cut."""
    page.sign_in()
    page.call("delete_report", target="Q1")
    page.wait(lambda: page.exchanges("delete_report"))
    for summary in page.browser.find_elements(By.CSS_SELECTOR, "#wire summary"):
        summary.click()
    session = json.loads(page.browser.execute_script("return sessionStorage.getItem('session')"))
    shown = page.browser.execute_script("return document.documentElement.outerHTML")
    assert "Bearer eyJhb... (cut)" in shown
    for part in session["token"].split("."):
        assert part not in shown
    assert "code=" not in page.browser.current_url


def test_the_browser_runs_nothing_but_the_files_of_the_page(page: Page) -> None:
    """CSP as Chromium enforces it: no script from text, no picture and no connection of another origin."""
    page.browser.get(page.url)
    attempts = {
        "TrustedScript": "document.head.appendChild(document.createElement('script')).text = 'window.ran = 1'",
        "img-src": "document.body.append(Object.assign(new Image(), {src: 'http://127.0.0.1:9/x.png'}))",
        "connect-src": "fetch('http://127.0.0.1:9/').catch(() => {})",
    }
    for refusal, attempt in attempts.items():
        # From a task of the page: the driver's own script is above the policy.
        page.browser.execute_script(f"setTimeout(() => {{ {attempt} }})")
        said: list[str] = []
        page.wait(partial(_complains, page.browser, refusal, said))
    assert page.browser.execute_script("return window.ran") is None


def _complains(browser: Chrome, about: str, said: list[str]) -> bool:
    said += complaints(browser)
    return any(about in each for each in said)


def test_everything_works_without_a_pointing_device(page: Page) -> None:
    """WCAG 2.1.1, 2.4.3 and 2.4.7: Tab reaches what is needed, focus moves to the question and shows."""
    page.sign_in()

    def tab_to(condition: Callable[[], bool]) -> None:
        for _ in range(40):
            if condition():
                return
            page.browser.switch_to.active_element.send_keys(Keys.TAB)
        raise AssertionError("the Tab key never gets there")

    def focused() -> Any:
        return page.browser.switch_to.active_element

    page.browser.find_element(By.TAG_NAME, "body").send_keys(Keys.TAB)
    tab_to(lambda: focused().get_attribute("id") == "tool")
    focused().send_keys("Delete a report")
    tab_to(lambda: focused().get_attribute("name") == "target")
    assert focused().value_of_css_property("outline-width") == "3px"
    focused().send_keys("Q2", Keys.ENTER)
    page.see("Delete the report Q2?", ".question")
    page.wait(lambda: focused().get_attribute("id") == "dialogue-heading")
    tab_to(lambda: focused().get_attribute("name") == "confirm")
    focused().send_keys(Keys.SPACE)
    tab_to(lambda: focused().text == "Accept")
    focused().send_keys(Keys.ENTER)
    page.see("The report Q2 is deleted.", "#dialogue")


_UNNAMED = """
return [...document.querySelectorAll('input, select, textarea')]
  .filter(each => !each.labels?.length && !each.ariaLabel).map(each => each.name);
"""


def test_it_is_readable_everywhere(page: Page) -> None:
    """WCAG 1.4.3 (contrast), 1.4.10 (reflow), 1.3.1 (labels)."""
    page.sign_in()
    page.call("plan_visit", site="Lisbon")
    page.see("What shall we bring to Lisbon?", "#dialogue")
    page.wait(lambda: page.exchanges("plan_visit"))
    for width, scheme in ((1300, "light"), (1300, "dark"), (320, "light"), (320, "dark")):
        metrics = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
        page.browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        page.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
        assert page.browser.execute_script(_LOW_CONTRAST) == []
        assert page.browser.execute_script("return document.documentElement.scrollWidth") <= width
        assert page.browser.execute_script(_UNNAMED) == []
        assert page.browser.execute_script("return document.querySelectorAll('style, script:not([src])').length") == 0
