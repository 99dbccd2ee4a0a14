"""The key ring of a deployment: listed in a secret, unwrapped by KMS, kept in this process for a while.

Nothing is read before the first request that seals, opens or names something, and then only the keys that it takes.
Both the list and each key are fetched again every 10 minutes (app/adapters/stale_if_error.py): that is how long a
change of the ring, a disabled key or a grant that was taken away needs to be everywhere.
"""

import os
import time
from collections.abc import Callable
from threading import Lock

from app.adapters import wrapped_keyring
from app.adapters.aws_client import RETRY_AFTER, AwsClients, AwsRefused
from app.adapters.secrets_manager import SecretsManager
from app.adapters.stale_if_error import StaleIfError
from app.adapters.wrapped_keyring import MalformedKeyring, State, WrappedKey, WrappedKeyring, encryption_context
from app.errors import ConfigurationError, Unavailable
from app.sealing import Key


def uniform() -> float:
    """A number in [0, 1), drawn from the operating system: a snapshot holds no generator that would repeat."""
    return int.from_bytes(os.urandom(4), "big") / 2**32


class KmsKeyring:
    """Implements sealing.SealingKeys. Safe to share between threads.

    Every lookup raises Unavailable while what it takes cannot be had, and AwsRefused, whose reason names the grant
    or the setting, where somebody has to change something.
    """

    def __init__(
        self,
        secret_id: str,
        kms_key: str,
        app: str,
        *,
        aws: AwsClients | None = None,
        clock: Callable[[], float] = time.time,
        chance: Callable[[], float] = uniform,
    ) -> None:
        self._secret_id = secret_id
        self._kms_key = kms_key
        self._app = app
        self._aws = aws or AwsClients()
        self._secrets = SecretsManager(self._aws)
        self._clock = clock
        self._chance = chance
        self._lock = Lock()
        self.forget()

    def forget(self) -> None:
        """Drop the list, every key and the connections, as before a SnapStart snapshot and after a restore."""
        self._aws.forget()
        with self._lock:
            self._ring = StaleIfError(self._read_ring, clock=self._clock, chance=self._chance)
            self._unwrapped: dict[WrappedKey, StaleIfError[Key]] = {}

    def prepare(self) -> None:
        """Import what the first lookup would import, so that a snapshot has it. Fetches nothing."""
        self._aws.prepare()

    @property
    def current(self) -> Key:
        """The key that seals."""
        return self._unwrap(self._ring.get().mint.wrapped)

    def get(self, kid: int) -> Key | None:
        """The key with this id, or None for one that opens nothing.

        Whoever sends a token picks the id: an unknown one costs one reading of the list in a minute, and never an
        unwrapping.
        """
        entry = self._ring.get().get(kid)
        if entry is None:
            entry = self._ring.get(newer=True).get(kid)
            if entry is None and self._ring.is_stale:
                # A refusal would end a flow whose key this instance may just not have heard of.
                raise Unavailable(f"sealing key {kid} is not in a list that is out of date", retry_after=RETRY_AFTER)
        if entry is None or entry.state is State.RETIRED:
            return None
        return self._unwrap(entry.wrapped)

    @property
    def pepper(self) -> Key:
        """The key of every BlindIndex."""
        return self._unwrap(self._ring.get().pepper)

    def __repr__(self) -> str:
        return f"KmsKeyring({self._secret_id!r})"

    def _read_ring(self) -> WrappedKeyring:
        text = self._secrets.read(self._secret_id)
        try:
            ring = wrapped_keyring.parse(text)
        except MalformedKeyring as error:
            raise AwsRefused(
                f"the secret {self._secret_id} holds no key ring: {error}. `python -m infra.keys create` makes one, "
                "and the version before this one is labelled AWSPREVIOUS",
                retry_after=RETRY_AFTER,
            ) from None
        if ring.app != self._app:
            raise AwsRefused(
                f"the ring in the secret {self._secret_id} was made for the app {ring.app!r}, not {self._app!r}: set "
                "MCP_SEALING_APP to that, or MCP_SEALING_SECRET to this app's ring",
                retry_after=RETRY_AFTER,
            )
        held = {ring.pepper, *(key.wrapped for key in ring.keys if key.state is not State.RETIRED)}
        with self._lock:
            # A key that has left the ring leaves the process too.
            self._unwrapped = {wrapped: key for wrapped, key in self._unwrapped.items() if wrapped in held}
        return ring

    def _unwrap(self, wrapped: WrappedKey) -> Key:
        with self._lock:
            if wrapped not in self._unwrapped:
                self._unwrapped[wrapped] = StaleIfError(
                    lambda: self._decrypt(wrapped), clock=self._clock, chance=self._chance
                )
            unwrapped = self._unwrapped[wrapped]
        return unwrapped.get()

    def _decrypt(self, wrapped: WrappedKey) -> Key:
        context = encryption_context(self._app, wrapped.kid)
        spelled = ", ".join(f"{name}={value}" for name, value in context.items())
        key = self._kms_key
        response = self._aws.call(
            "kms",
            "decrypt",
            CiphertextBlob=wrapped.ciphertext,
            KeyId=key,
            EncryptionContext=context,
            remedies={
                "AccessDeniedException": f"the role lacks kms:Decrypt on {key} with the encryption context {spelled}: "
                "grant it in the role's policy or in the key's",
                "DisabledException": f"{key} is disabled: enable it",
                "KMSInvalidStateException": f"{key} is being deleted or cannot be used: cancel the deletion",
                "NotFoundException": f"there is no key {key}: set MCP_KMS_KEY to the key that wrapped the ring",
                "IncorrectKeyException": f"sealing key {wrapped.kid} was not wrapped by {key}: set MCP_KMS_KEY to the "
                "ARN of the key that did",
                "InvalidCiphertextException": f"sealing key {wrapped.kid} was not wrapped by {key} for "
                f"{spelled}: set MCP_KMS_KEY and MCP_SEALING_APP to what the ring in {self._secret_id} names",
                "InvalidKeyUsageException": f"{key} does not encrypt: set MCP_KMS_KEY to a symmetric encryption key",
                "ValidationException": f"{key!r} is no ARN of a key, or key {wrapped.kid} no ciphertext: correct "
                "MCP_KMS_KEY, or the ring",
            },
        )
        try:
            return Key(wrapped.kid, response["Plaintext"])
        except ConfigurationError as error:
            raise AwsRefused(f"the ring in {self._secret_id}: {error.problems[0]}", retry_after=RETRY_AFTER) from None
