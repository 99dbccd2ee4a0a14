"""Forms of one field, and the kinds of types that a field may have."""

from enum import Enum, IntEnum, StrEnum
from typing import Annotated, Any, Final, Literal, NewType

from pydantic import BaseModel, Field, create_model
from typing_extensions import TypeAliasType

from app.protocol.elicitation import Form


class Size(StrEnum):
    SMALL = "small"
    EXTRA_LARGE = "extra_large"


class Stage(Enum):
    TEST = "t"
    PRODUCTION = "prod"


class Colour(StrEnum):
    RED = "#f00"
    BLUE = "#00f"

    @property
    def label(self) -> str:
        return {"#f00": "Rouge", "#00f": "Bleu"}[self.value]


class Priority(IntEnum):
    LOW = 1


class Address(BaseModel):
    street: str


Agent = TypeAliasType("Agent", Literal["ana", "ben"])
Maybe = TypeAliasType("Maybe", Annotated[int, Field(ge=1)] | None)
TicketId = NewType("TicketId", str)

SIZES: Final = {"type": "string", "enum": ["small", "extra_large"]}
STAGES: Final = [{"const": "t", "title": "Test"}, {"const": "prod", "title": "Production"}]
COLOURS: Final = [{"const": "#f00", "title": "Rouge"}, {"const": "#00f", "title": "Bleu"}]


def form(annotation: Any, default: Any = ..., name: str = "field") -> Form[BaseModel]:
    """A form of one field."""
    fields: dict[str, Any] = {name: (annotation, default)}
    return Form(create_model("Asked", **fields))
