"""The browser side: what a link shows, and whom it obeys."""

from collections.abc import Callable
from urllib.parse import parse_qsl, urlsplit

import pytest

from app.oauth import pkce
from app.oauth.browser import MAX_SECRET, Completed, Interstitial
from app.oauth.connections import Connected, Pending, Stored
from app.oauth.errors import FlowEnded, FlowNotFound, WrongUser
from app.oauth.flow import LIFETIME, MAX_ATTEMPTS
from app.principal import User
from tests.oauth.world import ALICE, ALICE_ELSEWHERE, BOB, OTHER, World, reply


@pytest.fixture
def world() -> World:
    return World()


ACTS: dict[str, Callable[[World, str, User], object]] = {
    "view": lambda world, handle, user: world.browser.view(handle, user, now=world.now),
    "approve": lambda world, handle, user: world.browser.approve(handle, user, session_id="s", now=world.now),
    "decline": lambda world, handle, user: world.browser.decline(handle, user, now=world.now),
    "store_secret": lambda world, handle, user: world.browser.store_secret(handle, user, "value", now=world.now),
}


def test_the_page_says_who_asks_for_what(world: World) -> None:
    """SECURITY section 3, step 5: client, provider, scopes; the origin for form-action."""
    handle = world.handle(scopes=("write", "read"))
    assert world.browser.view(handle, ALICE.user, now=world.now) == Interstitial(
        kind="connect",
        provider_title="Acme",
        client_id=ALICE.client_id,
        scopes=("read", "write"),
        label="",
        authorize_origins="https://id.acme.example",
    )


def test_a_secret_page_has_no_provider(world: World) -> None:
    """A value that the user types on our page."""
    handle = world.handle(world.ask())
    view = world.browser.view(handle, ALICE.user, now=world.now)
    assert (view.kind, view.provider_title, view.authorize_origins) == ("secret", "Stripe API key", "")


def test_viewing_is_noted_and_changes_nothing_else(world: World) -> None:
    """SECURITY section 3, step 2: link scanners and reloads are harmless."""
    handle = world.handle()
    views = [world.browser.view(handle, ALICE.user, now=world.now) for _ in range(3)]
    assert views[0] == views[2]
    assert world.status(handle) == "opened"
    world.approve(handle)
    assert world.browser.view(handle, ALICE.user, now=world.now) == views[0]
    assert world.status(handle) == "authorizing"


@pytest.mark.parametrize("act", ACTS)
@pytest.mark.parametrize(
    "handle", ["", "a" * 42, "a" * 44, "a" * 42 + "\n", "a" * 42 + "=", "é" * 43, "../" + "a" * 40, "a" * 43]
)
def test_a_handle_that_leads_nowhere_is_not_found(world: World, act: str, handle: str) -> None:
    """SECURITY section 5, 116: regex, else 404; unknown, 404."""
    with pytest.raises(FlowNotFound):
        ACTS[act](world, handle, ALICE.user)


@pytest.mark.parametrize("act", ACTS)
def test_an_expired_link_is_not_found(world: World, act: str) -> None:
    """SECURITY section 5, 116."""
    handle = world.handle()
    world.now += LIFETIME
    with pytest.raises(FlowNotFound):
        ACTS[act](world, handle, ALICE.user)


@pytest.mark.parametrize("act", ACTS)
@pytest.mark.parametrize("user", [BOB.user, User("https://other.example", ALICE.subject), User("", "")])
def test_another_user_is_refused_and_changes_nothing(world: World, act: str, user: User) -> None:
    """SECURITY section 5, 118: 403, no Location, and Alice can still finish."""
    handle = world.handle()
    with pytest.raises(WrongUser):
        ACTS[act](world, handle, user)
    assert world.status(handle) == "pending"
    assert isinstance(world.back(world.provider.consent(world.approve(handle))), Completed)


@pytest.mark.parametrize("act", ACTS)
@pytest.mark.parametrize("end", ["declined", "completed", "exchanging"])
def test_a_link_that_has_done_its_work_says_so_to_its_user_only(world: World, act: str, end: str) -> None:
    """FlowEnded after WrongUser: who is not the flow's user learns nothing."""
    handle = world.handle()
    match end:
        case "declined":
            world.browser.decline(handle, ALICE.user, now=world.now)
        case "completed":
            world.back(world.provider.consent(world.approve(handle)))
        case "exchanging":
            query = world.provider.consent(world.approve(handle))
            # Another request while the exchange is under way.
            world.provider.on_token = lambda form: _now(world, act, handle)
            world.back(query)
            return
    with pytest.raises(FlowEnded) as refused:
        ACTS[act](world, handle, ALICE.user)
    assert refused.value.status == end
    with pytest.raises(WrongUser):
        ACTS[act](world, handle, BOB.user)


def _now(world: World, act: str, handle: str) -> None:
    with pytest.raises(FlowEnded) as refused:
        ACTS[act](world, handle, ALICE.user)
    assert refused.value.status == "exchanging"


def test_the_authorization_request_is_complete_and_says_nothing_about_the_user(world: World) -> None:
    """SECURITY section 5, 130: S256, state >= 43 random characters, exact redirect_uri, no sub, no email."""
    handle = world.handle(scopes=("write", "read"))
    url = world.approve(handle)
    assert url.startswith("https://id.acme.example/authorize?")
    asked = dict(parse_qsl(urlsplit(url).query, strict_parsing=True))
    assert set(asked) == {
        "response_type",
        "client_id",
        "redirect_uri",
        "scope",
        "state",
        "code_challenge",
        "code_challenge_method",
    }
    assert asked["redirect_uri"] == "https://mcp.example.com/oauth/callback/acme"
    assert asked["scope"] == "read write"
    assert asked["code_challenge_method"] == "S256"
    assert len(asked["state"]) == 43 + 1 + 43
    assert handle not in url
    assert ALICE.subject not in url


def test_each_start_has_its_own_state_and_verifier(world: World) -> None:
    """CASES B.7 93: one PKCE verifier for all flows."""
    handle = world.handle()
    queries = [dict(parse_qsl(urlsplit(world.approve(handle)).query)) for _ in range(3)]
    assert len({each["state"] for each in queries}) == 3
    assert len({each["code_challenge"] for each in queries}) == 3
    assert len(pkce.challenge("a" * 43)) == 43


def test_the_sixth_start_ends_the_flow(world: World) -> None:
    """SECURITY section 3, step 6: attempt cap 5."""
    handle = world.handle()
    for _ in range(MAX_ATTEMPTS):
        world.approve(handle)
    with pytest.raises(FlowEnded) as refused:
        world.approve(handle)
    assert refused.value.status == "failed_final"
    assert world.status(handle) == "failed_final"


def test_a_flow_of_a_provider_that_was_removed_leads_nowhere(world: World) -> None:
    """A deployment between the question and the click."""
    handle = world.handle()
    world.providers = {"other": OTHER}
    for act in ACTS.values():
        with pytest.raises(FlowNotFound):
            act(world, handle, ALICE.user)


def test_a_value_is_typed_once(world: World) -> None:
    """Exactly-once, as for a callback: the second submission of a form changes nothing."""
    handle = world.handle(world.ask())
    done = world.browser.store_secret(handle, ALICE.user, "first", now=world.now)
    assert done == Completed("Stripe API key", None)
    with pytest.raises(FlowEnded):
        world.browser.store_secret(handle, ALICE.user, "second", now=world.now)
    assert world.ask() == Stored("first")


@pytest.mark.parametrize("value", ["", "x" * (MAX_SECRET + 1), "😀" * MAX_SECRET])
def test_a_value_that_does_not_fit_is_refused_before_anything_happens(world: World, value: str) -> None:
    """A sealed record holds 16 KiB."""
    handle = world.handle(world.ask())
    with pytest.raises(ValueError, match="characters"):
        world.browser.store_secret(handle, ALICE.user, value, now=world.now)
    assert world.status(handle) == "pending"
    world.browser.store_secret(handle, ALICE.user, "x" * MAX_SECRET, now=world.now)
    assert world.ask() == Stored("x" * MAX_SECRET)


def test_a_link_to_connect_takes_no_value_and_a_link_to_type_leads_to_no_provider(world: World) -> None:
    """Each link has one purpose."""
    with pytest.raises(FlowNotFound):
        world.browser.store_secret(world.handle(), ALICE.user, "value", now=world.now)
    with pytest.raises(FlowNotFound):
        world.browser.approve(world.handle(world.ask()), ALICE.user, session_id="s", now=world.now)


def test_consent_is_not_given_to_what_was_disconnected_meanwhile(world: World) -> None:
    """Between the page and the click the connection goes: the same link then connects anew."""
    world.connect()
    handle = world.handle(principal=ALICE_ELSEWHERE)
    read, reads = world.vault.look, []

    def disconnected_after_the_first_look(*arguments: str) -> object:
        found = read(*arguments)
        reads.append(1)
        if len(reads) == 1:
            world.browser.disconnect(ALICE.user, "acme", now=world.now)
        return found

    world.vault.look = disconnected_after_the_first_look  # type: ignore[method-assign, assignment]
    with pytest.raises(FlowEnded) as refused:
        world.browser.approve(handle, ALICE.user, session_id="session-a", now=world.now)
    assert refused.value.status == "failed"
    assert world.call(ALICE_ELSEWHERE) == Pending(f"https://mcp.example.com/connect/{handle}")
    url = world.approve(handle)
    assert isinstance(world.back(world.provider.consent(url)), Completed)
    assert isinstance(world.call(ALICE_ELSEWHERE), Connected)


def test_connecting_another_account_takes_earlier_approvals_away(world: World) -> None:
    """What the user let one client do with one account says nothing about another account."""
    world.connect()
    handle = world.handle(principal=ALICE_ELSEWHERE, scopes=("read", "write"))
    world.provider.account = "alice@private.example"
    assert isinstance(
        world.back(world.provider.consent(world.approve(handle))),
        Completed,
    )
    assert isinstance(world.call(ALICE_ELSEWHERE, scopes=("write",)), Connected)
    assert isinstance(world.call(ALICE), Pending)


def test_connecting_the_same_account_keeps_them(world: World) -> None:
    """A wider grant for one client does not send the other one back to its user."""
    world.connect()
    handle = world.handle(principal=ALICE_ELSEWHERE, scopes=("read", "write"))
    world.back(world.provider.consent(world.approve(handle)))
    assert isinstance(world.call(ALICE), Connected)
    info = world.browser.connections(ALICE.user, now=world.now)[0]
    assert info.approved_clients == tuple(sorted((ALICE.client_id, ALICE_ELSEWHERE.client_id)))


def test_a_user_without_connections_sees_none(world: World) -> None:
    """And nobody else's."""
    world.connect()
    assert world.browser.connections(BOB.user, now=world.now) == []
    assert not world.browser.disconnect(BOB.user, "acme", now=world.now)
    assert isinstance(world.call(), Connected)


@pytest.mark.parametrize(("account", "kept"), [("alice@acme.example", True), ("alice@private.example", False)])
def test_a_refresh_token_that_is_not_sent_again_is_kept_for_its_account_only(
    world: World, account: str, kept: bool
) -> None:
    """Google sends one with the first consent only. Another account's would bring back the wrong data."""
    world.connect()
    handle = world.handle(scopes=("read", "write"))
    url = world.approve(handle)
    world.provider.account = account
    document = {"access_token": "again", "token_type": "bearer", "expires_in": 60, "scope": "read write"}
    world.provider.secrets.append("again")
    world.provider.on_token = lambda form: reply(document)
    assert world.back(world.provider.consent(url)) == Completed("Acme", account)
    world.provider.on_token = lambda form: None
    world.now += 60
    assert isinstance(world.call(), Connected if kept else Pending)
