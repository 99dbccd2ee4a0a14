"""Our own rules for template.yaml and its nested templates. Each is a function from a deployment to sentences.

Each sentence says where, what is wrong, and ends with the remedy.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Final, TypeAlias

from infra.template_rules import access, functions, gateway, operations, secrets
from infra.template_rules.deployment import Deployment

Rule: TypeAlias = Callable[[Deployment], Iterable[str]]

RULES: Final[Sequence[Rule]] = (
    *functions.RULES,
    *gateway.RULES,
    *access.RULES,
    *secrets.RULES,
    *operations.RULES,
)

__all__ = ["RULES", "Deployment", "Rule"]
