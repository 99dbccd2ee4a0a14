"""The pages of one connection: consent or secret, the provider's callback, and how it ended.

A GET changes nothing: chat clients, mail scanners and browsers open links on their own. The third party is
reached by POST from our own page only, so that nobody is sent to a provider that would approve silently
(MCP security best practices, confused deputy).
"""

import re
from collections.abc import Callable
from contextlib import suppress
from typing import Final, assert_never

from app.oauth import handles
from app.oauth.browser import Already, BrowserFlow, Completed, Denied, Failed, Refused
from app.oauth.errors import FlowNotFound, WrongUser
from app.principal import User
from app.web.accounts import Accounts, SignedIn
from app.web.notice import Notices
from app.web.pages import Pages
from app.web.site import Site
from app.web.visit import Reply, Visit

_PROVIDER = re.compile(r"[A-Za-z0-9_-]{1,64}\Z", re.ASCII)
_STRANGER: Final = User("", "")
"""Nobody. No flow is theirs, so all that they learn is whether a link exists."""
NEVER_MATCHED: Final = 3
"""Sign-ins of other users only, after which the operator is told that subjects may differ per client."""


class ConnectPages:
    """The pages under /connect and /oauth/callback."""

    def __init__(self, site: Site, pages: Pages, notices: Notices, accounts: Accounts, flow: BrowserFlow) -> None:
        self._site = site
        self._pages = pages
        self._notices = notices
        self._accounts = accounts
        self._flow = flow
        self._ever_matched = False
        self._mismatches = 0

    def show(self, visit: Visit) -> Reply:
        """GET /connect/{handle}: who asks for what, and as whom. Signs the user in first."""
        handle = _handle(visit)
        found = self._accounts.signed_in_for_long(visit)
        if found is None:
            # A dead link is told at once, before anybody signs in for it.
            with suppress(WrongUser):
                self._flow.view(handle, _STRANGER, now=visit.now)
            return self._accounts.begin(f"/connect/{handle}", visit)
        session = found.session
        try:
            view = self._flow.view(handle, session.user, now=visit.now)
        except WrongUser:
            return self._wrong_account(found, handle)
        self._ever_matched = True
        return self._pages.render(
            "secret.html" if view.kind == "secret" else "connect.html",
            outcome=view.kind,
            form_action=view.authorize_origins if view.kind == "connect" else None,
            view=view,
            handle=handle,
            session=session,
            problem=None,
        )

    def start(self, visit: Visit) -> Reply:
        """POST /connect/{handle}/start: the user approved."""

        def approve(found: SignedIn, handle: str, _: dict[str, str]) -> Reply:
            session_id, session = found
            match self._flow.approve(handle, session.user, session_id=session_id, now=visit.now):
                case Completed() as completed:
                    return self._done("connected", completed, visit)
                case url:
                    return self._site.see_other(url, facts={"outcome": "approved"})

        return self._act(visit, approve)

    def decline(self, visit: Visit) -> Reply:
        """POST /connect/{handle}/decline: the user said no on our page."""

        def decline(found: SignedIn, handle: str, _: dict[str, str]) -> Reply:
            self._flow.decline(handle, found.session.user, now=visit.now)
            notice = self._notices.leave("declined", now=visit.now)
            return self._to_done(outcome="declined").with_cookies(notice)

        return self._act(visit, decline)

    def store_secret(self, visit: Visit) -> Reply:
        """POST /connect/{handle}/secret: the user typed the value."""

        def store(found: SignedIn, handle: str, fields: dict[str, str]) -> Reply:
            user = found.session.user
            # Copied keys come with a line end or a space around them.
            value = fields.get("value", "").strip()
            try:
                stored = self._flow.store_secret(handle, user, value, now=visit.now)
            except ValueError:
                view = self._flow.view(handle, user, now=visit.now)
                return self._pages.render(
                    "secret.html",
                    status=422,
                    outcome="refused",
                    reason="secret: length",
                    view=view,
                    handle=handle,
                    session=found.session,
                    problem="Type or paste the value: 1 to 4096 characters.",
                )
            return self._done("stored", stored, visit)

        return self._act(visit, store)

    def callback(self, visit: Visit) -> Reply:
        """GET /oauth/callback/{provider}: the provider sent the browser back."""
        provider = visit.path["provider"]
        if not _PROVIDER.match(provider):
            raise FlowNotFound
        query = visit.query_pairs()
        found = self._accounts.signed_in(visit)
        session_id, user = (found.session_id, found.session.user) if found else (None, None)
        outcome = self._flow.callback(provider, query, user, session_id=session_id, now=visit.now)
        match outcome:
            case Completed():
                # A redirect, so that the code leaves the address bar and the history.
                return self._done("connected", outcome, visit)
            case Already(title):
                return self._pages.render("done.html", outcome="already", kind="already", title=title, account=None)
            case Denied(title):
                return self._pages.render("denied.html", outcome="denied", title=title)
            case Refused(status, reason):
                return self._pages.render("refused.html", status=status, outcome="refused", reason=reason)
            case Failed(title, retryable, reason):
                return self._pages.render(
                    "failed.html", status=400, outcome="failed", reason=reason, title=title, retryable=retryable
                )
            case _:
                assert_never(outcome)

    def done(self, visit: Visit) -> Reply:
        """GET /connect/done: how the connection ended, to reload as often as one likes."""
        notice = self._notices.read(visit)
        kind = notice.get("kind")
        if kind not in ("connected", "stored", "declined"):
            return self._pages.render("nothing.html", outcome="nothing")
        return self._pages.render(
            "declined.html" if kind == "declined" else "done.html",
            outcome=kind,
            kind=kind,
            title=notice.get("title"),
            account=notice.get("account"),
        )

    def _act(self, visit: Visit, step: Callable[[SignedIn, str, dict[str, str]], Reply]) -> Reply:
        """Take a step that our page for this link and this session asked for."""
        handle = _handle(visit)
        found, fields = self._accounts.own_form(visit, "connect", handle)
        try:
            return step(found, handle, fields)
        except WrongUser:
            return self._wrong_account(found, handle)

    def _done(self, kind: str, completed: Completed, visit: Visit) -> Reply:
        notice = self._notices.leave(kind, title=completed.provider_title, account=completed.account, now=visit.now)
        return self._to_done(outcome=kind).with_cookies(notice)

    def _to_done(self, *, outcome: str) -> Reply:
        return self._site.see_other(self._site.url("/connect/done"), facts={"outcome": outcome})

    def _wrong_account(self, found: SignedIn, handle: str) -> Reply:
        """Says that the link is another account's, and never whose."""
        self._mismatches += 1
        # Some issuers give each client another subject for one user: then nobody ever gets past here.
        never_match = not self._ever_matched and self._mismatches >= NEVER_MATCHED
        return self._pages.render(
            "wrong_account.html",
            status=403,
            outcome="refused",
            reason="wrong_user_always" if never_match else "wrong_user",
            handle=handle,
            session=found.session,
            never_match=never_match,
        )


def _handle(visit: Visit) -> str:
    handle = visit.path["handle"]
    if not handles.is_handle(handle):
        raise FlowNotFound
    return handle
