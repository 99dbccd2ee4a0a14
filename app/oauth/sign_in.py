"""Signing a user in to our pages, as a client of the same authorization server that MCP clients use.

    browser                     we                                       authorization server
    opens a page, no session
                                begin: state, nonce, PKCE verifier
                                sealed under hash(login id, state)
        <- 303, login cookie
        -> authorization request                                         signs in
        <- code, state, iss
    callback with the cookie ->
                                finish: take the record, iss, error, then
                                redeem the code with the verifier    ->
                                ID token (or access token for us)    <-
        <- 303, new session cookie

The record is found by cookie and state together. A response that this browser did not ask for finds
nothing, so it neither signs anybody in (login CSRF, RFC 9700 section 4.7) nor spoils a sign-in that is
under way. No I/O but through ports.
"""

import hashlib
import re
from base64 import urlsafe_b64encode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from app import strict_json
from app.errors import InvalidToken, Refused, SealRefused, Unavailable
from app.oauth import id_token, provider
from app.oauth.id_token import IdTokenRules
from app.oauth.provider import ClientAuthentication, Provider
from app.oauth.server_metadata import MetadataCache, ServerMetadata
from app.ports import TokenEndpoint
from app.principal import AccessToken, User
from app.sealing import Purpose, Seal, SealingKeys, length_prefixed
from app.strict_json import JsonObject, NotStrictJson

LIFETIME: Final = 300
"""Seconds from leaving for the authorization server to coming back."""
MAX_PARAMETER: Final = 4096

_LOGIN_ID = re.compile(r"[A-Za-z0-9_-]{43}\Z", re.ASCII)
_RESPONSE_PARAMETERS: Final = ("code", "state", "iss", "error")


class SignInRefused(Refused):
    """The authorization response signs nobody in. `reason` is for the log, the page says one sentence."""


class SignInDenied(SignInRefused):
    """The user gave up at the authorization server, or it did not let them in."""


class LoginStore(Protocol):
    """Keeps one text under a key, for a limited time and one use. All of it is hashed or sealed.

    Raises Unavailable.
    """

    def put(self, key: str, sealed: str, *, lifetime: int) -> None:
        """Keep a text for `lifetime` seconds."""
        ...

    def take(self, key: str) -> str | None:
        """Read and delete at once: of many callers one gets the text, the others None."""
        ...


class VerifyClaims(Protocol):
    """Verifies the signature of an ID token: app.authorization.signed_jwt, with the issuer's keys."""

    def __call__(self, token: str, *, now: float) -> JsonObject:
        """The claims. Raises InvalidToken, or Unavailable without keys."""
        ...


class VerifyAccessToken(Protocol):
    """Verifies an access token as for a call: app.authorization.access_token, with the same rules."""

    def __call__(self, token: str, *, now: float) -> AccessToken:
        """The verified token. Raises InvalidToken, or Unavailable without keys."""
        ...


@dataclass(frozen=True, slots=True)
class Identified:
    """Who signed in. `account` is what people call them."""

    user: User
    account: str


class Identification(Protocol):
    """How the tokens tell who signed in. `scope` is asked for, `resource` is named in both requests."""

    scope: str
    resource: Mapping[str, str]

    def parameters(self, *, nonce: str) -> Mapping[str, str]:
        """What the authorization request adds."""
        ...

    def identify(self, tokens: JsonObject, *, nonce: str, now: float) -> Identified:
        """Raises InvalidToken when the token response does not prove it, or Unavailable without keys."""
        ...


class OpenIdConnect:
    """The user is named by an ID token, which is for us and for this sign-in."""

    def __init__(self, rules: IdTokenRules, verify: VerifyClaims, *, scope: str = "openid") -> None:
        self.scope = scope
        self.resource: Mapping[str, str] = {}
        self._rules = rules
        self._verify = verify

    def parameters(self, *, nonce: str) -> Mapping[str, str]:
        age = {} if self._rules.max_age is None else {"max_age": str(self._rules.max_age)}
        return {"nonce": nonce, **age}

    def identify(self, tokens: JsonObject, *, nonce: str, now: float) -> Identified:
        claims = self._verify(_token(tokens, "id_token"), now=now)
        subject = id_token.check(claims, self._rules, nonce=nonce, now=now)
        return Identified(User(self._rules.issuer, subject), id_token.account_name(claims, subject))


class PlainOAuth:
    """For an authorization server without OpenID Connect: the user is named by an access token for ourselves."""

    def __init__(self, *, resource: str, client_id: str, verify: VerifyAccessToken, scope: str = "") -> None:
        self.scope = scope
        self.resource: Mapping[str, str] = {"resource": resource}
        self._client_id = client_id
        self._verify = verify

    def parameters(self, *, nonce: str) -> Mapping[str, str]:
        return {}

    def identify(self, tokens: JsonObject, *, nonce: str, now: float) -> Identified:
        principal = self._verify(_token(tokens, "access_token"), now=now).principal
        if principal.client_id != self._client_id:
            # Another client's token names somebody who did not sign in here.
            raise InvalidToken("access_token: client_id")
        return Identified(principal.user, principal.subject)


@dataclass(frozen=True, slots=True)
class SignInClient:
    """Us, as registered at the authorization server. Without a secret we are a public client."""

    client_id: str
    redirect_uri: str
    client_secret: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Begun:
    """Send the browser to `url`, with `login_id` in a cookie for `LIFETIME` seconds.

    `tag` names the cookie, and comes back in `tag_of` the response: two tabs may sign in side by side.
    """

    url: str
    tag: str
    login_id: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Finished:
    """The user has signed in, and wanted to go to `destination`."""

    user: User
    account: str
    destination: str


class SignIn:
    """Sends a browser to the authorization server, and finds out who came back."""

    def __init__(
        self,
        *,
        client: SignInClient,
        metadata: MetadataCache,
        tokens: TokenEndpoint,
        identification: Identification,
        logins: LoginStore,
        keyring: SealingKeys,
        random_text: Callable[[], str],
    ) -> None:
        """`random_text` gives 43 characters with 256 fresh random bits: `secrets.token_urlsafe(32)`."""
        self._client = client
        self._metadata = metadata
        self._tokens = tokens
        self._identification = identification
        self._logins = logins
        self._seal = Seal(keyring, Purpose.SESSION)
        self._random_text = random_text

    def begin(self, destination: str, *, now: float, switch_account: bool = False) -> Begun:
        """Begin a sign-in that leads to `destination`, a path of ours. Raises Unavailable.

        `switch_account` asks for the sign-in page also where the server still knows the user.
        """
        metadata = self._metadata.get(now=now)
        login_id, state, nonce, verifier = (self._random_text() for _ in range(4))
        key = _key(login_id, state)
        claims = {"nonce": nonce, "verifier": verifier, "to": destination, "exp": int(now) + LIFETIME}
        self._logins.put(key, self._seal.seal(claims, bound_to=(b"login", key.encode())), lifetime=LIFETIME)
        parameters = {
            **self._identification.resource,
            **self._identification.parameters(nonce=nonce),
            **({"prompt": "login"} if switch_account else {}),
        }
        url = provider.authorization_url(
            self._provider(metadata, parameters),
            redirect_uri=self._client.redirect_uri,
            scopes=self._identification.scope.split(),
            state=state,
            verifier=verifier,
        )
        return Begun(url, _tag(state), login_id)

    @staticmethod
    def tag_of(query: Sequence[tuple[str, str]]) -> str | None:
        """Which login cookie a response belongs to, or None when it belongs to none."""
        states = [value for name, value in query if name == "state"]
        return _tag(states[0]) if len(states) == 1 and _LOGIN_ID.match(states[0]) else None

    def finish(self, login_id: str | None, query: Sequence[tuple[str, str]], *, now: float) -> Finished:
        """Finish a sign-in. `query` is every parameter as it came, duplicates included.

        Raises SignInRefused, SignInDenied or Unavailable. Each sign-in can be finished once.
        """
        response = _read_response(query)
        metadata = self._metadata.get(now=now)
        # Before the error is looked at: a forged response must not end a sign-in that is under way.
        record = self._take(login_id, response.get("state"), now=now)
        _check_issuer(response.get("iss"), metadata)
        if response.get("error") == "access_denied":
            raise SignInDenied("access_denied")
        if "error" in response:
            raise SignInRefused("error")
        code = response.get("code")
        if not code:
            raise SignInRefused("code")
        tokens = self._redeem(code, record["verifier"], metadata)
        try:
            identified = self._identification.identify(tokens, nonce=record["nonce"], now=now)
        except InvalidToken as error:
            raise SignInRefused(error.reason) from None
        return Finished(identified.user, identified.account, record["to"])

    def _take(self, login_id: str | None, state: str | None, *, now: float) -> dict[str, Any]:
        if login_id is None or state is None or not (_LOGIN_ID.match(login_id) and _LOGIN_ID.match(state)):
            raise SignInRefused("state")
        key = _key(login_id, state)
        sealed = self._logins.take(key)
        if sealed is None:
            raise SignInRefused("state")
        try:
            record = self._seal.open(sealed, bound_to=(b"login", key.encode()))
        except SealRefused as error:
            raise SignInRefused(f"login record: {error.reason}") from None
        if not now < record["exp"]:
            raise SignInRefused("state")
        return record

    def _redeem(self, code: str, verifier: str, metadata: ServerMetadata) -> JsonObject:
        request = provider.code_request(
            self._provider(metadata), code=code, redirect_uri=self._client.redirect_uri, verifier=verifier
        )
        form = {**request.form, **self._identification.resource}
        reply = self._tokens.post(request.url, form, request.headers)
        if reply.status >= 500 or reply.status == 429:
            raise Unavailable(f"token endpoint: HTTP {reply.status}", retry_after=30)
        if reply.status != 200:
            raise SignInRefused(f"token endpoint: HTTP {reply.status}")
        try:
            tokens = strict_json.parse(reply.body)
        except NotStrictJson:
            raise SignInRefused("token endpoint: not JSON") from None
        if not isinstance(tokens, dict):
            raise SignInRefused("token endpoint: not an object")
        return tokens

    def _provider(self, metadata: ServerMetadata, parameters: Mapping[str, str] | None = None) -> Provider:
        """The authorization server as a provider like others, so that its requests are built in one place."""
        secret = self._client.client_secret
        with_secret: ClientAuthentication = "client_secret_post" if metadata.secret_in_body else "client_secret_basic"
        return Provider(
            name="sign-in",
            title="",
            client_id=self._client.client_id,
            client_secret=secret or "",
            client_authentication=with_secret if secret else "none",
            authorize_url=metadata.authorization_endpoint,
            token_url=metadata.token_endpoint,
            authorize_parameters=parameters or {},
        )


def _read_response(query: Sequence[tuple[str, str]]) -> dict[str, str]:
    """The parameters that mean something, each at most once (RFC 6749 section 3.1)."""
    response: dict[str, str] = {}
    for name, value in query:
        if name not in _RESPONSE_PARAMETERS:
            continue
        if name in response or len(value) > MAX_PARAMETER:
            raise SignInRefused(f"{name}: repeated or too long")
        response[name] = value
    return response


def _check_issuer(iss: str | None, metadata: ServerMetadata) -> None:
    """MCP basic/authorization, Authorization Response Validation; RFC 9207 section 2.4.

    announced    iss        do
    yes          present    compare
    yes          absent     refuse
    no           present    compare
    no           absent     go on
    """
    if iss is None and not metadata.iss_in_responses:
        return
    # Simple string comparison: no normalisation (RFC 9207 section 2.4).
    if iss != metadata.issuer:
        raise SignInRefused("iss")


def _token(tokens: JsonObject, name: str) -> str:
    token = tokens.get(name)
    if not isinstance(token, str):
        raise InvalidToken(f"{name}: missing")
    return token


def _key(login_id: str, state: str) -> str:
    # SHA-256 before the store: a dump of it yields no usable login.
    digest = hashlib.sha256(length_prefixed(b"login", login_id.encode(), state.encode())).digest()
    return urlsafe_b64encode(digest).rstrip(b"=").decode()


def _tag(state: str) -> str:
    return state[:8]
