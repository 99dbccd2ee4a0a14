"""The browser side of a deployment whose settings are not known before its first request."""

from collections.abc import Callable
from typing import Final

from app.errors import Unavailable
from app.web.browser_pages import ROUTES, BrowserPages, crashed, unavailable
from app.web.pages import Pages
from app.web.site import Site
from app.web.visit import Reply, Visit


class LatePages:
    """Answers as the pages do that `opened` gives. While it raises Unavailable, every page says so and tells why."""

    routes: Final = ROUTES

    def __init__(self, opened: Callable[[], BrowserPages], *, base_url: str, server_name: str) -> None:
        self.site: Final = Site(base_url)
        self._opened = opened
        self._plain = Pages(self.site, server_name=server_name, scope_descriptions={})

    def answer(self, route: str, visit: Visit) -> Reply:
        """The reply to a request for one of `routes`."""
        try:
            pages = self._opened()
        except Unavailable as error:
            return unavailable(self._plain, error)
        return pages.answer(route, visit)

    def crashed(self) -> Reply:
        return crashed(self._plain)
