"""Rules about the HTTP API: its routes, what it does to answers, and what it writes down."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from infra.local.emulator.errors import TemplateError
from infra.local.emulator.intrinsics import Scope
from infra.local.emulator.routes import route_key
from infra.template_rules.deployment import Deployment

_ALIAS_ARN = re.compile(r"/functions/arn:[^/]+:function:(?P<name>[^/:]+)(?::(?P<alias>[^/:]+))?/invocations$")
_PATH = re.compile(r"\$context\.[\w.]*[pP]ath\w*")
_CHALLENGE: Final = "$response.header.x-mcp-challenge"
_CHALLENGED: Final = ("400", "401", "403")
_ANY: Final = "x-amazon-apigateway-any-method"


def _scope(deployment: Deployment) -> Scope:
    needed = deployment.source.get("Parameters", {})
    return Scope(
        deployment.source,
        parameters={name: each.get("Default", "x") for name, each in needed.items()},
        stack_name="stack",
    )


def _integrations(deployment: Deployment) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Every route of the API's OpenAPI body with its integration, a shared one looked up."""
    for api in deployment.resources("AWS::ApiGatewayV2::Api"):
        body = api.properties.get("Body", {})
        shared = body.get("components", {}).get("x-amazon-apigateway-integrations", {})
        for path, operations in body.get("paths", {}).items():
            for method, operation in operations.items():
                integration = operation.get("x-amazon-apigateway-integration", {})
                if "$ref" in integration:
                    integration = shared.get(str(integration["$ref"]).rpartition("/")[2], {})
                yield route_key("ANY" if method == _ANY else method, path), integration


def routes_invoke_the_alias(deployment: Deployment) -> Iterator[str]:
    """AWS: SnapStart works on published versions and on aliases of them, never on $LATEST."""
    scope = _scope(deployment)
    aliases = {
        scope.function_name(name): scope.alias_arn(name).rpartition(":")[2]
        for name, resource in deployment.source["Resources"].items()
        if resource["Type"] == "AWS::Serverless::Function"
    }
    for key, integration in _integrations(deployment):
        try:
            found = _ALIAS_ARN.search(str(scope.resolve(integration.get("uri", ""))))
        except TemplateError as error:
            yield f"The route {key} cannot be read: {error}"
            continue
        name = found["name"] if found else "no function"
        if found is None or name not in aliases:
            yield f"The route {key} invokes {name}. End its uri in the function's name and alias."
        elif found["alias"] != aliases[name]:
            yield (
                f"The route {key} invokes {name} without its alias, and so without SnapStart. "
                f"End its uri in :{aliases[name]}."
            )


def routes_and_events_agree(deployment: Deployment) -> Iterator[str]:
    """AWS SAM: an HttpApi event is what permits the API to invoke the function."""
    events = {
        route_key(event["Properties"].get("Method", "ANY"), event["Properties"].get("Path", "$default"))
        for resource in deployment.source["Resources"].values()
        if resource["Type"] == "AWS::Serverless::Function"
        for event in resource["Properties"].get("Events", {}).values()
        if event["Type"] == "HttpApi"
    }
    routes = {
        route_key("ANY" if method == _ANY else method, path)
        for resource in deployment.source["Resources"].values()
        if resource["Type"] == "AWS::Serverless::HttpApi"
        for path, operations in resource["Properties"].get("DefinitionBody", {}).get("paths", {}).items()
        for method in operations
    }
    for key in sorted(routes - events):
        yield f"The route {key} has no event, and the API may not invoke its function. Add an HttpApi event for it."
    for key in sorted(events - routes):
        yield f"The event {key} has no route of ours, and so no challenge in its answers. Add it to DefinitionBody."


def challenges_reach_the_client(deployment: Deployment) -> Iterator[str]:
    """RFC 9728 section 5.1; API Gateway renames WWW-Authenticate."""
    for key, integration in _integrations(deployment):
        mapped = integration.get("responseParameters", {})
        missing = [
            status
            for status in _CHALLENGED
            if mapped.get(status, {}).get("overwrite:header.www-authenticate") != _CHALLENGE
        ]
        if missing:
            yield (
                f"The route {key} loses WWW-Authenticate with {', '.join(missing)}, and clients do not find out where "
                f"to log in. Map overwrite:header.www-authenticate to {_CHALLENGE} in its responseParameters."
            )


def the_gateway_waits_longer_than_the_function(deployment: Deployment) -> Iterator[str]:
    """A function that is cut off by its own timeout says so in its log."""
    slowest = max(int(each.properties.get("Timeout", 3)) for each in deployment.resources("AWS::Lambda::Function"))
    for key, integration in _integrations(deployment):
        milliseconds = int(integration.get("timeoutInMillis", 30000))
        if milliseconds <= slowest * 1000:
            yield (
                f"The route {key} gives up after {milliseconds} ms, and functions may take {slowest} s. "
                "Raise timeoutInMillis, to 30000 at most, or lower Timeout."
            )
        if str(integration.get("payloadFormatVersion")) != "2.0":
            yield f"The route {key} sends events that the handlers do not read. Set payloadFormatVersion: '2.0'."


def requests_are_throttled(deployment: Deployment) -> Iterator[str]:
    """Without limits one caller can use up the account's concurrency, and the budget."""
    for stage in deployment.resources("AWS::ApiGatewayV2::Stage"):
        settings = stage.properties.get("DefaultRouteSettings", {})
        if not (settings.get("ThrottlingBurstLimit") and settings.get("ThrottlingRateLimit")):
            yield (
                f"{stage.where} takes as many requests as the account allows. "
                "Set ThrottlingBurstLimit and ThrottlingRateLimit in DefaultRouteSettings."
            )


def the_access_log_holds_no_links(deployment: Deployment) -> Iterator[str]:
    """SECURITY: /connect/{handle} is a link that only its user may open, and logs are read by many."""
    for stage in deployment.resources("AWS::ApiGatewayV2::Stage"):
        written = str(stage.properties.get("AccessLogSettings", {}).get("Format", ""))
        if not written:
            yield f"{stage.where} keeps no access log. Set AccessLogSettings."
            continue
        for variable in sorted(set(_PATH.findall(written))):
            yield (
                f"{stage.where} writes {variable} to the access log, with the connect links of users in it. "
                "Log $context.routeKey in its place."
            )
        try:
            json.loads(written)
        except ValueError:
            yield f"{stage.where} writes an access log that is no JSON. Write Format as one JSON object."


RULES: Final = (
    routes_invoke_the_alias,
    routes_and_events_agree,
    challenges_reach_the_client,
    the_gateway_waits_longer_than_the_function,
    requests_are_throttled,
    the_access_log_holds_no_links,
)
