"""A help desk as an MCP server, for the demo and for our own tests: app/tools is yours, and may serve anything.

It is the deployed template with two handlers of its own, which serve the tools in `tools.py`.
"""

from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

from infra.local.desk.tools import FEATURES
from infra.local.stack import ROOT, LocalStack, local_stack


def desk_template(folder: Path) -> Path:
    """Write template.yaml with the desk's handlers into a folder: all the rest is what is deployed."""
    text = (ROOT / "template.yaml").read_text()
    template = folder / "template.yaml"
    template.write_text(
        text.replace("Handler: handlers.", "Handler: infra.local.desk.").replace("CodeUri: .\n", f"CodeUri: {ROOT}\n")
    )
    return template


def desk_stack(folder: Path, **options: Any) -> AbstractAsyncContextManager[LocalStack]:
    """`local_stack` with the desk in place of app/tools; what it writes is in `folder`."""
    defaults = {"template": desk_template(folder), "scopes": FEATURES.scopes, "key_file": folder / "sealing-keys"}
    return local_stack(**{**defaults, **options})
