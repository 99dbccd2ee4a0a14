"""URI templates of resources (RFC 6570): `{name}` for one path segment, `{+name}` for what may hold slashes."""

import re
from typing import Final
from urllib.parse import unquote

from app.errors import ConfigurationError

_EXPRESSION: Final = re.compile(r"\{([^{}]*)\}")
_VARIABLE: Final = re.compile(r"(?P<reserved>\+?)(?P<name>[A-Za-z_][A-Za-z0-9_]*)\Z")
_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_PERCENT: Final = re.compile(r"%(?![0-9A-Fa-f]{2})")


class UriTemplate:
    """A URI or URI template, and the variables of the URIs that match it. Raises ConfigurationError."""

    __slots__ = ("_pattern", "text", "variables")

    def __init__(self, text: str) -> None:
        self.text = text
        names: list[str] = []
        pattern = ""
        problems = []
        if not _SCHEME.match(text):
            problems.append(f"The resource URI {text!r} has no scheme: write it like notes://today.")
        for index, part in enumerate(_EXPRESSION.split(text)):
            if index % 2 == 0:
                if "{" in part or "}" in part:
                    problems.append(f"The URI template {text!r} has an unpaired brace: write variables as {{name}}.")
                pattern += re.escape(part)
                continue
            variable = _VARIABLE.match(part)
            if variable is None:
                problems.append(
                    f"The URI template {text!r} has the expression {{{part}}}: use {{name}}, or {{+name}} for a value "
                    "that may hold slashes."
                )
                continue
            names.append(variable["name"])
            pattern += r"([^?#\x00-\x20\x7f]+)" if variable["reserved"] else r"([^/?#\x00-\x20\x7f]+)"
        if len(set(names)) < len(names):
            problems.append(f"The URI template {text!r} has a variable twice: give each its own name.")
        if problems:
            raise ConfigurationError(problems)
        self.variables = tuple(names)
        self._pattern = re.compile(pattern + r"\Z")

    def match(self, uri: str) -> dict[str, str] | None:
        """The decoded variables of a URI that matches, else None.

        The values are the caller's words: `..` and, percent-encoded, slashes are among what may come.
        """
        found = self._pattern.match(uri)
        if found is None:
            return None
        try:
            return {name: _decoded(value) for name, value in zip(self.variables, found.groups(), strict=True)}
        except ValueError:
            return None

    def __repr__(self) -> str:
        return f"UriTemplate({self.text!r})"


def _decoded(text: str) -> str:
    if _PERCENT.search(text):
        raise ValueError("a percent sign without two hexadecimal digits")
    return unquote(text, errors="strict")
