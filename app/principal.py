"""Who is calling: the principal, the user in it, and the verified access token that names it."""

from typing import NamedTuple


class User(NamedTuple):
    """A person, whichever client or browser acts for them. A browser session names a user.

    Source: MCP 2026-07-28 client/elicitation, Phishing: who opens a URL must be who was asked.
    """

    issuer: str
    subject: str


class Principal(NamedTuple):
    """A user acting through one client, as a verified access token names them.

    `subject` alone is not unique: two issuers may use the same one, and the specification binds an
    elicitation to client *and* user. Compare whole principals, never a part.

    Source: MCP 2026-07-28 client/elicitation, Security Considerations 1; RFC 9068 section 2.2.
    """

    issuer: str
    subject: str
    client_id: str

    def fields(self) -> tuple[bytes, ...]:
        """What a sealed token is bound to that belongs to this principal alone."""
        return self.issuer.encode(), self.subject.encode(), self.client_id.encode()

    @property
    def user(self) -> User:
        """The person, for what belongs to them and not to one client: connections and browser sessions."""
        return User(self.issuer, self.subject)


class AccessToken(NamedTuple):
    """What a verified access token grants. The token's text is not kept.

    `expires_at` is in seconds since the epoch.
    """

    principal: Principal
    scopes: frozenset[str]
    expires_at: int
