"""The browser side in a real Chromium: what only a browser enforces, and what a header must not break."""

from urllib.parse import urlsplit

import pytest
from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.wait import WebDriverWait

from app.oauth.connections import Connected, Ended, Stored
from tests.browser.conftest import OpenBrowser
from tests.browser.driving import SECONDS, click, complaints, heading, leave
from tests.browser.outside import EVIL, Outside
from tests.web.world import ORIGIN, PROVIDER_ORIGIN, World


def connect_page(world: World, browser: Chrome, user: str = "alice") -> str:
    """Open a link and sign in. Returns the link."""
    link = ORIGIN + world.link()
    browser.get(link)
    click(browser, user)
    return link


def test_a_person_connects_over_three_sites(world: World, browser: Chrome) -> None:
    """SECURITY section 3. The cookies come back from both other sites, and the policy lets Approve lead on."""
    connect_page(world, browser)
    assert heading(browser) == "Connect Notes?"
    click(browser, "Approve")
    assert browser.title == "Notes"
    click(browser, "Yes")

    assert browser.current_url == f"{ORIGIN}/connect/done"
    assert heading(browser) == "Notes is connected"
    assert complaints(browser) == []
    assert isinstance(world.connect(response="accept"), Connected)


def test_the_code_is_not_in_the_history(world: World, browser: Chrome) -> None:
    """SECURITY section 3, step 7."""
    connect_page(world, browser)
    click(browser, "Approve")
    click(browser, "Yes")
    browser.back()

    assert browser.current_url.startswith(f"{PROVIDER_ORIGIN}/authorize")


def test_the_link_works_without_a_pointing_device(world: World, browser: Chrome) -> None:
    """WCAG 2.1.1 and 2.4.7: Approve is the first stop of the Tab key, and it shows."""
    connect_page(world, browser)
    browser.find_element(By.TAG_NAME, "body").send_keys(Keys.TAB)
    focused = browser.switch_to.active_element

    assert focused.text == "Approve"
    assert focused.value_of_css_property("outline-style") == "solid"
    assert focused.value_of_css_property("outline-width") == "3px"
    old = browser.current_url
    focused.send_keys(Keys.ENTER)
    WebDriverWait(browser, SECONDS).until(lambda _: browser.current_url != old)
    assert browser.title == "Notes"


def test_denying_works_in_the_browser(world: World, browser: Chrome) -> None:
    """DESIGN promise 4."""
    connect_page(world, browser)
    click(browser, "Deny")

    assert heading(browser) == "You said no"
    ended = world.connect(response="accept")
    assert isinstance(ended, Ended)
    assert ended.reason == "declined"


def test_a_secret_is_typed_and_kept(world: World, browser: Chrome) -> None:
    """The browser is told not to remember it, and the page does not show it."""
    browser.get(ORIGIN + world.secret_link())
    click(browser, "alice")
    field = browser.find_element(By.ID, "value")
    assert (field.get_attribute("type"), field.get_attribute("autocomplete")) == ("password", "off")
    assert field.accessible_name == "Stripe API key"
    field.send_keys("sk_live_é€😀".replace("😀", ""))
    click(browser, "Save")

    assert heading(browser) == "Stripe API key is saved"
    assert world.secret() == Stored("sk_live_é€")


def test_the_browser_keeps_the_cookies_as_strictly_as_it_can(world: World, browser: Chrome) -> None:
    """SECURITY section 3, steps 2 and 3; public cases 91 and 111. Chromium itself enforces the prefix."""
    browser.get(ORIGIN + world.link())
    login = browser.execute_cdp_cmd("Network.getCookies", {"urls": [ORIGIN]})["cookies"]
    click(browser, "alice")
    session = browser.execute_cdp_cmd("Network.getCookies", {"urls": [ORIGIN]})["cookies"]

    assert [cookie["name"][: len("__Host-mcp_login_")] for cookie in login] == ["__Host-mcp_login_"]
    assert [cookie["name"] for cookie in session] == ["__Host-mcp_sid"]
    for cookie in (*login, *session):
        assert cookie["httpOnly"]
        assert cookie["secure"]
        assert (cookie["sameSite"], cookie["path"], cookie["domain"]) == ("Lax", "/", "mcp.example.com")
    assert browser.execute_script("return document.cookie") == ""


@pytest.mark.parametrize("page", ["/connect/done", "{link}"])
def test_another_site_cannot_frame_a_page(world: World, outside: Outside, browser: Chrome, page: str) -> None:
    """Clickjacking: frame-ancestors 'none', and SameSite keeps the session out of the frame besides."""
    path = page.format(link=urlsplit(connect_page(world, browser)).path)
    outside.evil_page = f'<title>Evil</title><iframe id="f" src="{ORIGIN}{path}"></iframe>'
    browser.get(EVIL)
    said = complaints(browser)
    browser.switch_to.frame("f")

    assert browser.find_elements(By.TAG_NAME, "main") == []
    assert page == "{link}" or any("frame-ancestors" in each for each in said)


@pytest.mark.parametrize("step", ["start", "decline"])
def test_another_site_cannot_send_our_form(world: World, outside: Outside, browser: Chrome, step: str) -> None:
    """CSRF: SameSite=Lax keeps the session out, Sec-Fetch-Site says who sent it."""
    link = connect_page(world, browser)
    token = browser.find_element(By.NAME, "csrf_token").get_attribute("value")
    field = f'<input name="csrf_token" value="{token}">'
    outside.evil_page = f'<form method="post" action="{link}/{step}">{field}<button>Win</button></form>'
    browser.get(EVIL)
    click(browser, "Win")

    assert heading(browser) == "The form was not accepted"
    browser.get(link)
    assert heading(browser) == "Connect Notes?"


def test_a_victim_who_is_sent_the_providers_page_connects_nothing(
    world: World, browser: Chrome, open_browser: OpenBrowser
) -> None:
    """SECURITY section 1, phisher (2): Alice passes our page herself, then sends Bob where it led her."""
    connect_page(world, browser)
    click(browser, "Approve")
    bob = open_browser()
    bob.get(f"{ORIGIN}/connections")
    click(bob, "bob")
    bob.get(browser.current_url)
    click(bob, "Yes")

    assert heading(bob) == "This does not belong to anything you started here"
    assert world.provider.exchanges == []
    click(browser, "Yes")
    assert heading(browser) == "Notes is connected"


def test_who_signs_out_is_asked_for_an_account_and_comes_back(world: World, outside: Outside, browser: Chrome) -> None:
    """The way out of the wrong account: the authorization server must not sign the same one in again."""
    link = connect_page(world, browser, "bob")
    assert heading(browser) == "This link was created for another account"
    click(browser, "Use another account")
    assert heading(browser) == "You are signed out"
    click(browser, "Sign in")
    assert "prompt=login" in browser.current_url
    click(browser, "alice")

    assert browser.current_url == link
    assert heading(browser) == "Connect Notes?"


def test_a_disconnect_button_disconnects(world: World, browser: Chrome) -> None:
    """SECURITY section 3, Disconnect."""
    connect_page(world, browser)
    click(browser, "Approve")
    click(browser, "Yes")
    click(browser, "See or end your connections")
    button = browser.find_element(By.XPATH, "//button[.='Disconnect']")
    leave(browser, button)

    assert "You have no connections." in browser.find_element(By.TAG_NAME, "main").text
    assert len(world.provider.revoked) > 0


def test_a_withdraw_button_withdraws(world: World, browser: Chrome) -> None:
    """`@tool(approval=...)`: the user ends a remembered yes where they end a connection."""
    connect_page(world, browser)
    world.allow(tool="reply_to_customer", arguments={"id": "T-1"})
    browser.get(f"{ORIGIN}/connections")
    assert "reply_to_customer" in browser.find_element(By.TAG_NAME, "main").text
    click(browser, "Withdraw")

    assert "Allowed without asking" not in browser.find_element(By.TAG_NAME, "main").text
    assert not world.is_allowed(tool="reply_to_customer", arguments={"id": "T-1"})


def test_no_address_that_the_browser_visited_tells_another_site_about_a_link(
    world: World, outside: Outside, browser: Chrome
) -> None:
    """Referrer-Policy: the handle stays with us."""
    link = connect_page(world, browser)
    click(browser, "Approve")
    elsewhere = [url for url in outside.visited if urlsplit(url.split(" ", 1)[1]).hostname != urlsplit(ORIGIN).hostname]

    assert elsewhere
    assert link.rsplit("/", 1)[1] not in str(elsewhere)
    assert browser.execute_script("return document.referrer") == ""
