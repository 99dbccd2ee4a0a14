"""HTTP API response parameter mapping: `overwrite:header.name: $response.header.other`, per status code. Pure.

https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-parameter-mapping.html
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast

from infra.local.emulator.errors import TemplateError

Headers = list[tuple[str, str]]
Action = Literal["append", "overwrite", "remove"]

_KEY = re.compile(r"(append|overwrite|remove):header\.([!#$%&'*+.^_`|~0-9A-Za-z-]+)")
_WHOLE = re.compile(r"\$response\.header\.([^\s{}]+)")
_INTERPOLATED = re.compile(r"\$\{response\.header\.([^\s{}]+)\}")

# "Reserved headers" of the page above: API Gateway refuses the deployment.
_RESERVED = re.compile(
    r"access-control-.*|apigw-.*|authorization|connection|content-encoding|content-length|content-location"
    r"|forwarded|keep-alive|origin|proxy-authenticate|proxy-authorization|te|trailers|transfer-encoding|upgrade"
    r"|x-amz-.*|x-amzn-.*|x-forwarded-for|x-forwarded-host|x-forwarded-proto|via"
)


@dataclass(frozen=True)
class HeaderRule:
    """One line of a mapping."""

    action: Action
    header: str
    value: str


Mappings = Mapping[int, Sequence[HeaderRule]]


def parse(node: Mapping[Any, Mapping[str, Any]]) -> Mappings:
    """The rules per status code, refusing what API Gateway or this emulator would not apply."""
    return {
        int(status): [_rule(str(key), str(value)) for key, value in rules.items()] for status, rules in node.items()
    }


def _rule(key: str, value: str) -> HeaderRule:
    match = _KEY.fullmatch(key)
    if match is None:
        raise TemplateError(
            f"responseParameters key {key!r} is not emulated. "
            "Use append:header.x, overwrite:header.x or remove:header.x."
        )
    action, header = cast(Action, match[1]), match[2].lower()
    if _RESERVED.fullmatch(header):
        raise TemplateError(f"responseParameters may not change {header}: API Gateway reserves it. Map another header.")
    if "$" in _INTERPOLATED.sub("", _WHOLE.sub("", value)):
        raise TemplateError(
            f"responseParameters value {value!r} is not emulated. Use $response.header.name or a constant."
        )
    return HeaderRule(action, header, value)


def apply(rules: Sequence[HeaderRule], headers: Headers, *, integration: Mapping[str, str]) -> Headers:
    """The headers after the rules; `integration` is what the function itself sent, by lower-case name."""
    for rule in rules:
        if rule.action == "remove":
            headers = [(name, value) for name, value in headers if name != rule.header]
            continue
        value = _evaluate(rule.value, integration)
        if value is None:
            continue
        if rule.action == "overwrite":
            headers = [(name, old) for name, old in headers if name != rule.header]
        headers = [*headers, (rule.header, value)]
    return headers


def _evaluate(expression: str, integration: Mapping[str, str]) -> str | None:
    if whole := _WHOLE.fullmatch(expression):
        # Undocumented for an absent header; leaving the target alone is the reading that invents no empty header.
        return integration.get(whole[1].lower())
    return _INTERPOLATED.sub(lambda match: integration.get(match[1].lower(), ""), expression)
