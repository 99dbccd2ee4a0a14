"""The smallest picture and the shortest sound that are valid."""

from base64 import b64decode
from typing import Final

PNG: Final = b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=="
)
"""1 by 1 pixel."""

WAV: Final = (
    b"RIFF\x26\x00\x00\x00WAVEfmt \x10\x00\x00\x00\x01\x00\x01\x00\x40\x1f\x00\x00\x40\x1f\x00\x00\x01\x00\x08\x00"
    b"data\x02\x00\x00\x00\x80\x80"
)
"""8 kHz, 8 bits, mono, 2 samples."""
