"""What guards effects in one deployment, as one thing to hand on."""

from typing import NamedTuple

from app.effects.approvals import Approvals
from app.effects.limits import Limits
from app.effects.once import Once


class Effects(NamedTuple):
    """That effects happen once, what users allowed, and how often they may be asked."""

    once: Once
    approvals: Approvals
    limits: Limits
