"""Proof Key for Code Exchange (RFC 7636), with S256 and nothing else."""

import hashlib
from base64 import urlsafe_b64encode
from typing import Final

METHOD: Final = "S256"


def challenge(verifier: str) -> str:
    """The `code_challenge` of a verifier (section 4.2)."""
    return urlsafe_b64encode(hashlib.sha256(verifier.encode("ascii")).digest()).rstrip(b"=").decode()
