"""What a check found: how bad it is, what it is about, and a sentence that ends with the remedy."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum


class Level(StrEnum):
    """`fail` does not work, or not safely. `warn` works, and somebody should know."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the report. Never holds a secret."""

    level: Level
    subject: str
    text: str

    def __str__(self) -> str:
        # What another server wrote may stand in a text: one finding stays one line of a terminal.
        text = "".join(character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in self.text)
        return f"{self.level:<4}  {self.subject:<24} {text}"


def ok(subject: str, text: str) -> Finding:
    return Finding(Level.OK, subject, text)


def warn(subject: str, text: str) -> Finding:
    return Finding(Level.WARN, subject, text)


def fail(subject: str, text: str) -> Finding:
    return Finding(Level.FAIL, subject, text)


def any_fails(findings: Iterable[Finding]) -> bool:
    return any(each.level is Level.FAIL for each in findings)
