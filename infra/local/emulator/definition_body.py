"""The OpenAPI document of an HTTP API: which route invokes which function. Pure.

https://docs.aws.amazon.com/apigateway/latest/developerguide/api-gateway-swagger-extensions-integration.html
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from infra.local.emulator import response_parameters
from infra.local.emulator.errors import TemplateError
from infra.local.emulator.function import Function
from infra.local.emulator.routes import Route, integration_seconds, route_key

_INTEGRATION = "x-amazon-apigateway-integration"
_INTEGRATIONS_PREFIX = "#/components/x-amazon-apigateway-integrations/"
_ANY_METHOD = "x-amazon-apigateway-any-method"
# A path item also has keys that are no operation, like "parameters" (OpenAPI 3.0, Path Item Object).
_OPERATIONS = frozenset({"delete", "get", "head", "options", "patch", "post", "put", _ANY_METHOD})
_FUNCTION_ARN = re.compile(r"/functions/(arn:[^/]+:function:([^/:]+)(?::[^/]+)?)/invocations$")


def definition_routes(body: Mapping[str, Any], functions: Sequence[Function]) -> list[Route]:
    """The routes of a DefinitionBody whose intrinsic functions are resolved."""
    by_function_name = {function.function_name: function for function in functions}
    shared = body.get("components", {}).get("x-amazon-apigateway-integrations", {})
    routes: list[Route] = []
    for path, operations in body.get("paths", {}).items():
        for method, operation in operations.items():
            if method not in _OPERATIONS:
                continue
            key = route_key("ANY" if method == _ANY_METHOD else method, path)
            if not isinstance(operation, dict) or _INTEGRATION not in operation:
                raise TemplateError(f"DefinitionBody {key!r} has no {_INTEGRATION}. Add one, or a $ref to one.")
            integration = operation[_INTEGRATION]
            if "$ref" in integration:
                name = str(integration["$ref"]).removeprefix(_INTEGRATIONS_PREFIX)
                if name not in shared:
                    raise TemplateError(f"DefinitionBody {key!r} refers to {integration['$ref']}. Define it there.")
                integration = shared[name]
            routes.append(_integration_route(key, integration, by_function_name))
    return routes


def _integration_route(key: str, integration: Mapping[str, Any], functions: Mapping[str, Function]) -> Route:
    if str(integration.get("type", "")).lower() != "aws_proxy":
        raise TemplateError(f"DefinitionBody {key!r} is not type: aws_proxy, and only that is emulated.")
    if str(integration.get("payloadFormatVersion")) != "2.0":
        raise TemplateError(f"DefinitionBody {key!r} needs payloadFormatVersion: '2.0'.")
    arn = _FUNCTION_ARN.search(str(integration.get("uri", "")))
    function = functions.get(arn[2]) if arn else None
    if arn is None or function is None:
        raise TemplateError(
            f"DefinitionBody {key!r} names no function of this template in its uri. Use !Ref Function.Alias."
        )
    if arn[1] != function.arn:
        # Permission and SnapStart both belong to the alias that SAM publishes.
        raise TemplateError(f"DefinitionBody {key!r} must invoke {function.arn}. Use !Ref {function.logical_id}.Alias.")
    return Route(
        key=key,
        function=function.name,
        timeout=integration_seconds(integration.get("timeoutInMillis")),
        response_parameters=response_parameters.parse(integration.get("responseParameters", {})),
    )
