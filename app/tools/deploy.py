"""Example: an async tool in the explicit style: it returns the question, and reads the answer itself."""

from enum import Enum
from typing import Annotated

from pydantic import BaseModel, Field

from app.toolkit import Accepted, Cancelled, Context, Declined, InputRequired, Invalid, Missing, Question, tool
from app.tools.desk import start_pipeline


class Stage(Enum):
    STAGING = "staging"
    CANARY = "prod-canary"
    PRODUCTION = "prod"

    @property
    def label(self) -> str:
        """What the user sees; the tool gets the value."""
        return {"staging": "Staging", "prod-canary": "Production, 5 % of users", "prod": "Production"}[self.value]


class Release(BaseModel):
    stage: Stage = Field(default=Stage.STAGING, description="Where to")
    note: str | None = Field(default=None, max_length=200, description="For the release log")


@tool(title="Deploy a service", destructive=True, scopes=["deployments:write"])
async def deploy(
    service: Annotated[str, Field(description="Service name, like billing")], ctx: Context
) -> str | InputRequired:
    """Deploy the newest build of a service. Asks the user where to."""
    match ctx.responses.get("release", Release):
        case Missing():
            question = Question(f"Deploy {service}: where to?", Release)
            return InputRequired({"release": question}, state={"service": service})
        case Invalid(reason):
            question = Question(f"That does not work: {reason}. Deploy {service}: where to?", Release)
            return InputRequired({"release": question}, state=ctx.state)
        case Accepted(Release(stage=stage, note=note)):
            await start_pipeline(ctx.state["service"], stage.value)
            return f"{service} is on its way to {stage.value}{f': {note}' if note else ''}."
        case Declined():
            return ctx.stop(f"The user declined. {service} is not deployed.")
        case Cancelled():
            return ctx.stop(f"The user dismissed the question. {service} is not deployed.")
