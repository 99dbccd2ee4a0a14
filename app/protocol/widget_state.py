"""Widget state: what a view of a tool's result keeps between its calls, sealed for the user who got it.

A view holds the token and gives it back in the arguments of another tool call. It opens for the same user,
client and name only, and cannot be read or changed on the way; it can be shown twice.
"""

from typing import Any, Final

from app.errors import SealRefused, WidgetStateRefused
from app.principal import Principal
from app.sealing import Purpose, Seal, SealingKeys

LIFETIME: Final = 3600
"""Seconds for which a view's state is valid unless said otherwise."""


class WidgetState:
    """Seals the state that a view gets, and opens the state that it gives back."""

    __slots__ = ("_audience", "_seal")

    def __init__(self, keyring: SealingKeys, *, audience: str) -> None:
        self._seal = Seal(keyring, Purpose.WIDGET)
        self._audience = audience

    def seal(self, principal: Principal, name: str, value: Any, *, now: int, lifetime: int = LIFETIME) -> str:
        """A token for a JSON value. Raises ValueError when it would be too large, TypeError for what is no JSON."""
        return self._seal.seal({"v": 1, "exp": now + lifetime, "s": value}, bound_to=self._bound_to(principal, name))

    def open(self, principal: Principal, name: str, token: object, *, now: int) -> Any:
        """The value that was sealed for this user, client and name. Raises WidgetStateRefused."""
        try:
            claims = self._seal.open(token, bound_to=self._bound_to(principal, name))
        except SealRefused as error:
            raise WidgetStateRefused(error.reason) from None
        expires = claims.get("exp")
        if claims.get("v") != 1 or type(expires) is not int:
            raise WidgetStateRefused("claims")
        if not (now < expires):
            raise WidgetStateRefused("expired")
        return claims.get("s")

    def _bound_to(self, principal: Principal, name: str) -> tuple[bytes, ...]:
        return self._audience.encode(), *principal.fields(), name.encode()
