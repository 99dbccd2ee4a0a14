"""What template.yaml deploys, read for local use: its functions and its routes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from infra.local.emulator.definition_body import definition_routes
from infra.local.emulator.errors import TemplateError
from infra.local.emulator.function import Function, read_function
from infra.local.emulator.intrinsics import Scope, parse
from infra.local.emulator.routes import DEFAULT_KEY, Route, integration_seconds, route_key

# The gateway would answer these itself, and the emulator's gateway would not.
_UNSUPPORTED_API = ("Auth", "CorsConfiguration", "DefinitionUri")


@dataclass(frozen=True, kw_only=True)
class Template:
    functions: Sequence[Function]
    routes: Sequence[Route]
    stage: str


def load(
    path: Path,
    *,
    parameters: Mapping[str, str],
    environment: Mapping[str, str] | None = None,
    attributes: Mapping[str, str] | None = None,
    built: Path | None = None,
    stack_name: str = "local",
) -> Template:
    """Read the template with these parameter values; `environment` wins over every function's variables.

    `attributes` are what references to other resources and nested stacks stand for, like "Keys.Outputs.KeyArn".
    `built` is a folder with the built code of each function under its logical id, in place of every CodeUri.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise TemplateError(f"Cannot read {path}: {error.strerror}. Pass the path of a SAM template.") from error
    document = parse(text)
    scope = Scope(document, parameters=parameters, stack_name=stack_name, attributes=attributes)
    resources = {name: resource for name, resource in document["Resources"].items() if scope.active(resource)}
    shared = document.get("Globals", {})

    functions: list[Function] = []
    events: list[tuple[Route, str]] = []
    for logical_id, resource in resources.items():
        if resource["Type"] == "AWS::Serverless::Function":
            properties = _merge(shared.get("Function", {}), resource.get("Properties", {}))
            if built is not None:
                properties["CodeUri"] = str(built.resolve() / logical_id)
            function = read_function(logical_id, properties, scope, path.parent, environment or {})
            functions.append(function)
            events += _event_routes(function, properties, scope)
    if len({function.name for function in functions}) < len(functions):
        raise TemplateError(
            f"{path.name} has logical ids that differ only in case or in the word Function. Rename one of them."
        )
    if not functions:
        raise TemplateError(f"{path.name} has no AWS::Serverless::Function. Add one with an HttpApi event.")

    apis = {name: resource for name, resource in resources.items() if resource["Type"] == "AWS::Serverless::HttpApi"}
    if len(apis) > 1:
        raise TemplateError(
            f"{path.name} has {len(apis)} HTTP APIs and one is emulated. Keep one of: {', '.join(apis)}."
        )
    api: dict[str, Any] = next(
        (_merge(shared.get("HttpApi", {}), resource.get("Properties", {})) for resource in apis.values()), {}
    )
    return Template(
        functions=functions,
        routes=_routes(api, events, functions, scope),
        stage=str(scope.resolve(api.get("StageName", DEFAULT_KEY))),
    )


def _merge(base: Any, override: Any) -> Any:
    """SAM Globals: mappings merge, lists add up, everything else is replaced."""
    if isinstance(base, dict) and isinstance(override, dict):
        return {**base, **{key: _merge(base[key], value) if key in base else value for key, value in override.items()}}
    if isinstance(base, list) and isinstance(override, list):
        return [*base, *override]
    return override


def _event_routes(function: Function, properties: Mapping[str, Any], scope: Scope) -> list[tuple[Route, str]]:
    routes: list[tuple[Route, str]] = []
    for name, event in properties.get("Events", {}).items():
        where = f"{function.logical_id} event {name}"
        if event["Type"] == "Api":
            raise TemplateError(f"{where} belongs to a REST API, which is not emulated. Use Type: HttpApi.")
        if event["Type"] != "HttpApi":
            continue
        event_properties = event.get("Properties", {})
        if str(event_properties.get("PayloadFormatVersion", "2.0")) != "2.0":
            raise TemplateError(f"{where} asks for payload format 1.0, which is not emulated. Use 2.0.")
        key = route_key(event_properties.get("Method", "ANY"), event_properties.get("Path", DEFAULT_KEY))
        timeout = integration_seconds(scope.resolve(event_properties.get("TimeoutInMillis")))
        routes.append((Route(key=key, function=function.name, timeout=timeout), where))
    return routes


def _routes(
    api: Mapping[str, Any], events: Sequence[tuple[Route, str]], functions: Sequence[Function], scope: Scope
) -> list[Route]:
    """SAM: what DefinitionBody says about a route wins, and events add the routes that it does not have."""
    if unsupported := [key for key in _UNSUPPORTED_API if key in api]:
        raise TemplateError(
            f"HttpApi {', '.join(unsupported)} is not emulated. Do it in the function, or remove it from the template."
        )
    routes: dict[str, Route] = {}
    body = api.get("DefinitionBody", {})
    used = {key: scope.resolve(body[key]) for key in ("paths", "components") if key in body}
    for route in definition_routes(used, functions):
        routes[route.key] = route
        # An event is what gives API Gateway the permission to invoke the function; without it AWS answers 500.
        if not any(_permits(event, route) for event, _ in events):
            raise TemplateError(
                f"DefinitionBody sends {route.key!r} to {route.function}, but no HttpApi event of that function "
                "allows it. Add the event: it is the invoke permission."
            )
    declared = set(routes)
    for event, where in events:
        if event.key in declared:
            continue
        if event.key in routes:
            raise TemplateError(f"{where} repeats the route {event.key!r}. Remove one of the two events.")
        routes[event.key] = event
    return list(routes.values())


def _permits(event: Route, route: Route) -> bool:
    if event.function != route.function:
        return False
    return event.key == DEFAULT_KEY or (event.path == route.path and event.method in ("ANY", route.method))
