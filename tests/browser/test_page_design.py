"""Every page as people see it: screenshots in build/screenshots, readable for everybody, on a phone and in the dark.

Source: WCAG 2.2, success criteria 1.4.3 (contrast), 1.4.10 (reflow), 1.3.1 and 2.4.6 (structure, labels),
2.4.7 (focus), 2.5.8 (target size), 3.1.1 (language).
"""

import base64
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By

from app.http import TokenEndpointReply
from tests.browser.driving import click, complaints, heading
from tests.web.world import ALICE, BOB, ORIGIN, World

SCREENSHOTS = Path(__file__).parents[2] / "build" / "screenshots"
SECOND_CLIENT = type(ALICE)(ALICE.issuer, ALICE.subject, "0b6c2f9e-desktop")
LONG_CLIENT = type(ALICE)(ALICE.issuer, ALICE.subject, f"https://{'very-long-name.' * 6}example/{'x' * 200}.json")

Visit = Callable[[World, Chrome], None]


def sign_in(browser: Chrome, user: str = "alice") -> None:
    browser.get(f"{ORIGIN}/connections")
    if browser.title == "Sign in":
        click(browser, user)


def connect(world: World, browser: Chrome) -> None:
    sign_in(browser)
    browser.get(ORIGIN + world.link())


def finish(world: World, browser: Chrome, answer: str = "Yes") -> None:
    connect(world, browser)
    click(browser, "Approve")
    click(browser, answer)


def consent(world: World, browser: Chrome) -> None:
    finish(world, browser)
    browser.get(ORIGIN + world.link(SECOND_CLIENT))


def long_names(world: World, browser: Chrome) -> None:
    sign_in(browser)
    browser.get(ORIGIN + world.link(LONG_CLIENT))


def secret(world: World, browser: Chrome) -> None:
    sign_in(browser)
    browser.get(ORIGIN + world.secret_link())


def secret_refused(world: World, browser: Chrome) -> None:
    secret(world, browser)
    browser.find_element(By.ID, "value").send_keys("   ")
    click(browser, "Save")


def secret_stored(world: World, browser: Chrome) -> None:
    secret(world, browser)
    browser.find_element(By.ID, "value").send_keys("sk_live_0123")
    click(browser, "Save")


def already(world: World, browser: Chrome) -> None:
    finish(world, browser)
    browser.back()
    click(browser, "Yes")


def declined(world: World, browser: Chrome) -> None:
    connect(world, browser)
    click(browser, "Deny")


def failed(world: World, browser: Chrome) -> None:
    world.provider.reply = TokenEndpointReply(500, "", b"")
    finish(world, browser)


def wrong_account(world: World, browser: Chrome) -> None:
    sign_in(browser)
    browser.get(ORIGIN + world.link(BOB))


def operator_hint(world: World, browser: Chrome) -> None:
    sign_in(browser)
    link = world.link(BOB)
    for _ in range(3):
        browser.get(ORIGIN + link)


def signed_out(world: World, browser: Chrome) -> None:
    wrong_account(world, browser)
    click(browser, "Use another account")


def connections(world: World, browser: Chrome) -> None:
    secret_stored(world, browser)
    consent(world, browser)
    click(browser, "Approve")
    browser.get(f"{ORIGIN}/connections")


def approvals(world: World, browser: Chrome) -> None:
    sign_in(browser)
    world.allow(tool="reply_to_customer", arguments={"id": "T-1", "text": "x" * 300})
    world.allow(LONG_CLIENT, "deploy")
    browser.get(f"{ORIGIN}/connections")


def no_connections(world: World, browser: Chrome) -> None:
    sign_in(browser)


def not_found(world: World, browser: Chrome) -> None:
    browser.get(f"{ORIGIN}/connect/{'A' * 43}")


def used_link(world: World, browser: Chrome) -> None:
    link = world.link()
    finish(world, browser)
    browser.get(ORIGIN + link)


def nothing(world: World, browser: Chrome) -> None:
    browser.get(f"{ORIGIN}/connect/done")


def refused(world: World, browser: Chrome) -> None:
    sign_in(browser)
    browser.get(f"{ORIGIN}/oauth/callback/notes?code=x&state={'A' * 43}.{'B' * 43}")


def not_signed_in(world: World, browser: Chrome) -> None:
    browser.get(f"{ORIGIN}/auth/callback?code=x&state={'A' * 43}")


def unavailable(world: World, browser: Chrome) -> None:
    sign_in(browser)
    world.break_sessions()
    browser.get(f"{ORIGIN}/connections")


PAGES: dict[str, tuple[Visit, str]] = {
    "connect": (connect, "Connect Notes?"),
    "consent": (consent, "Share Notes with one more application?"),
    "connect-long-names": (long_names, "Connect Notes?"),
    "secret": (secret, "Stripe API key"),
    "secret-refused": (secret_refused, "Stripe API key"),
    "secret-stored": (secret_stored, "Stripe API key is saved"),
    "done": (finish, "Notes is connected"),
    "already": (already, "Notes is already connected"),
    "declined": (declined, "You said no"),
    "denied": (lambda world, browser: finish(world, browser, "No"), "Notes was not connected"),
    "failed": (failed, "Notes could not be connected"),
    "wrong-account": (wrong_account, "This link was created for another account"),
    "operator-hint": (operator_hint, "This link was created for another account"),
    "signed-out": (signed_out, "You are signed out"),
    "connections": (connections, "Your connections"),
    "approvals": (approvals, "Your connections"),
    "no-connections": (no_connections, "Your connections"),
    "not-found": (not_found, "This link is not valid, or not any more"),
    "used-link": (used_link, "This link has done its work"),
    "nothing": (nothing, "There is nothing to do here"),
    "refused": (refused, "This does not belong to anything you started here"),
    "not-signed-in": (not_signed_in, "You are not signed in"),
    "unavailable": (unavailable, "This is not available just now"),
}

# The page has no script of its own; these run in the driver's world.
_LOW_CONTRAST = """
const channel = c => (c /= 255) <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
const parse = text => text.match(/[0-9.]+/g).map(Number);
const luminance = ([r, g, b]) => 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
const ground = element => {
  for (; element; element = element.parentElement) {
    const color = parse(getComputedStyle(element).backgroundColor);
    if (color.length < 4 || color[3] === 1) return color;
  }
  return [255, 255, 255];
};
const found = [];
const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (walker.nextNode()) {
  const element = walker.currentNode.parentElement;
  if (!walker.currentNode.data.trim() || getComputedStyle(element).visibility === 'hidden') continue;
  const [one, other] = [luminance(parse(getComputedStyle(element).color)), luminance(ground(element))];
  const ratio = (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05);
  if (ratio < 4.5) found.push(walker.currentNode.data.trim() + ' ' + ratio.toFixed(2));
}
return found;
"""
_UNNAMED = """
const problems = [];
if (document.documentElement.lang !== 'en') problems.push('lang');
if (document.querySelectorAll('h1').length !== 1) problems.push('h1');
if (document.querySelectorAll('main').length !== 1) problems.push('main');
if (document.scripts.length || document.querySelector('[style], style')) problems.push('inline');
for (const input of document.querySelectorAll('input:not([type=hidden])'))
  if (!input.labels.length) problems.push('label: ' + input.name);
for (const target of document.querySelectorAll('button, input:not([type=hidden]), .button')) {
  const box = target.getBoundingClientRect();
  if (box.height < 24 || box.width < 24) problems.push('target size: ' + target.textContent);
}
return problems;
"""


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_readable_everywhere(world: World, browser: Chrome, name: str) -> None:
    """Light, dark and phone: contrast, reflow, names, and nothing that the browser complains about."""
    visit, title = PAGES[name]
    visit(world, browser)
    assert heading(browser) == title
    assert [each for each in complaints(browser) if "status of 4" not in each and "status of 5" not in each] == []
    assert browser.execute_script(_UNNAMED) == []

    for look, width, scheme in (("light", 1000, "light"), ("dark", 1000, "dark"), ("phone", 320, "light")):
        _look(browser, width, scheme)
        assert browser.execute_script(_LOW_CONTRAST) == [], look
        assert browser.execute_script("return document.documentElement.scrollWidth") <= width, look
        _screenshot(browser, f"{name}-{look}.png", width)


def _look(browser: Chrome, width: int, scheme: str) -> None:
    metrics: dict[str, Any] = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})


def _screenshot(browser: Chrome, name: str, width: int) -> None:
    height = max(600, browser.execute_script("return document.documentElement.scrollHeight"))
    clip = {"x": 0, "y": 0, "width": width, "height": height, "scale": 1}
    shot = browser.execute_cdp_cmd("Page.captureScreenshot", {"clip": clip, "captureBeyondViewport": True})
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    (SCREENSHOTS / name).write_bytes(base64.b64decode(shot["data"]))
