"""Completion of the arguments of prompts and resource templates (server/utilities/completion)."""

from collections.abc import Mapping
from itertools import islice
from typing import Final

from app.errors import InsufficientScope
from app.principal import AccessToken
from app.protocol import messages
from app.protocol.features import CompletionContext, Prompt, Resource
from app.protocol.jsonrpc import ErrorCode, JSONRPCError
from app.strict_json import JsonObject

MAX_VALUES: Final = 100


def complete(
    params: JsonObject, access_token: AccessToken, prompts: Mapping[str, Prompt], resources: Mapping[str, Resource]
) -> JsonObject:
    """The CompleteResult of a request. Raises JSONRPCError (-32602), and InsufficientScope."""
    reference = messages.member(params, "ref", dict, "an object")
    argument = messages.member(params, "argument", dict, "an object")
    name, value = argument.get("name"), argument.get("value")
    if not isinstance(name, str) or not isinstance(value, str):
        raise JSONRPCError(ErrorCode.INVALID_PARAMS, '"argument" must have "name" and "value", both strings')
    feature = _referred(reference, prompts, resources)
    if not access_token.scopes.issuperset(feature.scopes):
        raise InsufficientScope(feature.scopes)
    completer = feature.completers.get(name)
    if completer is None:
        return messages.complete({"completion": {"values": [], "total": 0, "hasMore": False}})
    found = list(islice(completer(value, CompletionContext(access_token, _resolved(params))), MAX_VALUES + 1))
    completion: JsonObject = {"values": found[:MAX_VALUES], "hasMore": len(found) > MAX_VALUES}
    if len(found) <= MAX_VALUES:
        completion["total"] = len(found)
    return messages.complete({"completion": completion})


def _referred(
    reference: JsonObject, prompts: Mapping[str, Prompt], resources: Mapping[str, Resource]
) -> Prompt | Resource:
    feature: Prompt | Resource | None = None
    match reference:
        case {"type": "ref/prompt", "name": str(name)}:
            feature = prompts.get(name)
        case {"type": "ref/resource", "uri": str(uri)}:
            feature = resources.get(uri)
        case _:
            raise JSONRPCError(
                ErrorCode.INVALID_PARAMS, '"ref" must be a ref/prompt with "name" or a ref/resource with "uri"'
            )
    if feature is None:
        raise JSONRPCError(ErrorCode.INVALID_PARAMS, '"ref" names nothing that this server offers: see the lists')
    return feature


def _resolved(params: JsonObject) -> dict[str, str]:
    context = params.get("context", {})
    arguments = context.get("arguments", {}) if isinstance(context, dict) else None
    if not isinstance(arguments, dict) or not all(isinstance(value, str) for value in arguments.values()):
        raise JSONRPCError(ErrorCode.INVALID_PARAMS, '"context.arguments" must map argument names to strings')
    return arguments
