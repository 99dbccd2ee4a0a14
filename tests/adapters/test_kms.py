"""The key ring of a deployment, on moto: what is asked of AWS and when, and what happens when AWS does not answer."""

import json
import logging
import os
import secrets
import socket
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest
from botocore.exceptions import ClientError
from botocore.session import get_session
from botocore.stub import Stubber
from moto import mock_aws

from app.adapters import aws_client
from app.adapters.aws_client import AwsClients, AwsRefused
from app.adapters.kms import KmsKeyring, uniform
from app.adapters.secrets_manager import SecretsManager
from app.adapters.wrapped_keyring import WrappedKeyring
from app.errors import SealRefused, Unavailable
from app.sealing import BlindIndex, Purpose, Seal
from infra import key_rotation
from infra.key_store import KeyStore
from tests.adapters.raw_server import raw_server

APP = "roundtrip-prod"
NOW = 1_790_000_000
NEW = 3
"""The key that `add` makes in a ring that has just been made."""
DOWN = Unavailable("kms: ReadTimeoutError", retry_after=5)


class Watched:
    """A client whose calls are noted. `problems` are raised in place of an answer, by operation."""

    def __init__(self, client: Any, calls: list[str], problems: dict[str, Exception]) -> None:
        self._client = client
        self._calls = calls
        self._problems = problems

    def __getattr__(self, operation: str) -> Callable[..., Any]:
        if operation == "close":
            return lambda: None

        def call(**parameters: Any) -> Any:
            self._calls.append(operation)
            if operation in self._problems:
                raise self._problems[operation]
            return getattr(self._client, operation)(**parameters)

        return call


class Deployment:
    """One ring at AWS, as an operator made it, and instances that use it."""

    def __init__(self, clients: Mapping[str, Any]) -> None:
        self.now = float(NOW)
        self.calls: list[str] = []
        self.opened: list[str] = []
        self.problems: dict[str, Exception] = {}
        self.kms, self.secrets = clients["kms"], clients["secretsmanager"]
        self.kms_key: str = self.kms.create_key()["KeyMetadata"]["Arn"]
        self.secret_id = f"{APP}-keys-{secrets.token_hex(4)}"
        self.secrets.create_secret(Name=self.secret_id)
        self.store = KeyStore(self.secret_id, secrets=self.secrets, kms=self.kms)
        ring = key_rotation.create(APP, self.kms_key, pepper=self.wrap(1), key=self.wrap(2), now=NOW)
        self.store.write(ring, replaces=self.store.read())

    def wrap(self, kid: int) -> bytes:
        return self.store.new_key(self.kms_key, APP, kid)

    def change(self, step: Callable[[WrappedKeyring], WrappedKeyring]) -> None:
        """What an operator does, without waiting."""
        self.store.write(step(self.ring), replaces=self.store.read())

    def add(self) -> None:
        self.change(lambda ring: key_rotation.add(ring, self.wrap(ring.last_kid + 1), now=int(self.now)))

    def promote(self, kid: int) -> None:
        self.change(lambda ring: key_rotation.promote(ring, kid, now=int(self.now), compromised=True))

    def retire(self, kid: int) -> None:
        self.change(lambda ring: key_rotation.retire(ring, kid, now=int(self.now), compromised=True))

    @property
    def ring(self) -> WrappedKeyring:
        ring = self.store.read().ring
        assert ring is not None
        return ring

    def put(self, text: str) -> None:
        """What somebody does by hand."""
        self.secrets.put_secret_value(SecretId=self.secret_id, SecretString=text)

    def instance(self, *, secret_id: str = "") -> KmsKeyring:
        """A new instance, whose ring has fetched nothing."""
        aws = AwsClients(self._open)
        return KmsKeyring(
            secret_id or self.secret_id, self.kms_key, APP, aws=aws, clock=lambda: self.now, chance=lambda: 0.5
        )

    def _open(self, service: str) -> Any:
        self.opened.append(service)
        return Watched({"kms": self.kms, "secretsmanager": self.secrets}[service], self.calls, self.problems)


@pytest.fixture(scope="module")
def clients() -> Iterator[Mapping[str, Any]]:
    """moto's KMS and Secrets Manager, with nobody's credentials."""
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith("AWS_")]:
            patch.delenv(name)
        patch.setenv("AWS_DEFAULT_REGION", "eu-central-1")
        with mock_aws():
            session = get_session()
            yield {service: session.create_client(service) for service in ("kms", "secretsmanager")}


@pytest.fixture
def deployment(clients: Mapping[str, Any]) -> Deployment:
    return Deployment(clients)


def sealed_by(ring: KmsKeyring) -> str:
    return Seal(ring, Purpose.REQUEST_STATE).seal({"a": 1}, bound_to=(b"alice",))


def opens(ring: KmsKeyring, token: str) -> bool:
    """Whether it opens. A key that does not is the only reason why not."""
    try:
        return Seal(ring, Purpose.REQUEST_STATE).open(token, bound_to=(b"alice",)) == {"a": 1}
    except SealRefused as error:
        if error.reason != "kid":
            raise
        return False


# What is asked of AWS


def test_what_one_instance_seals_another_opens(deployment: Deployment) -> None:
    """The promise: any instance, after any restart."""
    assert opens(deployment.instance(), sealed_by(deployment.instance()))


def test_a_new_instance_has_asked_nothing(deployment: Deployment) -> None:
    """A key that is unwrapped in INIT would be in the snapshot."""
    ring = deployment.instance()
    ring.prepare()
    assert repr(ring) == f"KmsKeyring('{deployment.secret_id}')"
    assert deployment.opened == deployment.calls == []


def test_a_thousand_tokens_cost_one_reading_and_one_unwrapping(deployment: Deployment) -> None:
    """SECURITY 2.6: never per token."""
    ring = deployment.instance()
    tokens = [sealed_by(ring) for _ in range(500)]
    assert all(opens(ring, token) for token in tokens)
    assert deployment.calls == ["get_secret_value", "decrypt"]


def test_only_the_keys_that_a_request_takes_are_unwrapped(deployment: Deployment) -> None:
    """SECURITY 2.6: lazily per kid."""
    token = sealed_by(deployment.instance())
    deployment.add()
    deployment.promote(NEW)
    deployment.calls.clear()
    ring = deployment.instance()
    assert opens(ring, token)
    assert deployment.calls == ["get_secret_value", "decrypt"]
    sealed_by(ring)
    assert deployment.calls == ["get_secret_value", "decrypt", "decrypt"]


def test_decrypt_names_the_key_and_the_context_that_policies_can_require(deployment: Deployment) -> None:
    """AWS KMS, Decrypt: KeyId makes sure that no other key is used; kms:EncryptionContext:* are condition keys."""
    ciphertext = deployment.ring.mint.wrapped.ciphertext
    context = {"app": APP, "purpose": "sealing-key", "kid": "2"}
    with Stubber(deployment.kms) as stub:
        stub.add_response(
            "decrypt",
            {"Plaintext": bytes(32), "KeyId": deployment.kms_key},
            {"CiphertextBlob": ciphertext, "KeyId": deployment.kms_key, "EncryptionContext": context},
        )
        assert deployment.instance().current.kid == 2
        stub.assert_no_pending_responses()


def test_a_wrapped_key_cannot_stand_in_for_another(deployment: Deployment) -> None:
    """The encryption context: a ciphertext that was moved to another place does not unwrap."""
    document = json.loads(deployment.ring.dump())
    key, pepper = document["keys"][0], document["pepper"]
    key["ciphertext"], pepper["ciphertext"] = pepper["ciphertext"], key["ciphertext"]
    deployment.put(json.dumps(document))
    with pytest.raises(AwsRefused, match=r"InvalidCiphertextException.*kid=2"):
        sealed_by(deployment.instance())


# Rotation


def test_a_key_opens_when_it_is_added_and_seals_when_it_is_promoted(deployment: Deployment) -> None:
    """SECURITY 2.6: (1) add as verify, (2) promote, (3) retire; each is everywhere within 10 minutes."""
    ring = deployment.instance()
    old = sealed_by(ring)
    deployment.add()
    deployment.now += 600
    assert ring.current.kid == 2
    assert ring.get(NEW) is not None
    deployment.promote(NEW)
    assert ring.current.kid == 2
    deployment.now += 600
    assert ring.current.kid == NEW
    assert opens(ring, old)
    deployment.retire(2)
    deployment.now += 600
    assert not opens(ring, old)
    assert opens(ring, sealed_by(ring))


def test_a_key_that_an_instance_has_not_heard_of_is_looked_for_once_a_minute(deployment: Deployment) -> None:
    """A promotion that could not wait loses no flow to an instance whose list is a minute old."""
    ring = deployment.instance()
    sealed_by(ring)
    deployment.add()
    deployment.promote(NEW)
    token = sealed_by(deployment.instance())
    deployment.now += 59
    assert not opens(ring, token)
    deployment.now += 1
    assert opens(ring, token)


def test_made_up_key_ids_cost_one_reading_in_a_minute_and_no_unwrapping(deployment: Deployment) -> None:
    """SECURITY 2.6: the attacker picks the kid. An unknown one must not cause a KMS call."""
    ring = deployment.instance()
    sealed_by(ring)
    deployment.calls.clear()
    for elapsed in range(0, 300, 10):
        deployment.now = NOW + elapsed
        made_up = (0, 4, 7, 2**32 - 1, *(8 + secrets.randbelow(2**31) for _ in range(50)))
        assert {ring.get(kid) for kid in made_up} == {None}
    assert deployment.calls == ["get_secret_value"] * 4


def test_a_retired_key_opens_nothing_and_costs_nothing(deployment: Deployment) -> None:
    """Its id is known: there is nothing to look for."""
    token = sealed_by(deployment.instance())
    deployment.add()
    deployment.promote(NEW)
    deployment.retire(2)
    ring = deployment.instance()
    sealed_by(ring)
    deployment.calls.clear()
    deployment.now += 120
    assert not opens(ring, token)
    assert deployment.calls == []


def test_a_retired_key_leaves_the_process(deployment: Deployment) -> None:
    """One that comes back is unwrapped again, since it was not kept."""
    ring = deployment.instance()
    deployment.add()
    assert ring.get(NEW) is not None
    deployment.retire(NEW)
    deployment.now += 60
    ring.get(99)
    assert ring.get(NEW) is None
    deployment.change(lambda stored: key_rotation.restore(stored, NEW, now=NOW))
    deployment.now += 60
    ring.get(99)
    deployment.calls.clear()
    assert ring.get(NEW) is not None
    assert deployment.calls == ["decrypt"]


def test_names_in_the_store_survive_every_rotation(deployment: Deployment) -> None:
    """The pepper stays, and seals nothing: renaming would disconnect everybody."""
    before = BlindIndex(deployment.instance(), Purpose.VAULT).of("iss", "alice")
    deployment.add()
    deployment.promote(NEW)
    deployment.retire(2)
    deployment.change(lambda ring: key_rotation.drop(ring, 2))
    assert BlindIndex(deployment.instance(), Purpose.VAULT).of("iss", "alice") == before
    assert deployment.instance().get(deployment.ring.pepper.kid) is None


# When AWS does not answer


def outage() -> dict[str, Exception]:
    return {"decrypt": DOWN, "get_secret_value": DOWN}


def test_an_instance_goes_on_for_an_hour_without_aws(deployment: Deployment) -> None:
    """SECURITY 2.6: stale-if-error."""
    ring = deployment.instance()
    token = sealed_by(ring)
    deployment.problems.update(outage())
    for minutes in (10, 30, 69):
        deployment.now = NOW + minutes * 60
        assert opens(ring, token)
        assert opens(ring, sealed_by(ring))
    deployment.now = NOW + 71 * 60
    with pytest.raises(Unavailable, match="ReadTimeoutError"):
        sealed_by(ring)


def test_a_new_instance_without_aws_is_unavailable_and_asks_once_in_five_seconds(deployment: Deployment) -> None:
    """An outage costs the first request its timeouts, and no other one."""
    deployment.problems.update(outage())
    ring = deployment.instance()
    for _ in range(20):
        with pytest.raises(Unavailable) as caught:
            sealed_by(ring)
        assert 1 <= caught.value.retry_after <= 5
    assert deployment.calls == ["get_secret_value"]
    deployment.problems.clear()
    deployment.now += 5
    assert opens(ring, sealed_by(ring))


def test_a_list_that_is_out_of_date_refuses_no_key(deployment: Deployment) -> None:
    """The key may have been added meanwhile: 503 keeps the flow, a refusal would end it."""
    ring = deployment.instance()
    sealed_by(ring)
    deployment.problems.update(outage())
    deployment.now += 599
    assert ring.get(NEW) is None
    deployment.now += 1
    with pytest.raises(Unavailable, match="out of date"):
        ring.get(NEW)


@pytest.mark.parametrize(
    ("code", "told"),
    [
        ("AccessDeniedException", f"lacks kms:Decrypt on arn:.* app={APP}, purpose=sealing-key, kid=2: grant it"),
        ("DisabledException", "is disabled: enable it"),
        ("KMSInvalidStateException", "cancel the deletion"),
        ("NotFoundException", "set MCP_KMS_KEY to the key that wrapped"),
        ("IncorrectKeyException", "set MCP_KMS_KEY to the ARN of the key that did"),
        ("InvalidCiphertextException", "set MCP_KMS_KEY and MCP_SEALING_APP"),
        ("InvalidKeyUsageException", "a symmetric encryption key"),
        ("ValidationException", "correct MCP_KMS_KEY, or the ring"),
    ],
)
def test_a_refusal_of_kms_names_the_remedy_and_ends_what_was_held(deployment: Deployment, code: str, told: str) -> None:
    """AWS KMS, Decrypt, Errors. moto decrypts with a disabled key and for everybody, so botocore's stub refuses."""
    ring = deployment.instance()
    sealed_by(ring)
    deployment.now += 600
    with Stubber(deployment.kms) as stub:
        stub.add_client_error("decrypt", service_error_code=code, service_message="to arn:aws:iam::1:role/who")
        for _ in range(3):
            with pytest.raises(AwsRefused, match=told) as caught:
                sealed_by(ring)
            assert "role/who" not in caught.value.reason
        stub.assert_no_pending_responses()


@pytest.mark.parametrize(
    ("code", "told"),
    [
        ("AccessDeniedException", "lacks secretsmanager:GetSecretValue on .*, or kms:Decrypt"),
        ("DecryptionFailure", "enable it, or encrypt the secret with another one"),
        ("InvalidRequestException", "is being deleted: restore it"),
        ("ValidationException", "correct the setting"),
    ],
)
def test_a_refusal_of_secrets_manager_names_the_remedy(deployment: Deployment, code: str, told: str) -> None:
    """Secrets Manager, GetSecretValue, Errors."""
    with Stubber(deployment.secrets) as stub:
        stub.add_client_error("get_secret_value", service_error_code=code)
        with pytest.raises(AwsRefused, match=told) as caught:
            sealed_by(deployment.instance())
    assert deployment.secret_id in caught.value.reason


@pytest.mark.parametrize("code", ["ThrottlingException", "KMSInternalException", "DependencyTimeoutException"])
def test_what_a_wait_mends_is_waited_for(deployment: Deployment, code: str) -> None:
    """Throttled, or broken at AWS: what is held serves, and the reason names the code."""
    ring = deployment.instance()
    token = sealed_by(ring)
    deployment.problems["decrypt"] = ClientError({"Error": {"Code": code, "Message": "m"}}, "Decrypt")
    deployment.now += 600
    assert opens(ring, token)
    with pytest.raises(Unavailable, match=f"kms: {code}$") as caught:
        sealed_by(deployment.instance())
    assert not isinstance(caught.value, AwsRefused)


def test_a_secret_that_is_not_there_is_named_with_the_remedy(deployment: Deployment) -> None:
    """Secrets Manager, GetSecretValue: ResourceNotFoundException, for no secret and for one without a value."""
    empty = f"empty-{deployment.secret_id}"
    deployment.secrets.create_secret(Name=empty)
    for name in (empty, f"no-{deployment.secret_id}"):
        with pytest.raises(AwsRefused, match=f"there is no secret {name} with a value: create it"):
            sealed_by(deployment.instance(secret_id=name))


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda ring: ring.clear(), "keys is missing"),
        (lambda ring: ring.pop("pepper"), "pepper is missing"),
        (lambda ring: ring.pop("app"), "app is missing"),
        (lambda ring: ring.update(last_kid=True), "last_kid is missing, or of the wrong type"),
        (lambda ring: ring.update(last_kid=1), "from 1 to last_kid"),
        (lambda ring: ring["keys"].clear(), "exactly one key must have the state mint"),
        (lambda ring: ring["keys"].append({**ring["keys"][0], "state": "verify"}), "two keys have one kid"),
        (lambda ring: ring["keys"].append({**ring["keys"][0], "kid": 3}), "last_kid"),
        (lambda ring: ring["keys"].append("2"), "kid is missing"),
        (lambda ring: ring["keys"][0].update(state="current"), "no state of mint, verify, retired"),
        (lambda ring: ring["keys"][0].update(kid=0), "from 1 to last_kid"),
        (lambda ring: ring["keys"][0].update(kid="2"), "kid is missing, or of the wrong type"),
        (lambda ring: ring["keys"][0].update(ciphertext="?"), "ciphertext of key 2 is not Base64"),
        (lambda ring: ring["pepper"].update(kid=2), "two keys have one kid"),
        (lambda ring: ring.update(app="roundtrip-test"), "set MCP_SEALING_APP"),
    ],
)
def test_a_ring_that_cannot_work_is_refused_with_the_remedy(
    deployment: Deployment, change: Callable[[dict[str, Any]], Any], told: str
) -> None:
    """Somebody edited the secret by hand."""
    document = json.loads(deployment.ring.dump())
    change(document)
    deployment.put(json.dumps(document))
    with pytest.raises(AwsRefused, match=told) as caught:
        sealed_by(deployment.instance())
    assert deployment.secret_id in caught.value.reason


@pytest.mark.parametrize("text", [" ", "[]", "null", "kid 1", '{"keys": [], "keys": []}', '"\\ud800"'])
def test_a_secret_that_holds_something_else_is_refused(deployment: Deployment, text: str) -> None:
    """The wrong secret, or the right one before `create`."""
    deployment.put(text)
    with pytest.raises(AwsRefused, match=r"holds no key ring: .*infra\.keys create"):
        sealed_by(deployment.instance())


def test_a_secret_of_bytes_is_refused(deployment: Deployment) -> None:
    """Secrets Manager, SecretBinary."""
    deployment.secrets.put_secret_value(SecretId=deployment.secret_id, SecretBinary=b"{}")
    with pytest.raises(AwsRefused, match="store it as text"):
        sealed_by(deployment.instance())


def test_a_data_key_of_another_size_is_refused(deployment: Deployment) -> None:
    """Wrapped by hand with `aws kms encrypt`, for the right context."""
    context = {"app": APP, "purpose": "sealing-key", "kid": "2"}
    short = deployment.kms.encrypt(KeyId=deployment.kms_key, Plaintext=b"x" * 16, EncryptionContext=context)
    deployment.change(
        lambda ring: key_rotation.create(APP, ring.kms_key, pepper=b"", key=short["CiphertextBlob"], now=NOW)
    )
    with pytest.raises(AwsRefused, match="key 2 has 16 bytes, and must have 32"):
        sealed_by(deployment.instance())


def test_without_a_region_the_reason_says_so(clients: Mapping[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """A container outside AWS."""
    monkeypatch.delenv("AWS_DEFAULT_REGION")
    with pytest.raises(AwsRefused, match="NoRegionError: run it under a role"):
        SecretsManager().read("name")


def test_a_service_that_does_not_answer_is_given_up_within_seconds(
    clients: Mapping[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """1 s to connect and 2 s to answer, twice: botocore's own defaults are a minute, five times."""
    assert (aws_client.CONNECT_TIMEOUT, aws_client.READ_TIMEOUT, aws_client.ATTEMPTS) == (1, 2, 2)
    monkeypatch.setattr(aws_client, "READ_TIMEOUT", 0.1)
    with raw_server(lambda conversation: conversation.stall(), hear=False) as server:
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{server.port}")
        with pytest.raises(Unavailable, match=r"secretsmanager: ReadTimeoutError\Z"):
            SecretsManager().read("name")
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{port}")
    with pytest.raises(Unavailable, match=r"secretsmanager: EndpointConnectionError\Z"):
        SecretsManager().read("name")


# Snapshots, and what is said


def test_after_forgetting_everything_is_fetched_anew(deployment: Deployment) -> None:
    """SECURITY 2.6, SnapStart: neither keys nor connections nor credentials survive a restore."""
    ring = deployment.instance()
    token = sealed_by(ring)
    ring.forget()
    assert opens(ring, token)
    assert deployment.opened == ["secretsmanager", "kms"] * 2
    assert deployment.calls == ["get_secret_value", "decrypt"] * 2


def test_chance_is_uniform_and_never_one() -> None:
    """[0, 1): instances refresh spread over two minutes."""
    drawn = [uniform() for _ in range(1000)]
    assert 0 <= min(drawn) < 0.1
    assert 0.9 < max(drawn) < 1


def test_nothing_prints_a_key(deployment: Deployment, caplog: pytest.LogCaptureFixture) -> None:
    """STYLE 4.14: not the ring, not its parts, not the log of an outage."""
    caplog.set_level(logging.INFO)
    ring = deployment.instance()
    secret = ring.current.secret
    deployment.problems.update(outage())
    deployment.now += 600
    text = f"{ring!r} {ring.current!r} {vars(ring)!r} {caplog.text}"
    assert "ReadTimeoutError" in text
    for part in (secret.hex()[:12], repr(secret)[2:20]):
        assert part not in text
