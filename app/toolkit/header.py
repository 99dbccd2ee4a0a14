"""Arguments that are mirrored into HTTP headers: `Annotated[str, Header("Region")]` (Streamable HTTP, x-mcp-header)."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, get_args, get_origin

from pydantic import GetJsonSchemaHandler
from pydantic_core import CoreSchema

from app.errors import ConfigurationError
from app.strict_json import JsonObject
from app.toolkit.signature import Signature

KEYWORD: Final = "x-mcp-header"
_TOKEN: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,64}\Z")
_PRIMITIVE: Final = ("string", "integer", "boolean")


@dataclass(frozen=True, slots=True)
class Header:
    """Mirror an argument into the header `Mcp-Param-<name>`, for gateways that route or limit by it.

    Only for str, int, bool and Literal. A client sends the header and the server requires that both agree.
    """

    name: str

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonObject:
        return {**handler(schema), KEYWORD: self.name}


def annotated_headers(signature: Signature) -> dict[tuple[str, ...], str]:
    """Path of an argument -> header name, from the annotations. Raises ConfigurationError."""
    found: dict[tuple[str, ...], str] = {}
    problems: list[str] = []
    for name, annotation in signature.parameters.items():
        markers = [each for each in getattr(annotation, "__metadata__", ()) if isinstance(each, Header)]
        if markers and not _is_primitive(get_args(annotation)[0]):
            problems.append(
                f"{signature.name}: {name} has a Header, which only str, int, bool and Literal can have: "
                "change its type, and give it a default instead of None."
            )
        if markers:
            found[(name,)] = markers[0].name
        elif any(_has_marker(each) for each in get_args(annotation)):
            problems.append(f"{signature.name}: a Header inside {name} is not reachable: put it on a plain parameter.")
    _check(signature.name, found, problems)
    return found


def declared_headers(tool: str, schema: JsonObject) -> dict[tuple[str, ...], str]:
    """Path of an argument -> header name, from a hand-written schema. Raises ConfigurationError."""
    found: dict[tuple[str, ...], str] = {}
    problems: list[str] = []
    reachable = dict(_reachable(schema, ()))
    for path, member in reachable.items():
        if KEYWORD not in member:
            continue
        found[path] = str(member[KEYWORD])
        if member.get("type") not in _PRIMITIVE:
            problems.append(f"{tool}: {KEYWORD} on {'.'.join(path)} needs the type string, integer or boolean.")
    if _count(schema) > len(found):
        problems.append(
            f"{tool}: an {KEYWORD} is not reachable through `properties` alone: move it to a plain property."
        )
    _check(tool, found, problems)
    return found


def _check(tool: str, found: Mapping[tuple[str, ...], str], problems: list[str]) -> None:
    problems += [
        f"{tool}: the header name {name!r} must be 1 to 64 characters of an HTTP field name: rename it."
        for name in found.values()
        if not _TOKEN.match(name)
    ]
    if len({name.lower() for name in found.values()}) < len(found):
        problems.append(f"{tool}: two arguments have the same header name: give each its own.")
    if problems:
        raise ConfigurationError(problems)


def _is_primitive(annotation: Any) -> bool:
    if get_origin(annotation) is Literal:
        values = get_args(annotation)
        return all(isinstance(value, str) for value in values) or all(type(value) is int for value in values)
    return annotation in (str, int, bool)


def _has_marker(annotation: Any) -> bool:
    return any(isinstance(each, Header) for each in getattr(annotation, "__metadata__", ())) or any(
        map(_has_marker, get_args(annotation))
    )


def _reachable(schema: JsonObject, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], JsonObject]]:
    properties = schema.get("properties")
    for name, member in properties.items() if isinstance(properties, dict) else ():
        if isinstance(member, dict):
            yield (*path, name), member
            yield from _reachable(member, (*path, name))


def _count(value: Any) -> int:
    if isinstance(value, dict):
        return sum(map(_count, value.values())) + (isinstance(value.get(KEYWORD), str))
    return sum(map(_count, value)) if isinstance(value, list) else 0
