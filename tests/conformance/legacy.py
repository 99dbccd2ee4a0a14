"""The scenarios for servers of earlier revisions, and why a server without sessions cannot pass some of them."""

from collections.abc import Mapping
from typing import Final

_ASKS_IN_THE_CALL: Final = (
    "needs a request of the server's own on the open stream of a call, and the answer on that very instance"
)
_PUSHES: Final = "needs a stream that stays open for news, and somebody who remembers the subscription"

NOT_STATELESS: Final[Mapping[str, str]] = {
    "elicitation-sep1034-defaults": _ASKS_IN_THE_CALL,
    "elicitation-sep1330-enums": _ASKS_IN_THE_CALL,
    "resources-subscribe": _PUSHES,
    "resources-unsubscribe": _PUSHES,
    "tools-call-elicitation": _ASKS_IN_THE_CALL,
    "tools-call-sampling": _ASKS_IN_THE_CALL,
}

PROBLEMS: Final[Mapping[str, str]] = {
    "elicitation-sep1034-defaults": "FAILURE elicitation-sep1034-general: Server did not request elicitation",
    "elicitation-sep1330-enums": "FAILURE elicitation-sep1330-general: Server did not request elicitation",
    "resources-subscribe": "FAILURE resources-subscribe: Failed: Method not found",
    "resources-unsubscribe": "FAILURE resources-unsubscribe: Failed: Method not found",
    "tools-call-elicitation": "FAILURE tools-call-elicitation: Server did not request elicitation",
    "tools-call-sampling": "FAILURE tools-call-sampling: Server did not request sampling",
}
"""The one thing that the suite finds in each of them: a reason excuses nothing else."""

SCENARIOS: Final[Mapping[str, tuple[str, ...]]] = {
    "2025-11-25": (
        "completion-complete",
        "dns-rebinding-protection",
        "elicitation-sep1034-defaults",
        "elicitation-sep1330-enums",
        "json-schema-2020-12",
        "logging-set-level",
        "ping",
        "prompts-get-embedded-resource",
        "prompts-get-simple",
        "prompts-get-with-args",
        "prompts-get-with-image",
        "prompts-list",
        "resources-list",
        "resources-read-binary",
        "resources-read-text",
        "resources-subscribe",
        "resources-templates-read",
        "resources-unsubscribe",
        "server-initialize",
        "server-session-lifecycle",
        "server-sse-multiple-streams",
        "server-sse-polling",
        "tools-call-audio",
        "tools-call-elicitation",
        "tools-call-embedded-resource",
        "tools-call-error",
        "tools-call-image",
        "tools-call-mixed-content",
        "tools-call-sampling",
        "tools-call-simple-text",
        "tools-call-with-logging",
        "tools-call-with-progress",
        "tools-list",
    ),
    "2025-06-18": (
        "completion-complete",
        "logging-set-level",
        "ping",
        "prompts-get-embedded-resource",
        "prompts-get-simple",
        "prompts-get-with-args",
        "prompts-get-with-image",
        "prompts-list",
        "resources-list",
        "resources-read-binary",
        "resources-read-text",
        "resources-subscribe",
        "resources-templates-read",
        "resources-unsubscribe",
        "server-initialize",
        "server-session-lifecycle",
        "tools-call-audio",
        "tools-call-elicitation",
        "tools-call-embedded-resource",
        "tools-call-error",
        "tools-call-image",
        "tools-call-mixed-content",
        "tools-call-sampling",
        "tools-call-simple-text",
        "tools-call-with-logging",
        "tools-call-with-progress",
        "tools-list",
    ),
    "2025-03-26": ("server-session-lifecycle",),
}
"""By revision, as the suite lists them."""
