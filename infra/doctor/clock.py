"""Whether two clocks agree: tokens and states are valid by the clock."""

from typing import Final

from app.authorization.access_token import LEEWAY
from infra.doctor.finding import Finding, fail, ok, warn

NOTICEABLE: Final = 5


def check_clock(subject: str, server: str, skew: float | None) -> Finding:
    """`skew` is by how many seconds `server` is ahead of this machine."""
    if skew is None:
        return warn(subject, f"{server} sends no Date header: compare its clock with this one by hand.")
    apart = f"The clock of {server} is {abs(skew):.0f} s {'ahead of' if skew > 0 else 'behind'} this machine's"
    if not abs(skew) <= LEEWAY:
        return fail(
            subject, f"{apart}, and tokens are refused beyond {LEEWAY} s: synchronise the one that is wrong (NTP)."
        )
    if abs(skew) > NOTICEABLE:
        return warn(subject, f"{apart}: synchronise the one that is wrong (NTP) before it is more than {LEEWAY} s.")
    return ok(subject, f"The clocks of {server} and of this machine agree.")
