"""How much is tried, and how long one input may take.

`make test` tries what takes some seconds. FUZZ_TIMES multiplies it: `make fuzz` sets it.
"""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from hypothesis import HealthCheck, settings

TIMES: Final = int(os.environ.get("FUZZ_TIMES", "1"))
AT_MOST_SECONDS: Final = 1.0
"""Some hundred times what an input takes, and far less than what a quadratic parser takes for a megabyte."""


def tries(count: int) -> settings:
    """The settings of a test that tries so many inputs in `make test`."""
    return settings(
        max_examples=count * TIMES,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.function_scoped_fixture],
    )


@contextmanager
def no_hang() -> Iterator[None]:
    """Raise AssertionError when the block takes too long: on the processor, whatever else this computer does."""
    started = time.process_time()
    yield
    took = time.process_time() - started
    assert took < AT_MOST_SECONDS, f"{took:.2f} s for one input"
