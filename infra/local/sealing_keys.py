"""The sealing keys of the local stack: a file that its owner alone can read, made at the first start."""

import base64
import os
from pathlib import Path


def ensure_sealing_keys(path: Path) -> Path:
    """The key file, made if it is not there. It outlives restarts, so that a state sealed before still opens."""
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return path
    with os.fdopen(descriptor, "w") as file:
        file.write(f"1:{base64.urlsafe_b64encode(os.urandom(32)).decode()}\n")
    return path
