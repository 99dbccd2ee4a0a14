"""Who is at the browser: signing in and out, the session cookie, and the proof that a form is theirs."""

import secrets
from typing import Final, NamedTuple

from app.errors import Refused
from app.oauth import handles, sessions, sign_in
from app.oauth.sessions import Session, Sessions
from app.oauth.sign_in import SignIn
from app.web.notice import Notices
from app.web.pages import Pages
from app.web.site import Site
from app.web.visit import Reply, Visit

_SESSION: Final = "mcp_sid"
_LOGIN: Final = "mcp_login"
ENOUGH_SECONDS: Final = 600
"""A session that ends sooner is renewed first: it has to last until the browser is back from the provider."""


class SignedOut(Refused):
    """A form came without a session: it ended while the page was open, or there never was one."""

    def __init__(self) -> None:
        super().__init__("no_session")


class ForeignForm(Refused):
    """A form that no page of ours sent, or not to this browser: the defence against CSRF."""


class SignedIn(NamedTuple):
    """A live session and its id."""

    session_id: str
    session: Session


class Accounts:
    """The pages under /auth, and the questions that other pages ask about the user."""

    def __init__(self, site: Site, pages: Pages, notices: Notices, sign_in: SignIn, sessions: Sessions) -> None:
        self._site = site
        self._pages = pages
        self._notices = notices
        self._sign_in = sign_in
        self._sessions = sessions

    def signed_in(self, visit: Visit) -> SignedIn | None:
        """Who is signed in, in this browser."""
        session_id = visit.cookie(self._site.cookie_name(_SESSION))
        session = self._sessions.find(session_id, now=visit.now)
        return None if session is None or session_id is None else SignedIn(session_id, session)

    def signed_in_for_long(self, visit: Visit) -> SignedIn | None:
        """Who is signed in, and stays so for as long as a connection takes."""
        found = self.signed_in(visit)
        return found if found and found.session.expires_at - visit.now >= ENOUGH_SECONDS else None

    def own_form(self, visit: Visit, *subject: str) -> tuple[SignedIn, dict[str, str]]:
        """The session and the fields of a form that our page about `subject` made for it.

        Raises ForeignForm, SignedOut and MalformedRequest.
        """
        if not self._site.is_own_form(visit):
            raise ForeignForm("cross_site")
        found = self.signed_in(visit)
        if found is None:
            raise SignedOut
        fields = visit.fields()
        if not found.session.is_csrf_token(fields.get("csrf_token", ""), *subject):
            raise ForeignForm("csrf_token")
        return found, fields

    def begin(self, destination: str, visit: Visit) -> Reply:
        """Send the browser to the authorization server, and then to `destination`, a path of ours."""
        # Who has just signed out wants to be somebody else: the server must not sign them in silently.
        switching = self._notices.read(visit).get("kind") == "signed_out"
        begun = self._sign_in.begin(destination, now=visit.now, switch_account=switching)
        cookie = self._site.set_cookie(f"{_LOGIN}_{begun.tag}", begun.login_id, max_age=sign_in.LIFETIME)
        return self._site.see_other(begun.url, facts={"outcome": "sign_in"}).with_cookies(cookie)

    def callback(self, visit: Visit) -> Reply:
        """GET /auth/callback: the authorization server sent the browser back."""
        query = visit.query_pairs()
        tag = self._sign_in.tag_of(query)
        login_cookie = f"{_LOGIN}_{tag}"
        login_id = visit.cookie(self._site.cookie_name(login_cookie)) if tag else None
        finished = self._sign_in.finish(login_id, query, now=visit.now)
        # Always a new id: the one that the browser held may be known to somebody else (session fixation).
        session_id = secrets.token_urlsafe(32)
        self._sessions.start(
            finished.user,
            finished.account,
            session_id=session_id,
            csrf_key=secrets.token_bytes(32),
            now=visit.now,
        )
        reply = self._site.see_other(self._site.url(finished.destination), facts={"outcome": "signed_in"})
        return reply.with_cookies(
            self._site.set_cookie(_SESSION, session_id, max_age=sessions.LIFETIME),
            self._site.expire_cookie(login_cookie),
            self._notices.clear(),
        )

    def sign_out(self, visit: Visit) -> Reply:
        """POST /auth/sign-out: end the session. A link that the user was at may be opened with another account."""
        (session_id, _), fields = self.own_form(visit, "sign-out")
        self._sessions.end(session_id)
        handle = fields.get("link", "")
        notice = self._notices.leave("signed_out", link=handle if handles.is_handle(handle) else None, now=visit.now)
        # To a page of ours: the browser would not follow a form to the authorization server (form-action).
        reply = self._site.see_other(self._site.url("/auth/signed-out"), facts={"outcome": "signed_out"})
        return reply.with_cookies(self._site.expire_cookie(_SESSION), notice)

    def signed_out(self, visit: Visit) -> Reply:
        """GET /auth/signed-out: says so, and offers the way on."""
        return self._pages.render("signed_out.html", outcome="shown", link=self._notices.read(visit).get("link"))
