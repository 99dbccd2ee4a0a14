"""Keys are added, promoted, retired and lost under a running deployment: real environments, and a moved clock."""

import subprocess
import sys
import time
from base64 import urlsafe_b64decode
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from app.adapters.stale_if_error import COOLDOWN, HELD_COOLDOWN, MAX_FRESH
from infra.key_rotation import OUTLIVED, READ_BY_ALL
from tests.infra.aws_server import REGION, AwsServer, aws_server
from tests.infra.deployed import APP, ROOT, Answer, Deployed, deployed

pytestmark = pytest.mark.slow

FLOWS = 500
STEP = 120
"""Seconds between two waves of users; a flow is answered four waves later, before its 10 minutes are over."""
FROZEN = {
    "code": -32602,
    "message": "Invalid or expired requestState",
    "data": {"reason": "invalid_request_state"},
}


@pytest.fixture(scope="module")
def aws() -> Iterator[AwsServer]:
    with aws_server() as server:
        yield server


def kid_of(state: str) -> int:
    """The key that sealed a state: the first four bytes behind the prefix (app/sealing.py)."""
    return int.from_bytes(urlsafe_b64decode(state[4:12])[:4], "big")


def declined(answer: Answer) -> bool:
    """The flow reached its end, and the user's answer counted."""
    return answer.status == 200 and "The user declined" in answer.json["result"]["content"][0]["text"]


def frozen(answer: Answer) -> bool:
    return answer.status == 400 and answer.json["error"] == FROZEN


class Users:
    """A crowd: each wave of it begins flows, and answers those that were begun four waves before."""

    def __init__(self, deployment: Deployed, threads: ThreadPoolExecutor) -> None:
        self.deployment = deployment
        self.waiting: list[str] = []
        self._threads = threads
        self._wave = FLOWS // 4
        self.sealed_by: set[int] = set()
        while len(self.waiting) < FLOWS:
            self._begin()

    def wave(self) -> None:
        oldest, self.waiting = self.waiting[: self._wave], self.waiting[self._wave :]
        self.finish(oldest)
        self._begin()
        self.deployment.clock.advance(STEP)

    def finish(self, states: list[str]) -> None:
        lost = [answer.body for answer in self._threads.map(self.deployment.finish, states) if not declined(answer)]
        assert not lost

    def _begin(self) -> None:
        begun = [answer.state for answer in self._threads.map(lambda _: self.deployment.begin(), range(self._wave))]
        self.sealed_by = set(map(kid_of, begun))
        self.waiting += begun


def test_no_flow_is_lost_while_a_key_is_added_promoted_and_retired(aws: AwsServer, tmp_path: Path) -> None:
    """SECURITY 2.6: 500 flows are in flight at every moment, over three environments with lists of different age."""
    with deployed(tmp_path, aws, environments=3) as running, ThreadPoolExecutor(8) as threads:
        users = Users(running, threads)
        assert users.sealed_by == {2}
        running.keys("add", "--apply")
        for _ in range(READ_BY_ALL // STEP):
            users.wave()
            assert users.sealed_by == {2}
        running.keys("promote", 3, "--apply")
        waves = 0
        while users.sealed_by != {3}:
            users.wave()
            waves += 1
        assert waves * STEP <= MAX_FRESH + STEP
        for _ in range(4):
            users.wave()
        # Nothing that is in flight was sealed by the old key any more; the rest of the hour is for the oldest flow.
        running.clock.advance(OUTLIVED)
        users.waiting.clear()
        users._begin()
        running.keys("retire", 2, "--apply")
        users.finish(users.waiting)
        # Each environment reads the list and unwraps two keys, every ten minutes: never for a token.
        assert aws.asked.count("Decrypt") < 60


def test_a_compromised_key_is_gone_after_eleven_minutes_and_its_flows_start_over(
    aws: AwsServer, tmp_path: Path
) -> None:
    """SECURITY 2.6 and 2.7: in-flight states get the one frozen error, and the log says why."""
    with deployed(tmp_path, aws) as running:
        assert {kid_of(running.begin().state) for _ in range(4)} == {2}
        running.keys("add", "--apply")
        running.keys("promote", 3, "--compromised", "--apply")
        running.keys("retire", 2, "--compromised", "--apply")
        running.clock.advance(MAX_FRESH / 2)
        # Nobody has read the list again: that is what the waits of an ordinary rotation are for.
        states = [running.begin().state for _ in range(4)]
        assert set(map(kid_of, states)) == {2}
        running.clock.advance(MAX_FRESH / 2)
        assert all(frozen(running.finish(state)) for state in states)
        assert any("requestState refused: kid" in line for line in running.emulator.logs())
        begun = running.begin()
        assert kid_of(begun.state) == 3
        assert declined(running.finish(begun.state))


def test_an_environment_that_knows_an_older_ring_finds_the_new_key(aws: AwsServer, tmp_path: Path) -> None:
    """A promotion in a hurry: what one environment seals, the other opens as soon as its list is a minute old."""
    with deployed(tmp_path, aws) as running:
        assert {kid_of(running.begin().state) for _ in range(4)} == {2}
        running.keys("add", "--apply")
        running.keys("promote", 3, "--compromised", "--apply")
        running.clock.advance(HELD_COOLDOWN)
        running.emulator.kill(running.emulator.environments()[0].name)
        sealed: dict[int, str] = {}
        until = time.time() + 30
        while set(sealed) != {2, 3} and time.time() < until:
            state = running.begin().state
            sealed[kid_of(state)] = state
        assert set(sealed) == {2, 3}
        for _ in range(4):
            assert declined(running.finish(sealed[3]))


@pytest.mark.parametrize(
    ("operation", "code", "told"),
    [
        ("Decrypt", "DisabledException", "is disabled: enable it"),
        ("Decrypt", "AccessDeniedException", "the role lacks kms:Decrypt on arn:aws:kms:"),
        ("GetSecretValue", "AccessDeniedException", "the role lacks secretsmanager:GetSecretValue on roundtrip-"),
        ("GetSecretValue", "ResourceNotFoundException", "there is no secret roundtrip-"),
        ("Decrypt", "KMSInternalException", "kms: KMSInternalException"),
    ],
)
def test_without_keys_what_needs_none_is_answered_and_the_rest_says_when_to_come_back(
    aws: AwsServer, tmp_path: Path, operation: str, code: str, told: str
) -> None:
    """Discovery, lists, metadata and calls of one round seal nothing. The log names the remedy, the wire nothing."""
    with deployed(tmp_path, aws, environments=1) as running:
        aws.refuses[operation] = code
        try:
            refused = running.begin()
        finally:
            aws.refuses.clear()
        assert refused.status == 503
        assert 1 <= int(refused.headers["retry-after"]) <= 5
        assert refused.json == {"error": "temporarily_unavailable"}
        assert any(told in line for line in running.emulator.logs())
        needs_no_key: list[Callable[[], Answer]] = [
            lambda: running.request("server/discover", {}),
            lambda: running.request("tools/list", {}),
            lambda: running.send("GET", "/.well-known/oauth-protected-resource"),
            lambda: running.begin("no such report"),
        ]
        assert [ask().status for ask in needs_no_key] == [200] * 4
        assert running.begin().status == 503
        running.clock.advance(COOLDOWN)
        assert declined(running.finish(running.begin().state))


def test_a_deployment_begins_to_work_when_its_ring_is_made(aws: AwsServer, tmp_path: Path) -> None:
    """infra/keys.yaml makes the secret with `{}`; the first request says what is missing."""
    with deployed(tmp_path, aws, environments=1, ring=False) as running:
        assert running.begin().status == 503
        assert any("python -m infra.keys create" in line for line in running.emulator.logs())
        running.create_ring()
        running.clock.advance(COOLDOWN)
        assert declined(running.finish(running.begin().state))


# SnapStart


@pytest.mark.parametrize("handler", sorted(path.stem for path in (ROOT / "handlers").glob("[!_]*.py")))
def test_importing_a_handler_asks_aws_for_nothing(aws: AwsServer, handler: str) -> None:
    """SECURITY 2.6: no key is unwrapped at import. botocore alone would take half a second of it."""
    aws.asked.clear()
    environment = {
        "AWS_ENDPOINT_URL": aws.url,
        "AWS_REGION": REGION,
        "AWS_ACCESS_KEY_ID": "local",
        "AWS_SECRET_ACCESS_KEY": "local",
        "MCP_RESOURCE_URL": "https://mcp.example.com/mcp",
        "MCP_ISSUER": "https://login.example.com",
        "MCP_SEALING_SECRET": "roundtrip-keys",
        "MCP_KMS_KEY": "arn:aws:kms:us-east-1:111122223333:key/1234abcd",
        "MCP_SEALING_APP": APP,
        "MCP_REDIS_URL": "rediss://cache.example.com:6379",
        "MCP_OIDC_CLIENT_ID": "web",
    }
    program = f"import sys, handlers.{handler}; print('botocore' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, env=environment, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "False\n", "")
    assert aws.asked == []


def test_nothing_is_fetched_before_a_request_needs_it(aws: AwsServer, tmp_path: Path) -> None:
    """SECURITY 2.6: a key that was unwrapped in INIT would be in the snapshot."""
    with deployed(tmp_path, aws, snapstart=True) as running:
        assert running.request("tools/list", {}).status == 200
        assert aws.asked == []
        states = [running.begin().state for _ in range(4)]
        assert aws.asked == ["GetSecretValue", "Decrypt"] * 2
        running.emulator.restart()
        assert all(declined(running.finish(state)) for state in states)
        assert aws.asked == ["GetSecretValue", "Decrypt"] * 4


def test_what_was_fetched_before_the_snapshot_is_fetched_anew_after_the_restore(aws: AwsServer, tmp_path: Path) -> None:
    """Lambda, SnapStart, Runtime hooks: here the function was primed, so that there is something to forget."""
    with deployed(tmp_path, aws, environments=1, snapstart=True, primed=True) as running:
        assert aws.asked == ["GetSecretValue", "Decrypt"]
        before = len(running.issuer.fetched)
        assert declined(running.finish(running.begin().state))
        assert aws.asked == ["GetSecretValue", "Decrypt"] * 2
        assert len(running.issuer.fetched) == 2 * before > 0


def test_without_a_snapshot_a_primed_function_keeps_what_it_fetched(aws: AwsServer, tmp_path: Path) -> None:
    """The hooks run around a snapshot only."""
    with deployed(tmp_path, aws, environments=1, primed=True) as running:
        assert declined(running.finish(running.begin().state))
        assert aws.asked == ["GetSecretValue", "Decrypt"]
