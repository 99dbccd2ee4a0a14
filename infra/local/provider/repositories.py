"""What Local Hub keeps for its users: a few repositories each."""

from collections.abc import Mapping
from typing import Any, Final

from infra.local.identity.settings import User

_REPOSITORIES: Final[Mapping[str, list[dict[str, Any]]]] = {
    "alice-hub": [
        {"name": "garden-plans", "private": False, "description": "What grows where"},
        {"name": "diary", "private": True, "description": "Not for everybody"},
    ],
    "bob-hub": [{"name": "bread-recipes", "private": False, "description": "Sourdough, mostly"}],
}


def of(user: User) -> list[dict[str, Any]]:
    """The repositories of a user, their own name in each: another's would be noticed."""
    return [{"owner": user.subject, **each} for each in _REPOSITORIES.get(user.subject, [])]
