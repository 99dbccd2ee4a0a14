"""Links, forms, callbacks and sessions in the wrong hands, and the wrong way round."""

import secrets
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from typing import Final
from urllib.parse import urlencode, urlsplit

import httpx2
import pytest

from infra.local.identity.scripted_browser import forms_of
from infra.local.provider import Fault, Kind, approve
from tests.hostile.laboratory import Laboratory
from tests.hostile.links import ACCOUNTS, Browser, Link, asked, browser, exchanges, query, text
from tests.hostile.rows import shows

DONE: Final = "Local Hub is connected"
HEADERS: Final = {
    "cache-control": "no-store",
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
}


@pytest.fixture(autouse=True)
def empty(lab: Laboratory) -> None:
    """Nobody is connected or signed in, and no link is open."""
    lab.store.admin.flushall()
    lab.stack.hub.behave()


@pytest.fixture
def alice_at(lab: Laboratory) -> Iterator[Browser]:
    with browser(lab, "alice") as opened:
        yield opened
        for page in opened.seen:
            assert_safe(page)


@pytest.fixture
def bob_at(lab: Laboratory) -> Iterator[Browser]:
    with browser(lab, "bob") as opened:
        yield opened
        for page in opened.seen:
            assert_safe(page)


def assert_safe(page: httpx2.Response) -> None:
    """What every page of ours carries, whatever it says; and what none says."""
    assert page.status_code < 500, page.text
    assert "Traceback" not in page.text
    if page.headers.get("content-type") == "application/json":
        return
    for name, value in HEADERS.items():
        assert page.headers[name] == value, f"{page.url}: {name}"
    assert page.headers["content-security-policy"].startswith("default-src 'none'; style-src 'self'; frame-ancestors")
    for cookie in page.headers.get_list("set-cookie"):
        assert "; HttpOnly; SameSite=Lax" in cookie
        assert "; Path=/;" in cookie
    assert "<script" not in page.text


@shows(115)
def test_a_second_call_gets_the_same_link(lab: Laboratory) -> None:
    """One live flow for each user, client and provider: nobody collects links."""
    first = asked(lab, client_id="twice")
    assert asked(lab, client_id="twice").url == first.url


@pytest.mark.parametrize(
    "path",
    [
        "/connect/" + "A" * 42,
        "/connect/" + "A" * 44,
        "/connect/" + "A" * 43,
        "/connect/" + "A" * 42 + "%00",
        "/connect/" + "A" * 42 + "%C3",
        "/connect/" + "A" * 42 + ".",
        "/connect/" + "%41" * 42 + "=",
        "/connect/",
        "/connect/" + "A" * 43 + "/",
        "/connect/" + "A" * 43 + "/start/x",
        "/connect/" + "A" * 9000,
    ],
)
@shows(116)
def test_a_link_that_is_none_is_not_found(lab: Laboratory, path: str) -> None:
    """Row 116: unknown, and of any other shape. Nobody has to sign in to be told."""
    with browser(lab) as nobody:
        page = nobody.get(path)
        assert page.status_code in (404, 405), page.text
        if "x-content-type-options" in page.headers and page.headers["content-type"].startswith("text/html"):
            assert_safe(page)


@shows(116)
def test_a_link_that_has_expired_is_not_found(lab: Laboratory, alice_at: Browser) -> None:
    """Row 116: 404 or 410, and its client gets a new one."""
    link = asked(lab)
    lab.store.admin.delete(*lab.store.admin.keys("mcp:flow:*"))
    assert alice_at.get(link.url).status_code in (404, 410)
    assert not link.is_open()


@shows(118)
def test_somebody_else_at_the_link_changes_nothing(lab: Laboratory, alice_at: Browser, bob_at: Browser) -> None:
    """MUST: client/elicitation, Phishing. Who starts it must be who finishes it."""
    link = asked(lab)
    page = bob_at.get(link.url)
    assert page.status_code == 403
    assert "location" not in page.headers
    assert lab.stack.hub.url not in page.text
    for personal in ("alice", "Alice", "Local Hub"):
        assert personal not in page.text
    for step in ("start", "decline", "secret"):
        assert bob_at.post(f"/connect/{link.handle}/{step}", {"csrf_token": "x"}).status_code == 403
    assert link.is_open()
    assert alice_at.finish(link)[-1] == DONE
    assert link.is_connected()


@shows(119)
def test_a_form_that_no_page_of_ours_sent_is_refused(lab: Laboratory, alice_at: Browser, bob_at: Browser) -> None:
    """Row 119: without a session, without the token, with another's, from another site."""
    link, others = asked(lab), asked(lab, "bob")
    form = alice_at.form(link)
    token = form.hidden["csrf_token"]
    bobs = bob_at.form(others).hidden["csrf_token"]
    with browser(lab) as nobody:
        refused = [
            nobody.post(form.action, form.hidden),
            alice_at.post(form.action, {"other": "x"}),
            alice_at.post(form.action, {"csrf_token": ""}),
            alice_at.post(form.action, {"csrf_token": bobs}),
            alice_at.post(form.action, {"csrf_token": token[:-1]}),
            alice_at.post(f"/connect/{others.handle}/start", form.hidden),
            alice_at.post(form.action, form.hidden, sec_fetch_site="cross-site"),
            alice_at.post(form.action, form.hidden, sec_fetch_site="same-site"),
            alice_at.post(form.action, form.hidden, sec_fetch_site="", origin="https://evil.example"),
            alice_at.post(form.action, form.hidden, sec_fetch_site="", origin="null"),
            alice_at.post("/connections/provider:hub/disconnect", form.hidden),
            alice_at.post("/auth/sign-out", form.hidden),
        ]
        for page in refused:
            assert page.status_code == 403, page.text
            assert "location" not in page.headers
            assert_safe(page)
    assert alice_at.get(form.action).status_code == 405
    for name, value in (("content-type", "application/json"), ("content-type", "text/plain")):
        page = alice_at.http.post(lab.url + form.action, content=urlencode(form.hidden), headers={name: value})
        assert page.status_code == 415
    doubled = f"csrf_token={token}&csrf_token={token}"
    media_type = {"content-type": "application/x-www-form-urlencoded"}
    assert alice_at.http.post(lab.url + form.action, content=doubled, headers=media_type).status_code == 400
    huge = alice_at.http.post(lab.url + form.action, content=f"csrf_token={'x' * 40_000}", headers=media_type)
    assert huge.status_code == 413
    assert link.is_open()
    assert alice_at.finish(link)[-1] == DONE


@shows(121)
def test_a_callback_in_another_browser_exchanges_nothing(lab: Laboratory, alice_at: Browser, bob_at: Browser) -> None:
    """Row 121, phishing the other way round: she approves, and lets somebody else's browser come back."""
    link = asked(lab)
    returning = alice_at.callback(link)
    before = exchanges(lab)
    with browser(lab) as nobody, browser(lab, "alice") as second:
        assert bob_at.get(returning).status_code == 403
        assert nobody.get(returning).status_code == 403
        assert nobody.get(returning, cookie=f"mcp_sid={secrets.token_urlsafe(32)}").status_code == 403
        assert nobody.get(returning, cookie="mcp_sid=a; mcp_sid=b").status_code == 403
        # Her own other browser is another one too.
        assert second.get(returning).status_code == 403
    assert exchanges(lab) == before
    assert link.is_open()
    assert alice_at.get(returning).status_code == 303
    assert link.is_connected()


@shows(122)
def test_fifty_callbacks_at_once_are_one_exchange(lab: Laboratory, alice_at: Browser) -> None:
    """Row 122: the code is exchanged once, whoever reloads the page."""
    link = asked(lab)
    returning = alice_at.callback(link)
    before = exchanges(lab)
    headers = {"cookie": "; ".join(f"{name}={value}" for name, value in alice_at.http.cookies.items())}
    with ThreadPoolExecutor(16) as threads:
        sent = [threads.submit(httpx2.get, returning, headers=headers, trust_env=False, timeout=30) for _ in range(50)]
        pages = [each.result() for each in sent]
    assert exchanges(lab) == before + 1
    assert [page.status_code for page in pages].count(303) == 1
    # 503 says that the store was too busy for a moment: this computer's doing, and told as it should be.
    assert {page.status_code for page in pages if "retry-after" not in page.headers} <= {200, 303, 400}
    assert link.is_connected()
    again = alice_at.get(returning)
    assert again.status_code == 200
    assert "already" in again.text.lower() or DONE in again.text
    assert exchanges(lab) == before + 1


@shows(124)
def test_a_callback_at_another_providers_path_exchanges_nothing(lab: Laboratory, alice_at: Browser) -> None:
    """Row 124, RFC 9700 section 4.4.2.2: the path says whose response it is."""
    link = asked(lab)
    returning = alice_at.callback(link)
    before = exchanges(lab)
    for provider, status in (("other", 400), ("unknown", 400), ("..%2fhub", 404), ("hub%00", 404)):
        page = alice_at.get(returning.replace("/callback/hub", f"/callback/{provider}"))
        assert page.status_code == status, page.text
    assert exchanges(lab) == before
    # The state is spent by then, at the wrong path; the link is good for another try.
    assert link.is_open()
    assert alice_at.finish(link)[-1] == DONE


@shows(125)
def test_a_callback_whose_parameters_are_doubled_missing_or_huge_touches_nothing(
    lab: Laboratory, alice_at: Browser
) -> None:
    """Row 125; RFC 6749 section 3.1: a parameter comes once."""
    link = asked(lab)
    returning = alice_at.callback(link)
    base, given = returning.partition("?")[0], query(returning)
    before = exchanges(lab)
    spoiled = [
        returning + "&state=x",
        returning + "&code=x",
        returning + f"&iss={given['iss']}",
        returning + "&padding=" + "x" * 8500,
        returning + "".join(f"&f{number}=1" for number in range(60)),
        f"{base}?{urlencode({**given, 'code': ''})}",
        f"{base}?{urlencode({name: value for name, value in given.items() if name != 'code'})}",
        f"{base}?{urlencode({name: value for name, value in given.items() if name != 'state'})}",
        f"{base}?{urlencode({**given, 'state': given['state'] + 'x'})}",
        f"{base}?{urlencode({**given, 'state': given['state'].split('.')[0]})}",
        f"{base}?{urlencode({**given, 'error': 'access_denied'})}",
        f"{base}?{urlencode(given)}&code%00=1&%ff=%ff",
        base,
        f"{base}?",
    ]
    for url in spoiled:
        page = alice_at.get(url)
        assert page.status_code == 400, f"{url}: {page.text}"
    assert exchanges(lab) == before
    assert link.is_open()
    assert alice_at.get(returning).status_code == 303
    assert link.is_connected()


@shows(127)
def test_a_denial_ends_the_call_and_says_so(lab: Laboratory, alice_at: Browser) -> None:
    """Row 127: the model is told who said no."""
    link = asked(lab)
    returning = approve(alice_at.start(link), user=ACCOUNTS["alice"], allow=False)
    page = alice_at.get(returning)
    assert page.status_code == 200
    answer = link.retry()
    assert answer.result["isError"] is True
    assert "said no" in text(answer)


@pytest.mark.parametrize("error", ["<script>alert(1)</script>", "server_error", "access_denied\r\nSet-Cookie: a=b"])
@shows(127)
def test_no_error_of_a_third_party_is_repeated_on_a_page(lab: Laboratory, alice_at: Browser, error: str) -> None:
    """Row 127: whoever made the URL wrote it."""
    link = asked(lab)
    state = query(alice_at.start(link))["state"]
    given = {"state": state, "error": error, "error_description": error, "iss": lab.stack.hub.url}
    page = alice_at.get(f"/oauth/callback/hub?{urlencode(given)}")
    assert page.status_code in (200, 400)
    assert "alert(1)" not in page.text
    assert "set-cookie" not in page.headers
    assert link.retry().status == 200


@shows(128)
def test_no_parameter_says_where_to_go(lab: Laboratory, alice_at: Browser) -> None:
    """Row 128: every Location is built from the configuration."""
    link = asked(lab)
    evil = urlencode(dict.fromkeys(("return_to", "next", "redirect_uri", "url", "link"), "https://evil.example"))
    with browser(lab) as nobody:
        pages = [nobody.get(f"{path}?{evil}") for path in (f"/connect/{link.handle}", "/connections", "/connect/done")]
        pages += [alice_at.get(f"{path}?{evil}") for path in (f"/connect/{link.handle}", "/connections", "/nothing")]
        form = alice_at.form(link)
        pages.append(alice_at.post(f"{form.action}?{evil}", {**form.hidden, "redirect_uri": "https://evil.example"}))
    for page in pages:
        assert "evil.example" not in page.text
        assert "evil.example" not in str(page.headers)
    assert {urlsplit(page.headers["location"]).netloc for page in pages if "location" in page.headers} <= {
        urlsplit(each).netloc for each in (lab.url, lab.stack.identity.url, lab.stack.hub.url)
    }


@shows(130)
def test_the_way_to_the_third_party_says_nothing_about_the_user(lab: Laboratory, alice_at: Browser) -> None:
    """Row 130; RFC 9700 section 2.1.1. That the verifier fits the challenge is the third party's to check: it did."""
    link = asked(lab)
    url = alice_at.start(link)
    given = query(url)
    assert given["code_challenge_method"] == "S256"
    assert len(given["code_challenge"]) == 43
    assert len(given["state"].rpartition(".")[2]) >= 43
    assert given["redirect_uri"] == f"{lab.url}/oauth/callback/hub"
    assert set(given["scope"].split()) == {"repo:read", "user:read"}
    for secret in (*lab.tokens, link.handle, "alice", "@"):
        assert secret not in url
    # A second start makes the first one's state worthless.
    second = query(alice_at.start(link))
    assert second["state"] != given["state"]
    assert second["code_challenge"] != given["code_challenge"]
    stale = f"/oauth/callback/hub?{urlencode({'code': 'x', 'state': given['state'], 'iss': lab.stack.hub.url})}"
    assert alice_at.get(stale).status_code == 400


@shows(131)
def test_no_secret_is_in_an_answer_a_link_the_store_or_the_log(lab: Laboratory, alice_at: Browser) -> None:
    """Row 131, and the stolen dump of the store."""
    ledger = lab.stack.hub.server.ledger
    link = asked(lab)
    returning = alice_at.callback(link)
    assert alice_at.get(returning).status_code == 303
    answer = link.retry()
    assert "garden-plans" in text(answer)
    tokens = [*ledger.access_tokens, *ledger.refresh_tokens]
    cookies = [value for value in alice_at.http.cookies.values() if len(value) > 20]
    given = query(returning)
    assert tokens
    assert cookies
    assert link.url.rpartition("/")[0] == f"{lab.url}/connect"
    log, dump = "\n".join(lab.stack.emulator.logs()), lab.store.dump()
    for secret in (*tokens, *cookies, given["code"], given["state"], *lab.tokens):
        assert secret not in answer.text
        assert secret not in log
        assert secret not in dump
    assert link.handle not in log
    assert link.handle not in dump
    assert "alice" not in dump
    assert not lab.stack.hub.record.any_jwt


@shows(133)
def test_a_connected_user_who_cancels_stops_this_call_and_not_the_next(lab: Laboratory, alice_at: Browser) -> None:
    """Row 133: cancel means cancel, though nothing is missing any more."""
    link = asked(lab)
    alice_at.finish(link)
    cancelled = link.retry("cancel")
    assert cancelled.result["isError"] is True
    assert "garden-plans" not in text(cancelled)
    assert link.is_connected()


@shows(134)
def test_a_sealed_record_opens_in_its_own_place_only(lab: Laboratory, alice_at: Browser, bob_at: Browser) -> None:
    """Row 134: whoever may write to the store cannot give one user another's account."""
    admin = lab.store.admin
    # One client for both: it is not her consent that keeps him out.
    link, bobs = asked(lab, client_id="shared"), asked(lab, "bob", client_id="shared")
    bob_at.finish(bobs)
    (bobs_vault,) = admin.keys("mcp:vault:*")
    alice_at.finish(link)
    (alices_vault,) = (key for key in admin.keys("mcp:vault:*") if key != bobs_vault)
    alices, was = admin.hgetall(alices_vault), admin.hgetall(bobs_vault)
    assert link.is_connected()
    damaged = {entry: value[:-8] + "AAAAAAAA" for entry, value in was.items()}
    for planted in (alices, damaged, dict.fromkeys(was, "x"), dict.fromkeys(was, ""), dict.fromkeys(was, "v1:" * 9000)):
        admin.hset(bobs_vault, mapping=planted)
        answer = bobs.retry()
        assert answer.result["resultType"] == "input_required", answer.text
        assert bob_at.get("/connections").status_code == 200
    admin.hset(bobs_vault, mapping=was)
    assert link.is_connected()


@shows(136)
def test_a_disconnection_during_a_refresh_is_final(lab: Laboratory, alice_at: Browser) -> None:
    """Row 136: a slow refresh does not bring back what the user has ended."""
    link = asked(lab)
    alice_at.finish(link)
    (form,) = (
        each for each in _forms(alice_at, "/connections") if each[0].endswith("/disconnect") and "hub" in each[0]
    )
    record = lab.stack.hub.record
    before = len(record.at("/revoke"))
    refreshes = _refreshes(lab)
    lab.stack.hub.misbehave(Kind.REFRESH, Fault.HANG)
    with ThreadPoolExecutor(1) as thread:
        slow = thread.submit(link.retry)
        while _refreshes(lab) == refreshes:
            if wait([slow], timeout=0.05).done:
                # The token was not old enough yet.
                slow = thread.submit(link.retry)
        assert alice_at.post(form[0], form[1]).status_code == 303
        lab.stack.hub.behave()
        slow.result()
    # The refresh token and the access token, each once.
    assert len(record.at("/revoke")) == before + 2
    assert not any(lab.store.admin.hkeys(key) for key in lab.store.admin.keys("mcp:vault:*"))
    assert link.retry().result["resultType"] == "input_required"


def _refreshes(lab: Laboratory) -> int:
    return sum(each.grant_type == "refresh_token" for each in lab.stack.hub.record.at("/token"))


def _forms(opened: Browser, path: str) -> list[tuple[str, dict[str, str]]]:
    return [(form.action, form.hidden) for form in forms_of(opened.get(path).text)]


@shows(137)
def test_a_second_client_of_a_connected_user_needs_her_consent(lab: Laboratory, alice_at: Browser) -> None:
    """Row 137: a grant is for the client that she approved it for."""
    alice_at.finish(asked(lab))
    second = asked(lab)
    assert second.asked["resultType"] == "input_required"
    before = exchanges(lab)
    form = alice_at.form(second)
    assert alice_at.post(form.action, form.hidden).status_code == 303
    assert exchanges(lab) == before
    assert second.is_connected()


@shows(139)
def test_a_store_that_has_lost_everything_leads_to_a_new_link(lab: Laboratory, alice_at: Browser) -> None:
    """Row 139: the old callback is refused, and the client's next request has a new way."""
    link = asked(lab)
    returning = alice_at.callback(link)
    before = exchanges(lab)
    lab.store.admin.flushall()
    assert alice_at.get(returning).status_code in (400, 403)
    assert exchanges(lab) == before
    again = link.retry().result
    assert Link(lab, link.draft, again).url != link.url


@shows(140)
def test_a_store_that_has_forgotten_the_scripts_is_sent_them_again(lab: Laboratory, alice_at: Browser) -> None:
    """Row 140: NOSCRIPT in the middle of a flow."""
    link = asked(lab)
    lab.store.admin.script_flush()
    returning = alice_at.callback(link)
    lab.store.admin.script_flush()
    assert alice_at.get(returning).status_code == 303
    lab.store.admin.script_flush()
    assert link.is_connected()


@shows(142)
def test_all_of_this_ran_on_a_store_in_cluster_mode(lab: Laboratory, alice_at: Browser) -> None:
    """Row 142: no script and no command touched two slots."""
    assert lab.store.admin.info("cluster")["cluster_enabled"] == 1
    lab.store.admin.config_resetstat()
    link = asked(lab)
    alice_at.finish(link)
    assert link.is_connected()
    errors = lab.store.admin.info("errorstats")
    assert not {"errorstat_CROSSSLOT", "errorstat_MOVED"} & errors.keys(), errors


@shows(143)
def test_a_sixth_open_link_of_one_user_is_refused(lab: Laboratory) -> None:
    """Row 143: whoever holds many clients cannot flood the user either."""
    links = [asked(lab, "flooded") for _ in range(5)]
    assert len({link.url for link in links}) == 5
    sixth = asked(lab, "flooded").asked
    assert sixth["isError"] is True
    assert "Too many links" in sixth["content"][0]["text"]
    assert links[0].is_open()
    assert asked(lab, "another").asked["resultType"] == "input_required"
