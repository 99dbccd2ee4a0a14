"""What a person does in a browser, and what the browser says about it."""

from selenium.common.exceptions import StaleElementReferenceException, WebDriverException
from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.wait import WebDriverWait

SECONDS = 15


def heading(browser: Chrome) -> str:
    """What the page says first."""
    return browser.find_element(By.TAG_NAME, "h1").text


def click(browser: Chrome, text: str) -> None:
    """Press the button or the link that says this, and wait for the page that comes."""
    leave(browser, browser.find_element(By.XPATH, f"//*[self::button or self::a][normalize-space()='{text}']"))


def leave(browser: Chrome, element: WebElement) -> None:
    """Click something that leads away, and wait until another page is there."""
    old = browser.find_element(By.TAG_NAME, "html")
    element.click()
    WebDriverWait(browser, SECONDS).until(lambda _: _is_gone(old))
    WebDriverWait(browser, SECONDS).until(lambda _: browser.execute_script("return document.readyState") == "complete")


def complaints(browser: Chrome) -> list[str]:
    """What the browser says against a page: violations of the policy, refused cookies."""
    entries: list[dict[str, str]] = browser.get_log("browser")  # type: ignore[no-untyped-call]
    return [entry["message"] for entry in entries if "favicon" not in entry["message"]]


def _is_gone(element: WebElement) -> bool:
    try:
        return not element.tag_name
    except (StaleElementReferenceException, WebDriverException):
        return True
