"""The seal rs1 a second time, from its format text alone: HKDF by hand from HMAC, AES-GCM from the block cipher."""

import hashlib
import hmac
import struct
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Iterable
from dataclasses import dataclass

from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import AES
from cryptography.hazmat.primitives.ciphers.modes import GCM


def hkdf_sha256(secret: bytes, *, salt: bytes, info: bytes, length: int) -> bytes:
    """RFC 5869 section 2."""
    extracted = hmac.new(salt, secret, hashlib.sha256).digest()
    block, output, counter = b"", b"", 1
    while len(output) < length:
        block = hmac.new(extracted, block + info + bytes([counter]), hashlib.sha256).digest()
        output += block
        counter += 1
    return output[:length]


@dataclass(frozen=True)
class Derived:
    """What one token's salt makes of a key."""

    key: bytes
    nonce: bytes
    commitment: bytes


def derive(secret: bytes, *, purpose: str, kid: int, salt: bytes) -> Derived:
    info = purpose.encode("ascii") + b"/rs1" + b"\x00" + struct.pack(">I", kid)
    output = hkdf_sha256(secret, salt=salt, info=info, length=76)
    return Derived(output[:32], output[32:44], output[44:76])


def associated_data(purpose: str, kid: int, bound_to: Iterable[bytes]) -> bytes:
    data = b""
    for part in [purpose.encode("ascii"), b"rs1", struct.pack(">I", kid), *bound_to]:
        data += struct.pack(">I", len(part)) + part
    return data


def padded(text: bytes) -> bytes:
    while len(text) % 64:
        text += b" "
    return text


def seal(
    text: bytes, *, secret: bytes, kid: int, salt: bytes, purpose: str, bound_to: Iterable[bytes], pad: bool = True
) -> str:
    """A token of any plaintext, also of one that the product would never write."""
    derived = derive(secret, purpose=purpose, kid=kid, salt=salt)
    encryptor = Cipher(AES(derived.key), GCM(derived.nonce)).encryptor()
    encryptor.authenticate_additional_data(associated_data(purpose, kid, bound_to))
    sealed = encryptor.update(padded(text) if pad else text) + encryptor.finalize() + encryptor.tag
    return spelled(struct.pack(">I", kid) + salt + derived.commitment + sealed)


def open_(token: str, *, secret: bytes, purpose: str, bound_to: Iterable[bytes]) -> bytes:
    """The plaintext of a good token, padding and all."""
    body = body_of(token)
    kid, salt, commitment, sealed, tag = body[:4], body[4:36], body[36:68], body[68:-16], body[-16:]
    derived = derive(secret, purpose=purpose, kid=struct.unpack(">I", kid)[0], salt=salt)
    assert commitment == derived.commitment
    decryptor = Cipher(AES(derived.key), GCM(derived.nonce, tag)).decryptor()
    decryptor.authenticate_additional_data(associated_data(purpose, struct.unpack(">I", kid)[0], bound_to))
    return decryptor.update(sealed) + decryptor.finalize()


def body_of(token: str) -> bytes:
    assert token.startswith("rs1.")
    return urlsafe_b64decode(token[4:] + "=" * (-len(token[4:]) % 4))


def spelled(body: bytes) -> str:
    return "rs1." + urlsafe_b64encode(body).decode("ascii").rstrip("=")
