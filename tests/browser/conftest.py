"""A real Chromium without a screen, and three sites behind one loopback port."""

import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from selenium.webdriver import Chrome, ChromeOptions
from selenium.webdriver.chrome.service import Service

from tests.browser.outside import Outside, serve
from tests.web.world import World

CHROMIUM = shutil.which("chromium")
DRIVER = shutil.which("chromedriver")
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    # The certificate is made for this run.
    "--ignore-certificate-errors",
)

OpenBrowser = Callable[[], Chrome]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    reason = "NO BROWSER: these tests need Chromium. Debian: apt-get install chromium chromium-driver"
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.slow)
            item.add_marker(pytest.mark.skipif(not (CHROMIUM and DRIVER), reason=reason))


@pytest.fixture(scope="session")
def outside() -> Outside:
    return Outside()


@pytest.fixture(scope="session")
def open_browser(outside: Outside, tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpenBrowser]:
    """Starts browsers, each with a new profile."""
    with ExitStack() as stack:
        port = stack.enter_context(serve(outside, tmp_path_factory.mktemp("certificate")))

        def start() -> Chrome:
            options = ChromeOptions()
            options.binary_location = str(CHROMIUM)
            profile = tmp_path_factory.mktemp("profile")
            # Every name is this process: nothing leaves the machine.
            rules = f"--host-resolver-rules=MAP * 127.0.0.1:{port}"
            for flag in (*FLAGS, rules, f"--user-data-dir={profile}", "--window-size=1000,900"):
                options.add_argument(flag)
            options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
            browser = Chrome(options=options, service=Service(str(DRIVER)))
            stack.callback(browser.quit)
            return browser

        yield start


@pytest.fixture(scope="session")
def chromium(open_browser: OpenBrowser) -> Chrome:
    return open_browser()


@pytest.fixture
def world(outside: Outside) -> World:
    """A new world behind the same addresses."""
    outside.world = World()
    outside.visited.clear()
    return outside.world


@pytest.fixture
def browser(chromium: Chrome, world: World) -> Chrome:
    """A browser in which nobody has signed in."""
    chromium.get("about:blank")
    chromium.execute_cdp_cmd("Network.clearBrowserCookies", {})
    chromium.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    chromium.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
    chromium.get_log("browser")  # type: ignore[no-untyped-call]
    return chromium
