"""The page on which users see what they have connected and allowed, and end it."""

import re
from typing import Final

from app.effects.approvals import Approvals
from app.oauth.browser import BrowserFlow
from app.oauth.errors import FlowNotFound
from app.web.accounts import Accounts
from app.web.pages import Pages
from app.web.site import Site
from app.web.visit import Reply, Visit

PATH: Final = "/connections"
_NAME = re.compile(r"[A-Za-z0-9_:.-]{1,128}\Z", re.ASCII)
_APPROVAL = re.compile(r"[A-Za-z0-9_-]{43}\Z", re.ASCII)


class ConnectionsPage:
    """GET /connections, and the buttons on it."""

    def __init__(self, site: Site, pages: Pages, accounts: Accounts, flow: BrowserFlow, approvals: Approvals) -> None:
        self._site = site
        self._pages = pages
        self._accounts = accounts
        self._flow = flow
        self._approvals = approvals

    def show(self, visit: Visit) -> Reply:
        """GET /connections: signs the user in first."""
        found = self._accounts.signed_in(visit)
        if found is None:
            return self._accounts.begin(PATH, visit)
        session = found.session
        return self._pages.render(
            "connections.html",
            outcome="shown",
            connections=self._flow.connections(session.user, now=visit.now),
            approvals=self._approvals.list(session.user, now=visit.now),
            session=session,
        )

    def disconnect(self, visit: Visit) -> Reply:
        """POST /connections/{provider}/disconnect: forget it here, and revoke it there."""
        provider = visit.path["provider"]
        if not _NAME.match(provider):
            raise FlowNotFound
        (_, session), _ = self._accounts.own_form(visit, "disconnect", provider)
        existed = self._flow.disconnect(session.user, provider, now=visit.now)
        outcome = "disconnected" if existed else "nothing"
        return self._site.see_other(self._site.url(PATH), facts={"outcome": outcome})

    def withdraw(self, visit: Visit) -> Reply:
        """POST /connections/approvals/{approval}/withdraw: what was allowed is asked for again."""
        approval = visit.path["approval"]
        if not _APPROVAL.match(approval):
            raise FlowNotFound
        (_, session), _ = self._accounts.own_form(visit, "withdraw", approval)
        existed = self._approvals.withdraw(session.user, approval, now=visit.now)
        outcome = "withdrawn" if existed else "nothing"
        return self._site.see_other(self._site.url(PATH), facts={"outcome": outcome})
