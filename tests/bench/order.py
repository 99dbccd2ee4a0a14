"""The order in which peers take turns: by chance, from a seed that is printed, so that no peer is always the first."""

from collections.abc import Sequence
from random import Random  # noqa: TID251  nothing secret: a run can be repeated in its order
from typing import TypeVar

T = TypeVar("T")


class Order:
    def __init__(self, seed: int) -> None:
        self._random = Random(seed)

    def of(self, turns: Sequence[T]) -> list[T]:
        """The same turns in a new order."""
        return self._random.sample(turns, len(turns))
