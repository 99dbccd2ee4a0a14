"""What a tool call and its retries are answered: the state table of SECURITY section 3, row by row."""

import pytest

from app.errors import ConfigurationError
from app.oauth.browser import Completed, Denied, Failed
from app.oauth.connections import Connected, Ended, Pending, Response, Stored
from app.oauth.flow import LIFETIME, MAX_LIVE_FLOWS
from app.principal import Principal
from tests.oauth.world import ALICE, ALICE_ELSEWHERE, BASE, BOB, ISSUER, PROVIDERS, World, no_answer, reply


@pytest.fixture
def world() -> World:
    return World()


def ended(outcome: object) -> str:
    assert isinstance(outcome, Ended), outcome
    assert outcome.text
    return outcome.reason


def exchanging(world: World, handle: str) -> None:
    """An instance claimed the callback and has not finished."""

    def vanish(form: object) -> None:
        raise SystemExit

    query = world.provider.consent(world.approve(handle))
    world.provider.on_token = vanish
    with pytest.raises(SystemExit):
        world.back(query)
    world.provider.on_token = lambda form: None
    assert world.status(handle) == "exchanging"


def stand_at(world: World, status: str) -> str:
    """A flow of Alice that stands at a status, reached as in life."""
    handle = world.handle()
    match status:
        case "opened":
            world.browser.view(handle, ALICE.user, now=world.now)
        case "authorizing":
            world.approve(handle)
        case "exchanging":
            exchanging(world, handle)
        case "denied":
            assert world.back(world.provider.consent(world.approve(handle), error="access_denied")) == Denied("Acme")
        case "declined":
            world.browser.decline(handle, ALICE.user, now=world.now)
        case "failed" | "failed_final":
            for _ in range(1 if status == "failed" else 5):
                outcome = world.back(world.provider.consent(world.approve(handle), error="server_error"))
            assert outcome == Failed("Acme", status == "failed", "authorization_error")
        case "completed":
            assert world.back(world.provider.consent(world.approve(handle))) == Completed("Acme", "alice@acme.example")
    assert world.status(handle) == status
    return handle


LIVE = ("pending", "opened", "authorizing", "exchanging", "failed")
GIVEN_UP = (("denied", "denied"), ("declined", "declined"), ("failed_final", "failed"))
RETRIES: tuple[Response | None, ...] = ("accept", None)


@pytest.mark.parametrize("response", RETRIES)
@pytest.mark.parametrize("status", LIVE)
def test_a_retry_while_the_user_is_busy_gets_the_same_url(world: World, status: str, response: Response | None) -> None:
    """Rows 1 and 4: input_required, same URL. SECURITY section 5, 115: no second flow for a new call either."""
    handle = stand_at(world, status)
    for _ in range(3):
        assert world.call(response=response) == Pending(f"{BASE}/connect/{handle}")
    assert world.status(handle) == status


@pytest.mark.parametrize("status", LIVE)
def test_a_decline_ends_the_flow(world: World, status: str) -> None:
    """Rows 1 and 4: flow -> declined, and a new call makes a new flow."""
    handle = stand_at(world, status)
    assert ended(world.call(response="decline")) == "declined"
    assert world.status(handle) == "declined"
    assert world.handle() != handle


@pytest.mark.parametrize("status", LIVE)
def test_a_cancel_leaves_the_flow_as_it_is(world: World, status: str) -> None:
    """Rows 1 and 4: not finished, flow stays."""
    handle = stand_at(world, status)
    assert ended(world.call(response="cancel")) == "cancelled"
    assert world.status(handle) == status
    assert world.handle() == handle


@pytest.mark.parametrize("response", RETRIES)
def test_a_completed_flow_gives_the_token(world: World, response: Response | None) -> None:
    """Row 2: runs the tool."""
    stand_at(world, "completed")
    outcome = world.call(response=response)
    assert isinstance(outcome, Connected)
    assert outcome.access_token in world.provider.secrets
    assert outcome.scopes == {"read"}
    assert outcome.account == "alice@acme.example"


@pytest.mark.parametrize(("response", "reason"), [("decline", "declined"), ("cancel", "cancelled")])
def test_a_completed_flow_does_not_run_against_the_users_answer(world: World, response: Response, reason: str) -> None:
    """Row 2; SECURITY section 5, 133: the next call runs."""
    stand_at(world, "completed")
    assert ended(world.call(response=response)) == reason
    assert isinstance(world.call(), Connected)


@pytest.mark.parametrize("response", ["accept", None, "cancel"])
@pytest.mark.parametrize(("status", "reason"), GIVEN_UP)
def test_an_end_is_reported_once_and_a_new_call_makes_a_new_flow(
    world: World, status: str, reason: str, response: Response | None
) -> None:
    """Row 3; SECURITY section 5, 127."""
    handle = stand_at(world, status)
    assert ended(world.call(response=response)) == reason
    assert world.handle() != handle


@pytest.mark.parametrize("status", [status for status, _ in GIVEN_UP])
def test_a_decline_after_the_end_is_a_decline(world: World, status: str) -> None:
    """Row 3: the user's answer says which."""
    handle = stand_at(world, status)
    assert ended(world.call(response="decline")) == "declined"
    assert world.handle() != handle


@pytest.mark.parametrize("response", RETRIES)
def test_an_expired_flow_is_replaced(world: World, response: Response | None) -> None:
    """Row 5: new flow, new URL."""
    handle = world.handle()
    world.now += LIFETIME
    assert world.handle(response=response) != handle


@pytest.mark.parametrize(("response", "reason"), [("decline", "declined"), ("cancel", "cancelled")])
def test_a_no_to_an_expired_flow_is_a_no(world: World, response: Response, reason: str) -> None:
    """Row 5."""
    world.handle()
    world.now += LIFETIME
    assert ended(world.call(response=response)) == reason


def test_a_fresh_call_after_everything_has_expired_succeeds_from_the_vault(world: World) -> None:
    """Row 6: the requestState is void, the connection is not."""
    stand_at(world, "completed")
    world.provider.expires_in = None
    world.now += LIFETIME + 1
    assert isinstance(world.call(), Connected)


def test_a_flow_lives_until_its_last_second_and_no_use_makes_it_longer(world: World) -> None:
    """SECURITY section 3: TTL 900 s, not extended."""
    handle = world.handle()
    for _ in range(3):
        world.now += LIFETIME / 3 - 0.2
        assert world.handle(response="accept") == handle
    world.approve(handle)
    world.now += 0.7
    assert world.handle(response="accept") != handle


def test_a_crashed_exchange_may_be_started_again_after_its_lock(world: World) -> None:
    """SECURITY section 3, exchange crash."""
    handle = stand_at(world, "exchanging")
    world.now += 30
    assert world.handle() == handle
    assert world.back(world.provider.consent(world.approve(handle))) == Completed("Acme", "alice@acme.example")


@pytest.mark.parametrize(
    "other",
    [BOB, ALICE_ELSEWHERE, Principal("https://other-issuer.example", ALICE.subject, ALICE.client_id)],
    ids=["user", "client", "issuer"],
)
def test_another_principal_gets_a_flow_of_its_own(world: World, other: Principal) -> None:
    """SECURITY section 1: one live flow per (principal, client, provider)."""
    handle = world.handle()
    assert world.handle(principal=other) != handle
    assert world.handle(provider="other") != handle
    assert world.handle() == handle


def test_the_fields_of_a_principal_do_not_run_into_each_other(world: World) -> None:
    """SECURITY section 5, 88: "a"+"xb" is not "ax"+"b"."""
    assert world.handle(principal=Principal(ISSUER + "x", "b", "c")) != world.handle(
        principal=Principal(ISSUER, "xb", "c")
    )


def test_one_user_has_at_most_five_live_flows(world: World) -> None:
    """SECURITY section 5, 143: 6th live flow of one user -> isError."""
    clients = [Principal(ISSUER, ALICE.subject, f"client-{n}") for n in range(MAX_LIVE_FLOWS + 1)]
    handles = [world.handle(principal=each) for each in clients[:-1]]
    assert ended(world.call(clients[-1])) == "failed"
    assert [world.handle(principal=each) for each in clients[:-1]] == handles
    assert isinstance(world.call(BOB), Pending)
    world.browser.decline(handles[0], ALICE.user, now=world.now)
    assert isinstance(world.call(clients[-1]), Pending)


def test_a_finished_flow_does_not_count(world: World) -> None:
    """Five connections in a quarter of an hour are no abuse."""
    for number in range(MAX_LIVE_FLOWS + 2):
        client = Principal(ISSUER, ALICE.subject, f"client-{number}")
        url = world.browser.approve(world.handle(principal=client), ALICE.user, session_id="session-a", now=world.now)
        if isinstance(url, str):
            assert isinstance(world.back(world.provider.consent(url)), Completed)


def test_a_second_client_of_the_user_needs_consent_and_no_provider(world: World) -> None:
    """SECURITY section 5, 137: input_required before the grant is used."""
    first = world.connect()
    handle = world.handle(principal=ALICE_ELSEWHERE)
    view = world.browser.view(handle, ALICE.user, now=world.now)
    assert (view.kind, view.client_id, view.scopes) == ("consent", ALICE_ELSEWHERE.client_id, ("read",))
    posts = len(world.provider.posts)
    done = world.browser.approve(handle, ALICE.user, session_id="session-a", now=world.now)
    assert done == Completed("Acme", "alice@acme.example")
    assert world.call(ALICE_ELSEWHERE, response="accept") == first
    assert len(world.provider.posts) == posts
    assert world.call() == first


def test_a_second_client_does_not_get_scopes_that_the_user_gave_the_first(world: World) -> None:
    """Consent is strict: what was shown for one client was not approved for another."""
    world.connect(scopes=("read", "write"))
    handle = world.handle(principal=ALICE_ELSEWHERE, scopes=("read",))
    world.browser.approve(handle, ALICE.user, session_id="session-a", now=world.now)
    assert isinstance(world.call(ALICE_ELSEWHERE, scopes=("read",)), Connected)
    handle = world.handle(principal=ALICE_ELSEWHERE, scopes=("write",))
    assert world.browser.view(handle, ALICE.user, now=world.now).kind == "consent"


def test_more_scopes_are_asked_for_together_with_those_that_were_granted(world: World) -> None:
    """Incremental consent: a new grant replaces the old one and must not be smaller."""
    world.connect(scopes=("read",))
    handle = world.handle(scopes=("write",))
    view = world.browser.view(handle, ALICE.user, now=world.now)
    assert (view.kind, view.scopes) == ("connect", ("read", "write"))
    assert isinstance(world.back(world.provider.consent(world.approve(handle))), Completed)
    assert isinstance(world.call(scopes=("read",)), Connected)
    assert isinstance(world.call(scopes=("write",)), Connected)


def test_a_tool_that_needs_more_than_the_open_link_asks_for_replaces_it(world: World) -> None:
    """Two tools, one client: the second link serves both."""
    first = world.handle(scopes=("read",))
    second = world.handle(scopes=("write",))
    assert second != first
    assert world.status(first) == "gone"
    assert world.browser.view(second, ALICE.user, now=world.now).scopes == ("read", "write")
    assert world.handle(scopes=("read",)) == second


def test_a_scope_that_the_provider_leaves_out_ends_the_call_and_not_in_a_circle(world: World) -> None:
    """The user unticked it: say so once, and ask again only when called again."""
    world.provider.grants = lambda asked: "read"
    handle = world.handle(scopes=("read", "write"))
    assert isinstance(world.back(world.provider.consent(world.approve(handle))), Completed)
    outcome = world.call(scopes=("read", "write"), response="accept")
    assert ended(outcome) == "denied"
    assert isinstance(outcome, Ended)
    assert "write" in outcome.text
    assert isinstance(world.call(scopes=("read",)), Connected)
    assert isinstance(world.call(scopes=("read", "write")), Pending)


def test_a_provider_that_is_not_configured_is_named_with_the_remedy(world: World) -> None:
    """The tool names it."""
    with pytest.raises(ConfigurationError, match=r"no provider 'nowhere'; configured here: \w.*MCP_PROVIDERS"):
        world.call(provider="nowhere")
    assert "nowhere" not in PROVIDERS


def test_disconnecting_forgets_first_and_revokes_then(world: World) -> None:
    """SECURITY section 3, disconnect: CAS delete first, then RFC 7009, the refresh token before the access token."""
    connected = world.connect()
    told: list[object] = []

    def at_the_provider(url: str, form: dict[str, str], headers: object) -> object:
        told.append((url, form["token_type_hint"], isinstance(world.call(), Connected)))
        return reply({})

    world.provider.post = at_the_provider  # type: ignore[method-assign, assignment]
    assert world.connections.disconnect(ALICE.user, "acme", now=world.now)
    revoke = "https://id.acme.example/revoke"
    assert told == [(revoke, "refresh_token", False), (revoke, "access_token", False)]
    assert not world.connections.disconnect(ALICE.user, "acme", now=world.now)
    assert connected.access_token


def test_disconnecting_does_not_depend_on_the_provider(world: World) -> None:
    """RFC 7009 as best we can."""
    world.connect()
    world.provider.post = lambda url, form, headers: no_answer(form)  # type: ignore[method-assign]
    assert world.browser.disconnect(ALICE.user, "acme", now=world.now)
    assert isinstance(world.call(), Pending)


def test_disconnecting_touches_nobody_elses_connection(world: World) -> None:
    """One user's entry."""
    world.connect()
    world.connect(BOB)
    world.browser.disconnect(ALICE.user, "acme", now=world.now)
    assert isinstance(world.call(BOB), Connected)


def test_a_value_that_the_user_types_reaches_the_tool(world: World) -> None:
    """URL mode for sensitive data (client/elicitation): neither the client nor the model sees the value."""
    handle = world.handle(world.ask())
    view = world.browser.view(handle, ALICE.user, now=world.now)
    assert (view.kind, view.label) == ("secret", "Stripe API key")
    assert world.handle(world.ask(response="accept")) == handle
    world.browser.store_secret(handle, ALICE.user, "sk_live_é😀", now=world.now)
    assert world.ask(response="accept") == Stored("sk_live_é😀")
    assert ended(world.ask(response="decline")) == "declined"
    assert ended(world.ask(response="cancel")) == "cancelled"
    assert isinstance(world.ask(principal=BOB), Pending)
    assert isinstance(world.ask("another"), Pending)


def test_a_second_client_needs_consent_for_a_secret_too(world: World) -> None:
    """The same rule for everything in the vault."""
    world.browser.store_secret(world.handle(world.ask()), ALICE.user, "sk", now=world.now)
    handle = world.handle(world.ask(principal=ALICE_ELSEWHERE))
    assert world.browser.view(handle, ALICE.user, now=world.now).kind == "consent"
    world.browser.approve(handle, ALICE.user, session_id="session-a", now=world.now)
    assert world.ask(principal=ALICE_ELSEWHERE) == Stored("sk")


def test_a_secret_and_a_provider_of_one_name_are_two_things(world: World) -> None:
    """Entries are a kind and a name."""
    world.connect()
    handle = world.handle(world.ask("acme"))
    world.browser.store_secret(handle, ALICE.user, "typed", now=world.now)
    assert world.ask("acme") == Stored("typed")
    assert isinstance(world.call(), Connected)
    found = {each.provider: each for each in world.browser.connections(ALICE.user, now=world.now)}
    assert set(found) == {"acme", "secret:acme"}
    assert found["acme"].account == "alice@acme.example"
    assert found["acme"].approved_clients == (ALICE.client_id,)
    assert found["secret:acme"].title == "Stripe API key"
    assert world.browser.disconnect(ALICE.user, "secret:acme", now=world.now)
    assert isinstance(world.ask("acme"), Pending)
    assert isinstance(world.call(), Connected)


def test_an_exchange_is_left_to_finish_whatever_the_next_tool_needs(world: World) -> None:
    """A link that the user has just used is not replaced under their hands."""
    handle = stand_at(world, "exchanging")
    assert world.handle(scopes=("write",)) == handle
    assert world.status(handle) == "exchanging"


def test_a_delete_whose_reply_was_lost_still_revokes(world: World) -> None:
    """PLATFORM section 4, at-least-once: the second attempt finds nothing, because the first one worked."""
    world.connect()
    delete = world.vault.delete

    def reply_lost(user: str, entry: str, *, version: str) -> bool:
        delete(user, entry, version=version)
        return False

    world.vault.delete = reply_lost  # type: ignore[method-assign]
    assert world.connections.disconnect(ALICE.user, "acme", now=world.now)
    assert world.provider.requests("revoke") == 2
