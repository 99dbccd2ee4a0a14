"""Questions as text, for clients that cannot show them: the model asks, and calls the tool `answer`.

The handle carries the call that asked, sealed for the same user and client, so that any instance goes on from
it. What a model passes on is no proof that a user said it: forms of destructive tools never come here.
"""

import json
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from app.errors import RequestStateRefused, SealRefused
from app.principal import Principal
from app.protocol import messages
from app.protocol.request_state import RequestState, RequestStateCodec
from app.sealing import Purpose, Seal, SealingKeys
from app.strict_json import JsonObject

ANSWER: Final = "answer"
"""The name of the tool that takes the answers."""

DEFINITION: Final[JsonObject] = {
    "name": ANSWER,
    "title": "Answer a question",
    "description": (
        "Passes on what the user answered to a question that another tool of this server asked as text. "
        "Call it only after the user has answered in the conversation. Never answer for the user."
    ),
    "inputSchema": {
        "type": "object",
        "properties": {
            "handle": {"type": "string", "description": "The handle that came with the question, unchanged"},
            "answers": {
                "type": "object",
                "description": "For each question its key, with what the user did",
                "additionalProperties": {
                    "type": "object",
                    "properties": {
                        "action": {"type": "string", "enum": ["accept", "decline", "cancel"]},
                        "content": {"type": "object", "description": "The fields of the form, with accept only"},
                    },
                    "required": ["action"],
                },
            },
        },
        "required": ["handle", "answers"],
    },
    "annotations": {"readOnlyHint": False, "destructiveHint": False, "openWorldHint": False},
}


class Resumed(NamedTuple):
    """The call that asked, and what had been answered before."""

    tool: str
    arguments: JsonObject
    state: RequestState


class TextFallback:
    """Writes questions as text, and reads the handle that comes back."""

    __slots__ = ("_audience", "_codec", "_seal")

    def __init__(self, keyring: SealingKeys, codec: RequestStateCodec, *, audience: str) -> None:
        self._seal = Seal(keyring, Purpose.FALLBACK)
        self._codec = codec
        self._audience = audience

    def result(
        self, questions: Mapping[str, JsonObject], call: Resumed, principal: Principal, *, now: int
    ) -> JsonObject:
        """The tool result that asks. An error to clients, which would check the output schema of any other.

        Raises ValueError when the handle would be too large.
        """
        links = {key: each for key, each in questions.items() if each["params"].get("mode") == "url"}
        forms = {key: each for key, each in questions.items() if key not in links}
        lines = [
            f"{each['params']['message']} The user has to open {each['params']['url']} in a browser."
            for each in links.values()
        ]
        if forms:
            claims = {
                "v": 1,
                "t": call.tool,
                "a": call.arguments,
                "r": self._codec.claims(call.state, now=now),
            }
            handle = self._seal.seal(claims, bound_to=self._bound_to(principal))
            lines.append("Ask the user, and do not answer for them:")
            lines += [_form(key, each["params"]) for key, each in forms.items()]
            lines.append(
                f'Then call the tool "{ANSWER}" with the handle {handle} and, as answers, an object with '
                f"{_listed(forms)}: the action accept with the content, decline, or cancel."
            )
        if links:
            lines.append(f'After that, call the tool "{call.tool}" again.')
        return messages.tool_error("\n\n".join(lines))

    def open(self, handle: object, principal: Principal, *, now: int) -> Resumed:
        """The call behind a handle. Raises RequestStateRefused."""
        try:
            claims = self._seal.open(handle, bound_to=self._bound_to(principal))
        except SealRefused as error:
            raise RequestStateRefused(error.reason) from None
        match claims:
            case {"v": 1, "t": str(tool), "a": dict(arguments), "r": dict(state)}:
                return Resumed(tool, arguments, self._codec.read(state, now=now))
            case _:
                raise RequestStateRefused("claims")

    def _bound_to(self, principal: Principal) -> tuple[bytes, ...]:
        return self._audience.encode(), *principal.fields()


def _form(key: str, params: Mapping[str, Any]) -> str:
    return f"{key}: {params['message']}\nContent, as JSON Schema: {json.dumps(params['requestedSchema'])}"


def _listed(keys: Mapping[str, object]) -> str:
    return "the key " + ", ".join(keys) if len(keys) == 1 else "the keys " + ", ".join(keys)
