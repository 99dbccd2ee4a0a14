"""The provider's callback: exactly one exchange, for the browser that started it."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from app.http import TokenEndpointReply
from app.oauth.browser import Already, Completed, Denied, Failed, Refused
from app.oauth.connections import Connected, Ended, Pending
from app.oauth.flow import MAX_ATTEMPTS
from tests.oauth.world import ACME, ALICE, BOB, OTHER, World, no_answer, reply

DONE = Completed("Acme", "alice@acme.example")


@pytest.fixture
def world() -> World:
    return World()


def refusal(outcome: object) -> int:
    assert isinstance(outcome, Refused), outcome
    return outcome.status


def test_the_second_callback_exchanges_nothing(world: World) -> None:
    """SECURITY section 5, 122; CASES B.7 83, 86."""
    query = world.provider.consent(world.approve(world.handle()))
    assert world.back(query) == DONE
    assert world.back(query) == Already("Acme")
    assert world.provider.requests("authorization_code") == 1


def test_of_50_parallel_callbacks_one_exchanges(world: World) -> None:
    """SECURITY section 5, 122."""
    query = world.provider.consent(world.approve(world.handle()))
    with ThreadPoolExecutor(16) as pool:
        outcomes = list(pool.map(lambda _: world.back(query), range(50)))
    assert outcomes.count(DONE) == 1
    assert all(isinstance(each, Already | Refused) for each in outcomes if each != DONE)
    assert world.provider.requests("authorization_code") == 1


def test_the_second_tab_invalidates_the_first(world: World) -> None:
    """SECURITY section 3, step 6."""
    handle = world.handle()
    first = world.provider.consent(world.approve(handle))
    second = world.provider.consent(world.approve(handle))
    assert refusal(world.back(first)) == 400
    assert world.status(handle) == "authorizing"
    assert world.back(second) == DONE
    assert refusal(world.back(first)) == 400
    assert world.provider.requests("authorization_code") == 1


def test_two_flows_may_finish_in_reverse_order(world: World) -> None:
    """CASES B.7 93."""
    first = world.provider.consent(world.approve(world.handle()))
    second = world.provider.consent(world.approve(world.handle(provider="other")))
    # The fake answers for both: the token request carries what each flow sealed for itself.
    assert isinstance(world.back(second, provider="other"), Completed)
    assert world.back(first) == DONE


@pytest.mark.parametrize(
    "forge",
    [
        lambda query: [("code", "stolen"), ("state", "x" * 43 + "." + "y" * 43)],
        lambda query: [("error", "access_denied"), ("state", "x" * 43 + "." + "y" * 43)],
        lambda query: [("error", "access_denied"), ("state", dict(query)["state"][:-1] + "_")],
        lambda query: [("error", "access_denied")],
        lambda query: [("code", "stolen")],
        lambda query: [],
        lambda query: [*query, ("state", dict(query)["state"])],
        lambda query: [*query, ("code", "again")],
        lambda query: [*query, ("iss", "https://id.acme.example")],
        lambda query: [*query, ("error", "access_denied")],
        lambda query: [(name, "" if name == "code" else value) for name, value in query],
        lambda query: [(name, value) for name, value in query if name != "code"],
        lambda query: [*query, ("padding", "x" * 20_000)],
    ],
)
def test_a_forged_or_malformed_callback_does_not_touch_the_flow(world: World, forge: object) -> None:
    """SECURITY section 5, 125; CASES B.7 109: then the real one completes."""
    handle = world.handle()
    query = world.provider.consent(world.approve(handle))
    assert refusal(world.back(forge(query))) == 400  # type: ignore[operator]
    assert world.status(handle) == "authorizing"
    assert world.provider.posts == []
    assert world.back(query) == DONE


def test_parameters_that_we_do_not_know_are_ignored(world: World) -> None:
    """RFC 6749 section 4.1.2: the client MUST ignore unrecognized response parameters."""
    query = world.provider.consent(world.approve(world.handle()))
    assert world.back([*query, ("scope", "a"), ("scope", "b"), ("session_state", "x")]) == DONE


def test_a_denial_at_the_provider_reaches_the_tool(world: World) -> None:
    """SECURITY section 5, 127; CASES B.7 95."""
    query = world.provider.consent(world.approve(world.handle()), error="access_denied")
    assert world.back([*query, ("error_description", "<script>")]) == Denied("Acme")
    outcome = world.call(response="accept")
    assert isinstance(outcome, Ended)
    assert outcome.reason == "denied"
    assert "<script>" not in repr(outcome)


@pytest.mark.parametrize("kind", ["code", "error"])
@pytest.mark.parametrize(
    ("iss", "required", "accepted"),
    [
        ("https://id.acme.example", True, True),
        ("https://id.acme.example", False, True),
        ("https://evil.example", True, False),
        ("https://evil.example", False, False),
        ("https://id.acme.example/", True, False),
        ("HTTPS://id.acme.example", True, False),
        ("", False, False),
        (None, True, False),
        (None, False, True),
    ],
)
def test_iss_is_checked_by_rfc_9207_before_the_error(
    world: World, kind: str, iss: str | None, required: bool, accepted: bool
) -> None:
    """RFC 9207 section 2.4: simple string comparison, also on error responses."""
    world.providers = {"acme": replace(ACME, iss_required=required)}
    handle = world.handle()
    error = "access_denied" if kind == "error" else None
    query = [pair for pair in world.provider.consent(world.approve(handle), error=error) if pair[0] != "iss"]
    outcome = world.back(query if iss is None else [*query, ("iss", iss)])
    if accepted:
        assert outcome == (DONE if kind == "code" else Denied("Acme"))
    else:
        assert outcome == Failed("Acme", True, "iss")
        assert world.provider.posts == []
        assert world.status(handle) == "failed"


def test_an_iss_of_a_provider_without_an_issuer_is_another_one(world: World) -> None:
    """RFC 9207 section 2.4: nothing to compare with is not the same as equal."""
    world.providers = {"acme": replace(ACME, issuer=None, iss_required=False)}
    query = world.provider.consent(world.approve(world.handle()))
    assert world.back(query) == Failed("Acme", True, "iss")


def test_a_code_of_one_provider_is_not_sent_to_another(world: World) -> None:
    """SECURITY section 5, 124: state for provider X at path Y."""
    query = world.provider.consent(world.approve(world.handle()))
    assert world.back(query, provider="other") == Failed("Other", True, "other_provider")
    assert world.provider.posts == []
    assert refusal(world.back(query, provider="nowhere")) == 400


def test_a_code_that_the_provider_does_not_know_fails(world: World) -> None:
    """Code injection (RFC 9700 section 4.5): the verifier is not the code's."""
    handle = world.handle()
    mallorys = world.provider.consent(world.approve(world.handle(provider="other")))
    query = [
        (name, dict(mallorys)["code"] if name == "code" else value)
        for name, value in world.provider.consent(world.approve(handle))
    ]
    assert world.back(query) == Failed("Acme", True, "invalid_grant")
    assert isinstance(world.call(), Pending)


HTML = TokenEndpointReply(200, "text/html", b"<html>Sign in</html>")
USABLE = {"access_token": "a", "token_type": "bearer"}


@pytest.mark.parametrize(
    "answer",
    [
        HTML,
        HTML._replace(status=502),
        TokenEndpointReply(302, "", b""),
        TokenEndpointReply(200, "application/json", b"[1]"),
        TokenEndpointReply(200, "application/json", b'{"access_token":"a","access_token":"b","token_type":"bearer"}'),
        TokenEndpointReply(200, "application/json", b"\xff\xfe"),
        reply({}),
        reply({"token_type": "bearer"}),
        reply(USABLE | {"access_token": ""}),
        reply(USABLE | {"access_token": 5}),
        reply(USABLE | {"access_token": "with space"}),
        reply(USABLE | {"access_token": "line\nfeed"}),
        reply(USABLE | {"access_token": "x" * 16_385}),
        # Each fits, and both together are more than a sealed record holds.
        reply(USABLE | {"access_token": "x" * 10_000, "refresh_token": "y" * 10_000}),
        reply(USABLE | {"token_type": "mac"}),
        reply({"access_token": "a"}),
        reply(USABLE | {"expires_in": -1}),
        reply(USABLE | {"expires_in": 0}),
        reply(USABLE | {"expires_in": True}),
        reply(USABLE | {"expires_in": "soon"}),
        reply({"error": "invalid_grant", "error_description": "<script>"}, 400),
        reply({"error": "invalid_client"}, 401),
        reply({"error": "bad_verification_code"}, 200),
        reply({"error": {"message": "nested"}}, 400),
        reply(USABLE | {"error": "odd"}),
        reply(USABLE, 500),
    ],
)
def test_an_unusable_token_response_fails_the_attempt_and_not_the_flow(
    world: World, answer: TokenEndpointReply
) -> None:
    """SECURITY section 1, malicious third-party AS; section 3, step 7."""
    handle = world.handle()
    query = world.provider.consent(world.approve(handle))
    world.provider.on_token = lambda form: answer
    outcome = world.back(query)
    assert isinstance(outcome, Failed)
    assert outcome.retryable
    assert "<script>" not in outcome.reason
    assert world.status(handle) == "failed"
    world.provider.on_token = lambda form: None
    assert world.back(world.provider.consent(world.approve(handle))) == DONE


def test_a_provider_that_does_not_answer_fails_the_attempt(world: World) -> None:
    """SECURITY section 3, step 7: 5 s."""
    handle = world.handle()
    query = world.provider.consent(world.approve(handle))
    world.provider.on_token = no_answer
    assert world.back(query) == Failed("Acme", True, "no_answer")
    assert refusal(world.back(query)) == 400


def test_the_fifth_failure_is_final(world: World) -> None:
    """SECURITY section 3: failed (attempts left), failed_final."""
    handle = world.handle()
    world.provider.on_token = lambda form: reply({"error": "invalid_client"}, 401)
    outcomes = [world.back(world.provider.consent(world.approve(handle))) for _ in range(MAX_ATTEMPTS)]
    assert outcomes == [Failed("Acme", attempt < MAX_ATTEMPTS, "invalid_client") for attempt in range(1, 6)]
    assert world.status(handle) == "failed_final"


def test_an_account_that_cannot_be_told_is_none(world: World) -> None:
    """It is for people to read, and nothing depends on it."""
    world.provider.account = None
    assert world.back(world.provider.consent(world.approve(world.handle()))) == Completed("Acme", None)
    world.providers = {"acme": replace(ACME, account_url=None), "other": OTHER}
    assert isinstance(world.call(), Connected)


def test_a_finish_that_comes_after_the_lock_has_passed_changes_no_flow(world: World) -> None:
    """SECURITY section 3, exchange crash: the old owner's finish returns 0, the vault is the truth."""
    handle = world.handle()
    query = world.provider.consent(world.approve(handle))

    def slow(form: object) -> None:
        world.now += 31
        world.provider.on_token = lambda form: None
        world.again = world.approve(handle)  # type: ignore[attr-defined]

    world.provider.on_token = slow
    claimed_at = world.now
    outcome = world.browser.callback("acme", query, ALICE.user, session_id="session-a", now=claimed_at)
    assert outcome == DONE
    assert world.status(handle) == "authorizing"
    assert isinstance(world.call(response="accept"), Connected)
    assert world.back(world.provider.consent(world.again)) == DONE  # type: ignore[attr-defined]


def test_a_decline_during_the_exchange_is_kept_by_the_flow(world: World) -> None:
    """SECURITY section 3, state table, row 1: exchanging -> declined."""
    handle = world.handle()
    query = world.provider.consent(world.approve(handle))

    def declined_meanwhile(form: object) -> None:
        assert isinstance(world.call(response="decline"), Ended)

    world.provider.on_token = declined_meanwhile
    world.back(query)
    assert world.status(handle) == "declined"


@pytest.mark.parametrize(
    ("who", "session", "status"),
    [
        (BOB, "session-a", 403),
        (ALICE, "session-b", 403),
        (BOB, "session-b", 403),
        (None, None, 403),
        (ALICE, None, 403),
    ],
)
def test_a_callback_in_another_browser_touches_nothing(
    world: World, who: object, session: str | None, status: int
) -> None:
    """SECURITY section 5, 121: token endpoint unhit, flow finishable by Alice."""
    handle = world.handle()
    query = world.provider.consent(world.approve(handle))
    assert refusal(world.back(query, who, session)) == status  # type: ignore[arg-type]
    assert world.status(handle) == "authorizing"
    assert world.provider.posts == []
    assert world.back(query) == DONE
    assert refusal(world.back(query, who, session)) == status  # type: ignore[arg-type]
