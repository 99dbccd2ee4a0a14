"""Medians, and ratios that are taken pair by pair: what was noisy for one was noisy for the other."""

import math
from collections.abc import Sequence
from statistics import median


def paired_ratio(values: Sequence[float], base: Sequence[float]) -> float:
    """The median of the ratios of what was measured side by side."""
    return median(value / other for value, other in zip(values, base, strict=True))


def percentile(values: Sequence[float], share: float) -> float:
    """The value that this share of all values is not above (nearest rank)."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]
