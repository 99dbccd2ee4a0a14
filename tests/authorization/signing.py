"""Keys of an issuer and JWS compact serialisation by hand: no library decides what a test may send (RFC 7515)."""

import hashlib
import hmac
import json
from base64 import urlsafe_b64encode
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, TypeAlias

from cryptography.hazmat.primitives.asymmetric import ec, ed448, ed25519, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from cryptography.hazmat.primitives.hashes import SHA256, HashAlgorithm
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

Sign: TypeAlias = Callable[[bytes], bytes]


def base64url(data: bytes) -> str:
    return urlsafe_b64encode(data).decode("ascii").rstrip("=")


def compact(header: Mapping[str, Any] | bytes, payload: Mapping[str, Any] | bytes, sign: Sign) -> str:
    """header.payload.signature, of any bytes."""
    parts = [part if isinstance(part, bytes) else json.dumps(part).encode() for part in (header, payload)]
    signed = ".".join(base64url(part) for part in parts)
    return f"{signed}.{base64url(sign(signed.encode()))}"


def hs256(secret: bytes) -> Sign:
    return lambda message: hmac.new(secret, message, hashlib.sha256).digest()


def unsigned(message: bytes) -> bytes:
    return b""


@dataclass(frozen=True)
class SigningKey:
    """A private key and the JWK that its owner publishes."""

    alg: str
    sign: Sign = field(repr=False)
    public_key: Any = field(repr=False)
    members: Mapping[str, str] = field(repr=False)

    def jwk(self, kid: str, /, **changes: Any) -> dict[str, Any]:
        """The JWK. A member given as `...` is left out."""
        jwk = {"kid": kid, "use": "sig", "alg": self.alg, **self.members, **changes}
        return {name: value for name, value in jwk.items() if value is not ...}

    def pem(self) -> bytes:
        encoded: bytes = self.public_key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
        return encoded

    def der(self) -> bytes:
        encoded: bytes = self.public_key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
        return encoded


@cache
def _rsa_private(bits: int) -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(65537, bits)


@cache
def rsa_key(bits: int = 2048, alg: str = "RS256") -> SigningKey:
    """One key of each size, whatever the algorithm: so that only the algorithm can be what is refused."""
    private = _rsa_private(bits)
    schemes: dict[str, tuple[padding.AsymmetricPadding, HashAlgorithm]] = {
        "RS256": (padding.PKCS1v15(), SHA256()),
        "PS256": (padding.PSS(padding.MGF1(SHA256()), 32), SHA256()),
    }
    scheme, digest = schemes[alg]
    numbers = private.public_key().public_numbers()
    return SigningKey(
        alg,
        lambda message: private.sign(message, scheme, digest),
        private.public_key(),
        {"kty": "RSA", "n": _integer(numbers.n, bits // 8), "e": _integer(numbers.e, 3)},
    )


@cache
def ec_key(curve: str = "P-256", number: int = 0) -> SigningKey:
    """`number` tells several keys of one curve apart."""
    curves: dict[str, tuple[ec.EllipticCurve, int]] = {
        "P-256": (ec.SECP256R1(), 32),
        "P-384": (ec.SECP384R1(), 48),
        "secp256k1": (ec.SECP256K1(), 32),
    }
    parameters, size = curves[curve]
    private = ec.generate_private_key(parameters)

    def sign(message: bytes) -> bytes:
        r, s = decode_dss_signature(private.sign(message, ec.ECDSA(SHA256())))
        return r.to_bytes(size, "big") + s.to_bytes(size, "big")

    numbers = private.public_key().public_numbers()
    coordinates = {"x": _integer(numbers.x, size), "y": _integer(numbers.y, size)}
    return SigningKey("ES256", sign, private.public_key(), {"kty": "EC", "crv": curve, **coordinates})


@cache
def okp_key(curve: str = "Ed25519") -> SigningKey:
    private = ed25519.Ed25519PrivateKey.generate() if curve == "Ed25519" else ed448.Ed448PrivateKey.generate()
    raw = private.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
    return SigningKey("EdDSA", private.sign, private.public_key(), {"kty": "OKP", "crv": curve, "x": base64url(raw)})


def _integer(number: int, size: int) -> str:
    return base64url(number.to_bytes(size, "big"))
