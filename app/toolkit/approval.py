"""`@tool(approval=...)`: the user is asked once, and the yes is remembered."""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final, Literal, TypeAlias

from pydantic import BaseModel, Field, TypeAdapter

from app import strict_json
from app.effects.approvals import Permission, lifetime_of
from app.errors import ConfigurationError
from app.protocol.elicitation import Accepted, Cancelled, Declined, Invalid, form_of
from app.protocol.features import Call, InputNeeded, Outcome, Stopped
from app.strict_json import JsonObject
from app.toolkit.guard import is_approved, remember_approval
from app.toolkit.signature import Signature

ApprovalLifetime: TypeAlias = Literal["session"] | timedelta

KEY: Final = "_approval"
"""The key of the question: one that a tool's own will hardly have."""

_SHOWN: Final = 200
"""Characters of an argument that the user is shown."""


class Approve(BaseModel):
    """The form of an approval."""

    allow: bool = Field(description="Tick to allow it")


@dataclass(frozen=True, slots=True)
class Approval:
    """Asks for a tool's approval where no remembered one stands."""

    tool: str
    title: str
    lifetime: int
    arguments: tuple[str, ...]
    """The arguments whose values a yes is limited to; none for any."""
    defaults: Mapping[str, Any]
    """The values of those that a caller may leave out, as JSON."""
    terms: bytes

    @classmethod
    def of(
        cls,
        signature: Signature,
        title: str | None,
        lifetime: ApprovalLifetime,
        arguments: Sequence[str],
        input_schema: JsonObject | None = None,
    ) -> "Approval":
        """Raises ConfigurationError for a lifetime or an argument that there is not."""
        known = signature.parameters if input_schema is None else input_schema.get("properties", {})
        unknown = [name for name in arguments if name not in known]
        if unknown:
            raise ConfigurationError(
                [f"{signature.name}: approval_for names {', '.join(unknown)}, which is no argument: rename it."]
            )
        seconds = lifetime_of(lifetime)
        # What the user agreed to: a tool that does something else asks again.
        shown = {"title": title or signature.name, "does": signature.description, "for": seconds, "of": list(arguments)}
        return cls(
            tool=signature.name,
            title=title or signature.name,
            lifetime=seconds,
            arguments=tuple(arguments),
            defaults={name: _default(signature, name) for name in arguments if name in signature.defaults},
            terms=hashlib.sha256(strict_json.canonical(shown)).digest(),
        )

    def then(self, call: Call, run: Callable[[], Outcome]) -> Outcome:
        """Run it if the user allows it, now or before."""
        limited_to = {name: call.arguments.get(name, self.defaults.get(name)) for name in self.arguments}
        permission = Permission(self.tool, self.terms, limited_to if self.arguments else None)
        form = form_of(Approve)
        request = form.request(self._message(limited_to))
        response = call.round.response(KEY, request)
        if response is None:
            return run() if is_approved(call, permission) else _ask(call, request)
        match form.read(response):
            case Accepted(Approve(allow=True)):
                remember_approval(call, permission, lifetime=self.lifetime)
                return run()
            case Accepted() | Declined():
                call.facts["outcome"] = "stopped"
                return Stopped(f'The user does not allow "{self.title}". Do not ask again unless they want it.')
            case Cancelled():
                call.facts["outcome"] = "stopped"
                return Stopped(f'The user dismissed the question whether to allow "{self.title}".')
            case Invalid(reason):
                return _ask(call, request, {KEY: f"The last answer did not fit: {reason}."})

    def _message(self, limited_to: JsonObject) -> str:
        limits = ", ".join(f"{name} {_shown(value)}" for name, value in limited_to.items())
        what = f"with {limits}" if limits else "with whatever arguments"
        return f'Allow "{self.title}" {what}? A yes holds for {_period(self.lifetime)}, for this client.'


def _ask(call: Call, request: JsonObject, notes: dict[str, str] | None = None) -> InputNeeded:
    call.round.ask(KEY, request)
    # A yes may end between two rounds: what the function carries from one to the next is still its own.
    return InputNeeded(notes=notes or {}, state=call.round.state)


def _default(signature: Signature, name: str) -> Any:
    return json.loads(TypeAdapter(signature.parameters[name]).dump_json(signature.defaults[name], by_alias=True))


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"


def _period(seconds: int) -> str:
    for size, name in ((86_400, "day"), (3600, "hour"), (60, "minute")):
        if seconds % size == 0:
            count = seconds // size
            return f"{count} {name}{'' if count == 1 else 's'}"
    return f"{seconds} seconds"
