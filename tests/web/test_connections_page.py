"""The page on which users see and end their connections, and what they allowed."""

import pytest

from app.oauth.connections import Connected, Pending
from tests.web.world import ALICE, BOB, NOW, ORIGIN, Browser, World, form_of


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def alice(world: World) -> Browser:
    browser = world.browser("alice")
    browser.finish(world.link())
    browser.submit(browser.open(world.secret_link()), "/secret", value="sk_live_0123456789")
    return browser


def test_the_page_lists_what_is_kept_and_for_whom(world: World, alice: Browser) -> None:
    """What a user needs to know before ending something."""
    text = alice.get("/connections").text

    for expected in ("Notes", "al</bdi>", "Read your notes", "desk.example", "21 September 2026", "Stripe API key"):
        assert expected in text
    for secret in ("sk_live", *world.provider.access_tokens):
        assert secret not in text


def test_nobody_sees_what_is_kept_for_others(world: World, alice: Browser) -> None:
    """The vault opens for one user."""
    assert "You have no connections." in world.browser("bob").get("/connections").text


def test_disconnecting_forgets_it_here_and_revokes_it_there(world: World, alice: Browser) -> None:
    """SECURITY section 3, Disconnect; RFC 7009."""
    assert isinstance(world.connect(), Connected)
    response = alice.submit(alice.get("/connections"), "/notes/disconnect")

    assert response.status_code == 303
    assert response.headers["location"] == f"{ORIGIN}/connections"
    assert "Notes" not in alice.get("/connections").text
    assert world.provider.revoked
    assert isinstance(world.connect(), Pending)


def test_a_typed_value_is_deleted(world: World, alice: Browser) -> None:
    """Its name in the address is escaped."""
    response = alice.submit(alice.get("/connections"), "api_key/disconnect")

    assert response.status_code == 303
    assert isinstance(world.secret(), Pending)


def test_disconnecting_twice_is_harmless(world: World, alice: Browser) -> None:
    """A double click."""
    page = alice.get("/connections")
    statuses = [alice.submit(page, "/notes/disconnect").status_code for _ in range(2)]

    assert statuses == [303, 303]
    assert world.log[-1]["outcome"] == "nothing"


def test_disconnecting_needs_our_form_for_this_connection(world: World, alice: Browser) -> None:
    """CSRF; a token for one connection ends no other."""
    page = alice.get("/connections")
    form, other = form_of(page, "/notes/disconnect"), form_of(page, "api_key/disconnect")

    assert alice.post(form.action, {"csrf_token": ""}).status_code == 403
    assert alice.post(form.action, other.fields).status_code == 403
    assert alice.post(form.action, form.fields, sec_fetch_site="cross-site").status_code == 403
    assert world.browser().post(form.action, form.fields).status_code == 403
    assert world.browser("bob").post(form.action, form.fields).status_code == 403
    assert alice.get(form.action).status_code == 405
    assert isinstance(world.connect(), Connected)


@pytest.mark.parametrize("name", ["%00", "..", "a" * 200, "%2e%2e%2fx"])
def test_a_name_that_cannot_be_one_is_404(world: World, alice: Browser, name: str) -> None:
    """Before any store is asked."""
    assert alice.post(f"/connections/{name}/disconnect").status_code == 404


def test_the_page_lists_what_was_allowed_to_whom_and_until_when(world: World) -> None:
    """SECURITY 1: the user sees what runs without a question. What a model chose is escaped."""
    world.allow(arguments={"id": "<b>T-1</b>"})
    world.clock.now += 60
    world.allow(ALICE._replace(client_id="local-client"), "deploy")
    world.allow(BOB, "never_shown")
    text = world.browser("alice").get("/connections").text

    assert text.index("deploy") < text.index("reply"), "the newest first"
    for expected in (
        "Allowed without asking",
        "&lt;b&gt;T-1&lt;/b&gt;",
        "Any arguments",
        "desk.example",
        "local-client",
        "21 September 2026, 14:13 UTC",
        "22 September 2026, 02:13 UTC",
    ):
        assert expected in text
    assert "never_shown" not in text


def test_without_approvals_the_page_says_nothing_of_them(world: World) -> None:
    """Most users have none."""
    assert "Allowed" not in world.browser("alice").get("/connections").text


def test_withdrawing_ends_a_yes_and_no_other(world: World) -> None:
    """The tool asks again, at once, on every instance."""
    world.allow(tool="reply")
    world.allow(tool="deploy")
    alice = world.browser("alice")
    (reply,) = [each for each in world.approvals.list(ALICE.user, now=NOW) if each.tool == "reply"]
    response = alice.submit(alice.get("/connections"), f"{reply.id}/withdraw")

    assert response.status_code == 303
    assert response.headers["location"] == f"{ORIGIN}/connections"
    assert not world.is_allowed(tool="reply")
    assert world.is_allowed(tool="deploy")
    assert f"{reply.id}/withdraw" not in alice.get("/connections").text
    assert world.log[-2]["outcome"] == "withdrawn"


def test_withdrawing_twice_is_harmless(world: World) -> None:
    """A double click, a second apart."""
    world.allow()
    alice = world.browser("alice")
    page = alice.get("/connections")
    statuses = []
    for _ in range(2):
        statuses.append(alice.submit(page, "/withdraw").status_code)
        world.clock.now += 1

    assert statuses == [303, 303]
    assert world.log[-1]["outcome"] == "nothing"


def test_withdrawing_needs_our_form_for_this_yes(world: World) -> None:
    """CSRF; a token for one ends no other, and nobody withdraws for somebody else."""
    world.allow(tool="reply")
    world.allow(tool="deploy")
    alice = world.browser("alice")
    ids = [each.id for each in world.approvals.list(ALICE.user, now=NOW)]
    page = alice.get("/connections")
    form, other = (form_of(page, f"{id}/withdraw") for id in ids)

    assert alice.post(form.action, {"csrf_token": ""}).status_code == 403
    assert alice.post(form.action, other.fields).status_code == 403
    assert alice.post(form.action, form.fields, sec_fetch_site="cross-site").status_code == 403
    assert world.browser().post(form.action, form.fields).status_code == 403
    assert world.browser("bob").post(form.action, form.fields).status_code == 403
    assert alice.get(form.action).status_code == 405
    assert world.is_allowed(tool="reply")
    assert world.is_allowed(tool="deploy")


@pytest.mark.parametrize("id", ["%00", "..", "a" * 42, "a" * 44, "%2e%2e%2fx"])
def test_an_approval_that_cannot_be_one_is_404(world: World, id: str) -> None:
    """Before any store is asked."""
    assert world.browser("alice").post(f"/connections/approvals/{id}/withdraw").status_code == 404
