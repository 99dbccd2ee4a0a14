"""`python -m infra.keys` on moto: what it says, what it writes, and what two operators do to each other."""

import os
import re
import secrets
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from botocore.session import get_session
from botocore.stub import Stubber
from moto import mock_aws

from app.adapters.kms import KmsKeyring
from app.adapters.wrapped_keyring import WrappedKeyring
from infra import key_rotation, keys
from infra.key_rotation import OUTLIVED, READ_BY_ALL
from infra.key_store import KeyStore, Raced, StoredRing

ROOT = Path(__file__).parent.parent.parent
APP = "roundtrip-prod"
NOW = 1_790_000_000


class Console:
    """An operator at a terminal, with a clock, and what was asked of AWS."""

    def __init__(self, capsys: pytest.CaptureFixture[str], clients: dict[str, Any], asked: list[str]) -> None:
        self._capsys = capsys
        self.now = NOW
        self.asked = asked
        self.secrets, self.kms = clients["secretsmanager"], clients["kms"]
        self.secret_id = f"{APP}-{secrets.token_hex(4)}"
        self.kms_key: str = self.kms.create_key()["KeyMetadata"]["Arn"]
        self.secrets.create_secret(Name=self.secret_id)
        self.store = KeyStore(self.secret_id, secrets=self.secrets, kms=self.kms)
        asked.clear()

    def __call__(self, *words: object) -> str:
        """Run a command that works."""
        status = keys.main([*map(str, words), "--secret", self.secret_id], now=self.now)
        told = self._capsys.readouterr()
        assert (status, told.err) == (0, "")
        return told.out

    def refused(self, *words: object) -> str:
        """Run a command that is refused: nothing is written."""
        before = self.stored()
        status = keys.main([*map(str, words), "--secret", self.secret_id], now=self.now)
        told = self._capsys.readouterr()
        assert (status, told.out) == (1, "")
        assert self.stored() == before
        return told.err

    def create(self) -> str:
        return self("create", "--app", APP, "--kms-key", self.kms_key, "--apply")

    def stored(self) -> StoredRing:
        return self.store.read()

    @property
    def ring(self) -> WrappedKeyring:
        ring = self.stored().ring
        assert ring is not None
        return ring


@pytest.fixture(scope="module")
def aws() -> Iterator[tuple[dict[str, Any], list[str]]]:
    """moto's clients, and the operations that any client called."""
    asked: list[str] = []
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith(("AWS_", "MCP_"))]:
            patch.delenv(name)
        patch.setenv("AWS_DEFAULT_REGION", "eu-central-1")
        with mock_aws():
            session = get_session()
            session.register("before-call", lambda model, **_: asked.append(model.name))
            patch.setattr("botocore.session.get_session", lambda: session)
            patch.setattr(f"{__name__}.get_session", lambda: session)
            yield {service: session.create_client(service) for service in ("kms", "secretsmanager")}, asked


@pytest.fixture
def console(capsys: pytest.CaptureFixture[str], aws: tuple[dict[str, Any], list[str]]) -> Console:
    return Console(capsys, *aws)


def test_a_rotation_at_the_terminal(console: Console) -> None:
    """Each step says the next one, and when."""
    assert "MCP_SEALING_APP=roundtrip-prod" in console.create()
    added = console("add", "--apply")
    assert "Done: add key 3" in added
    following = f"python -m infra.keys promote 3 --secret {console.secret_id} --apply"
    assert f"Then, at 2026-09-21 14:25:20 UTC or later: {following}\n" in added
    console.now += READ_BY_ALL
    promoted = console("promote", 3, "--apply")
    assert "retire 2 --secret" in promoted
    console.now += OUTLIVED
    assert "drop 2 --secret" in console("retire", 2, "--apply")
    console("drop", 2, "--apply")
    assert [(key.kid, key.state.value) for key in console.ring.keys] == [(3, "mint")]


def test_what_it_makes_a_function_can_unwrap(console: Console) -> None:
    """The encryption context of both ends is one function."""
    console.create()
    console("add", "--apply")
    ring = KmsKeyring(console.secret_id, console.kms_key, APP)
    other = ring.get(3)
    assert other is not None
    assert len({ring.current.secret, ring.pepper.secret, other.secret}) == 3


def test_nobody_sees_a_key(console: Console) -> None:
    """AWS KMS: GenerateDataKeyWithoutPlaintext. What is never here cannot be printed."""
    console.create()
    console("add", "--apply")
    assert {name for name in console.asked if "Secret" not in name} == {"GenerateDataKeyWithoutPlaintext"}


@pytest.mark.parametrize("step", ["create", "add", "promote 3", "retire 3", "restore 4", "drop 4"])
def test_nothing_is_written_without_apply(console: Console, step: str) -> None:
    """A dry run makes no key either: each one costs, and is in CloudTrail."""
    options: list[str] = []
    if step == "create":
        options = ["--app", APP, "--kms-key", console.kms_key]
    else:
        console.create()
        console("add", "--apply")
        console("add", "--apply")
        console.now += OUTLIVED
        console("retire", 4, "--apply")
    before = console.stored()
    console.asked.clear()
    told = console(*step.split(), *options)
    assert told.startswith("Would ")
    assert told.endswith("Nothing is written: run it again with --apply.\n")
    assert set(console.asked) <= {"GetSecretValue", "DescribeSecret"}
    assert console.stored() == before


def test_an_unsafe_order_is_refused(console: Console) -> None:
    """With when it can be taken, or what to do instead."""
    console.create()
    console("add", "--apply")
    console.now += READ_BY_ALL - 1
    assert "in 1 s" in console.refused("promote", 3, "--apply")
    assert "add and promote another one first" in console.refused("retire", 2, "--apply")
    assert "add and promote another one first" in console.refused("retire", 2, "--apply", "--compromised")
    assert "the pepper" in console.refused("retire", 1, "--apply")
    assert "the pepper" in console.refused("drop", 1, "--apply")
    assert "retire 3 first" in console.refused("drop", 3, "--apply")
    assert "add a key to it" in console.refused("create", "--app", APP, "--kms-key", console.kms_key, "--apply")


def test_a_compromised_key_goes_at_once_and_the_price_is_said(console: Console) -> None:
    """SECURITY 2.6."""
    console.create()
    console("add", "--apply")
    assert "Then, at once: python -m infra.keys retire 2 --compromised" in console(
        "promote", 3, "--compromised", "--apply"
    )
    assert "is lost: those users start over" in console("retire", 2, "--compromised", "--apply")
    assert [key.state.value for key in console.ring.keys] == ["retired", "mint"]


def test_the_list_says_what_each_key_does_and_may_do_next(console: Console) -> None:
    """And no ciphertext, which would only be in the way."""
    console.create()
    console("add", "--apply")
    console("add", "--apply")
    console.now += OUTLIVED
    console("retire", 4, "--apply")
    told = console("list").splitlines()
    assert told[0] == f"The ring of {APP}, wrapped by {console.kms_key}"
    assert [line.split()[:2] for line in told[1:]] == [
        ["1", "pepper"],
        ["2", "mint"],
        ["3", "verify"],
        ["4", "retired"],
    ]
    assert "may be promoted now" in told[3]
    assert max(map(len, told)) < 160


def test_of_two_operators_at_once_the_second_is_told_and_no_key_is_lost(console: Console) -> None:
    """Secrets Manager, UpdateSecretVersionStage: it fails unless AWSCURRENT is on the version that it names."""
    console.create()
    seen = console.stored()
    assert seen.ring is not None
    first = key_rotation.add(seen.ring, console.store.new_key(console.kms_key, APP, 3), now=NOW)
    console.store.write(first, replaces=seen)
    second = key_rotation.add(seen.ring, console.store.new_key(console.kms_key, APP, 3), now=NOW)
    with pytest.raises(Raced, match="run the command again"):
        console.store.write(second, replaces=seen)
    assert console.ring == first
    console("add", "--apply")
    assert [key.kid for key in console.ring.keys] == [2, 3, 4]


def test_of_two_rings_that_are_made_at_once_one_stays(console: Console) -> None:
    """Secrets Manager, PutSecretValue: a ClientRequestToken with another content is ResourceExistsException."""
    seen = console.stored()
    assert seen == StoredRing(None, None)
    rings = [key_rotation.create(APP, console.kms_key, pepper=b"p", key=text, now=NOW) for text in (b"1", b"2")]
    console.store.write(rings[0], replaces=seen)
    with pytest.raises(Raced):
        console.store.write(rings[1], replaces=seen)
    assert console.ring == rings[0]


def test_a_secret_that_a_template_made_with_an_empty_object_can_be_used(console: Console) -> None:
    """AWS::SecretsManager::Secret with SecretString: '{}'."""
    console.secrets.put_secret_value(SecretId=console.secret_id, SecretString="{}")
    console.create()
    assert console.ring.mint.kid == 2


def test_a_secret_that_holds_something_else_is_left_alone(console: Console) -> None:
    """--secret names the secret of connections, say."""
    console.secrets.put_secret_value(SecretId=console.secret_id, SecretString='{"REDIS_URL": "rediss://x"}')
    status = keys.main(["create", "--secret", console.secret_id, "--app", APP, "--kms-key", console.kms_key, "--apply"])
    assert status == 1
    held = console.secrets.get_secret_value(SecretId=console.secret_id)["SecretString"]
    assert held == '{"REDIS_URL": "rediss://x"}'


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["list"], r"no ring yet: python -m infra\.keys create --secret \S+ --apply"),
        (["add", "--apply"], "no ring yet"),
        (["create", "--apply"], "give --stack, or --app and --kms-key"),
        (["create", "--apply", "--app", APP], "give --stack, or --kms-key"),
        (["create", "--apply", "--app", APP, "--kms-key", "alias/nothing"], "AWS refused: .*NotFoundException"),
    ],
)
def test_what_is_missing_is_named(console: Console, words: list[str], told: str) -> None:
    """STYLE 4.13."""
    assert re.search(told, console.refused(*words))


def test_a_secret_that_is_not_there_and_no_secret_are_told(
    aws: tuple[dict[str, Any], list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    """A typing error must not look like a ring that has to be made."""
    assert keys.main(["list", "--secret", "nowhere"]) == 1
    assert "ResourceNotFoundException" in capsys.readouterr().err
    assert keys.main(["list"]) == 1
    assert "Give --stack or --secret, or set MCP_SEALING_SECRET" in capsys.readouterr().err


def stack(name: str, outputs: dict[str, str]) -> dict[str, Any]:
    listed = [{"OutputKey": key, "OutputValue": value} for key, value in outputs.items()]
    described = {"StackName": name, "CreationTime": "2026-09-21", "StackStatus": "CREATE_COMPLETE", "Outputs": listed}
    return {"Stacks": [described]}


def test_a_stack_says_which_ring_and_which_key(
    console: Console, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """template.yaml, Outputs. The app is the stack's name, as in its MCP_SEALING_APP."""
    template = (ROOT / "template.yaml").read_text()
    assert "\n  KeyRingSecret:\n" in template
    assert "\n  SealingKey:\n" in template
    assert "MCP_SEALING_APP: !Ref AWS::StackName\n" in template
    session = get_session()
    real, cloudformation = session.create_client, session.create_client("cloudformation")
    monkeypatch.setattr(
        session, "create_client", lambda name: cloudformation if name == "cloudformation" else real(name)
    )
    with Stubber(cloudformation) as stub:
        outputs = {"KeyRingSecret": console.secret_id, "SealingKey": console.kms_key, "McpUrl": "https://x/mcp"}
        stub.add_response("describe_stacks", stack("prod", outputs), {"StackName": "prod"})
        assert keys.main(["create", "--stack", "prod", "--apply"], now=NOW) == 0
        assert (console.ring.app, console.ring.kms_key) == ("prod", console.kms_key)
        stub.add_response("describe_stacks", stack("prod", outputs), {"StackName": "prod"})
        assert keys.main(["add", "--stack", "prod"], now=NOW) == 0
        assert "promote 3 --stack prod --apply" in capsys.readouterr().out
        stub.add_response("describe_stacks", stack("other", {}), {"StackName": "other"})
        assert keys.main(["list", "--stack", "other"], now=NOW) == 1
        assert "has no output KeyRingSecret and no SealingKey" in capsys.readouterr().err


def test_it_runs_as_a_module() -> None:
    """`make keys` calls it so. The help lists every step."""
    done = subprocess.run(
        [sys.executable, "-m", "infra.keys", "--help"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert all(
        f"    {step} " in done.stdout for step in ("list", "create", "add", "promote", "retire", "restore", "drop")
    )
