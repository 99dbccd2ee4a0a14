"""Every page of the browser side: its path, its methods, and what a visitor is told when it cannot be had."""

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from app.effects.approvals import Approvals
from app.errors import Unavailable
from app.oauth.browser import BrowserFlow
from app.oauth.errors import FlowEnded, FlowNotFound
from app.oauth.sessions import Sessions
from app.oauth.sign_in import SignIn, SignInDenied, SignInRefused
from app.sealing import SealingKeys
from app.web.accounts import Accounts, ForeignForm, SignedOut
from app.web.connect import ConnectPages
from app.web.connections import PATH as CONNECTIONS
from app.web.connections import ConnectionsPage
from app.web.notice import Notices
from app.web.pages import STYLESHEET, Pages
from app.web.site import Site
from app.web.visit import MalformedRequest, Reply, Visit

Page: TypeAlias = Callable[[Visit], Reply]

# A path that begins like another one comes after it.
ROUTES: Final[Mapping[str, Mapping[str, Callable[["BrowserPages"], Page]]]] = {
    "/connect/done": {"GET": lambda pages: pages.connect.done},
    "/connect/{handle}": {"GET": lambda pages: pages.connect.show},
    "/connect/{handle}/start": {"POST": lambda pages: pages.connect.start},
    "/connect/{handle}/decline": {"POST": lambda pages: pages.connect.decline},
    "/connect/{handle}/secret": {"POST": lambda pages: pages.connect.store_secret},
    "/connect/{rest:path}": {"GET": lambda pages: pages.no_such_page},
    "/oauth/callback/{provider}": {"GET": lambda pages: pages.connect.callback},
    CONNECTIONS: {"GET": lambda pages: pages.connections.show},
    f"{CONNECTIONS}/{{provider}}/disconnect": {"POST": lambda pages: pages.connections.disconnect},
    f"{CONNECTIONS}/approvals/{{approval}}/withdraw": {"POST": lambda pages: pages.connections.withdraw},
    "/auth/callback": {"GET": lambda pages: pages.accounts.callback},
    "/auth/sign-out": {"POST": lambda pages: pages.accounts.sign_out},
    "/auth/signed-out": {"GET": lambda pages: pages.accounts.signed_out},
    STYLESHEET: {"GET": lambda pages: pages.stylesheet},
}
"""Every path of the pages, its methods, and which page answers: known before there are any pages."""


class BrowserPages:
    """The browser side of one deployment. `base_url` is where users reach it: never taken from a request."""

    def __init__(
        self,
        *,
        base_url: str,
        server_name: str,
        flow: BrowserFlow,
        sign_in: SignIn,
        sessions: Sessions,
        approvals: Approvals,
        keyring: SealingKeys,
        scope_descriptions: Mapping[str, str] | None = None,
    ) -> None:
        self.site: Final = Site(base_url)
        self._pages = Pages(self.site, server_name=server_name, scope_descriptions=scope_descriptions or {})
        notices = Notices(self.site, keyring)
        accounts = Accounts(self.site, self._pages, notices, sign_in, sessions)
        self.connect: Final[ConnectPages] = ConnectPages(self.site, self._pages, notices, accounts, flow)
        self.connections: Final[ConnectionsPage] = ConnectionsPage(self.site, self._pages, accounts, flow, approvals)
        self.accounts: Final[Accounts] = accounts
        self.routes: Final[Mapping[str, Mapping[str, Page]]] = {
            path: {method: page(self) for method, page in methods.items()} for path, methods in ROUTES.items()
        }

    def answer(self, route: str, visit: Visit) -> Reply:
        """The reply to a request for one of `routes`."""
        methods = self.routes[route]
        page = methods.get("GET" if visit.method == "HEAD" else visit.method)
        if page is None:
            headers = {**self.site.headers(), "allow": ", ".join(methods)}
            return Reply(405, headers, facts={"page": route, "outcome": "refused", "reason": "method"})
        reply = self._reply(page, visit)
        return Reply(reply.status, reply.headers, reply.body, reply.cookies, {"page": route, **reply.facts})

    def _reply(self, page: Page, visit: Visit) -> Reply:
        try:
            return page(visit)
        except FlowNotFound as error:
            return self._refusal("not_found.html", 404, error.reason)
        except FlowEnded as error:
            status = 409 if error.status == "exchanging" else 410
            return self._refusal("ended.html", status, error.reason, flow_status=error.status)
        except SignedOut as error:
            return self._refusal("session_ended.html", 403, error.reason)
        except ForeignForm as error:
            return self._refusal("form_refused.html", 403, error.reason)
        except SignInDenied as error:
            return self._refusal("not_signed_in.html", 403, error.reason, denied=True)
        except SignInRefused as error:
            return self._refusal("not_signed_in.html", 400, error.reason, denied=False)
        except MalformedRequest as error:
            template = "form_refused.html" if visit.method == "POST" else "refused.html"
            return self._refusal(template, error.status, error.reason)
        except Unavailable as error:
            return unavailable(self._pages, error)

    def crashed(self) -> Reply:
        return crashed(self._pages)

    def _refusal(self, template: str, status: int, reason: str, **content: Any) -> Reply:
        return self._pages.render(template, status=status, outcome="refused", reason=reason, **content)

    def no_such_page(self, visit: Visit) -> Reply:
        raise FlowNotFound

    def stylesheet(self, visit: Visit) -> Reply:
        return self._pages.stylesheet()


def unavailable(pages: Pages, error: Unavailable) -> Reply:
    """What a visitor is told while something of ours cannot be reached."""
    headers = {"retry-after": str(error.retry_after)}
    return pages.render("unavailable.html", status=503, outcome="unavailable", reason=error.reason, headers=headers)


def crashed(pages: Pages) -> Reply:
    """What a visitor is told when we failed: nothing of how."""
    return pages.render("unavailable.html", status=500, outcome="crashed")
