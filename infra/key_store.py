"""The key ring in Secrets Manager, and new data keys from KMS. What two operators do at once, one of them does again.

A ring is written as a version of its own first, and becomes the current one only if the version it was made from still
is: UpdateSecretVersionStage moves AWSCURRENT from the version that it names, or fails.
"""

import uuid
from dataclasses import dataclass
from typing import Any, Final

from app.adapters import wrapped_keyring
from app.adapters.wrapped_keyring import MalformedKeyring, WrappedKeyring, encryption_context

_CURRENT: Final = "AWSCURRENT"
_PENDING: Final = "AWSPENDING"
# The first version has none before it: the same token for everybody makes the second writer fail.
_FIRST_VERSION: Final = str(uuid.uuid5(uuid.NAMESPACE_URL, "roundtrip:first-key-ring"))


class StoreError(Exception):
    """The ring cannot be read or written. The message ends with the remedy."""


class Raced(StoreError):
    """Somebody else changed the ring in between: nothing was written."""


@dataclass(frozen=True, slots=True)
class StoredRing:
    """What a secret holds: a ring, or none yet, and the version that says so."""

    ring: WrappedKeyring | None
    version: str | None


class KeyStore:
    """One ring, in one secret. The clients are botocore's; their errors say what is missing."""

    def __init__(self, secret_id: str, *, secrets: Any, kms: Any) -> None:
        self._secret_id = secret_id
        self._secrets = secrets
        self._kms = kms

    def read(self) -> StoredRing:
        """What the secret holds now. Raises StoreError for text that is neither a ring nor `{}`."""
        try:
            current = self._secrets.get_secret_value(SecretId=self._secret_id, VersionStage=_CURRENT)
        except self._secrets.exceptions.ResourceNotFoundException:
            # Without a value, or not there at all: this call tells, and raises.
            self._secrets.describe_secret(SecretId=self._secret_id)
            return StoredRing(None, None)
        text = current.get("SecretString", "")
        if text.strip() in ("", "{}"):
            return StoredRing(None, current["VersionId"])
        try:
            return StoredRing(wrapped_keyring.parse(text), current["VersionId"])
        except MalformedKeyring as error:
            raise StoreError(
                f"{self._secret_id} holds no key ring: {error}. Give the secret that is for the ring, or put back the "
                "version that is labelled AWSPREVIOUS."
            ) from None

    def new_key(self, kms_key: str, app: str, kid: int) -> bytes:
        """A fresh data key, wrapped. Nobody has seen it: KMS draws it and gives the ciphertext alone."""
        made = self._kms.generate_data_key_without_plaintext(
            KeyId=kms_key, KeySpec="AES_256", EncryptionContext=dict(encryption_context(app, kid))
        )
        ciphertext: bytes = made["CiphertextBlob"]
        return ciphertext

    def write(self, ring: WrappedKeyring, *, replaces: StoredRing) -> None:
        """Make this the ring, if the secret still holds what was read. Raises Raced."""
        if replaces.version is None:
            self._write_first(ring)
            return
        token = str(uuid.uuid4())
        self._secrets.put_secret_value(
            SecretId=self._secret_id, ClientRequestToken=token, SecretString=ring.dump(), VersionStages=[_PENDING]
        )
        try:
            self._secrets.update_secret_version_stage(
                SecretId=self._secret_id,
                VersionStage=_CURRENT,
                MoveToVersionId=token,
                RemoveFromVersionId=replaces.version,
            )
        except (
            self._secrets.exceptions.InvalidParameterException,
            self._secrets.exceptions.InvalidRequestException,
        ) as error:
            if self.read().version == replaces.version:
                raise
            raise _raced() from error

    def _write_first(self, ring: WrappedKeyring) -> None:
        try:
            self._secrets.put_secret_value(
                SecretId=self._secret_id, ClientRequestToken=_FIRST_VERSION, SecretString=ring.dump()
            )
        except self._secrets.exceptions.ResourceExistsException as error:
            raise _raced() from error


def _raced() -> Raced:
    return Raced("Somebody changed the ring at the same time, and nothing is written: run the command again.")
