"""A Lambda function as the template declares it, its variables with values. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from infra.local.emulator.errors import MissingValue, TemplateError
from infra.local.emulator.intrinsics import Scope

# https://docs.aws.amazon.com/lambda/latest/dg/configuration-envvars.html: a deployment that sets these fails.
_RESERVED_VARIABLES = frozenset(
    {
        "_HANDLER",
        "_X_AMZN_TRACE_ID",
        "AWS_ACCESS_KEY_ID",
        "AWS_DEFAULT_REGION",
        "AWS_EXECUTION_ENV",
        "AWS_LAMBDA_FUNCTION_MEMORY_SIZE",
        "AWS_LAMBDA_FUNCTION_NAME",
        "AWS_LAMBDA_FUNCTION_VERSION",
        "AWS_LAMBDA_INITIALIZATION_TYPE",
        "AWS_LAMBDA_LOG_GROUP_NAME",
        "AWS_LAMBDA_LOG_STREAM_NAME",
        "AWS_LAMBDA_RUNTIME_API",
        "AWS_REGION",
        "AWS_SECRET_ACCESS_KEY",
        "AWS_SESSION_TOKEN",
        "LAMBDA_RUNTIME_DIR",
        "LAMBDA_TASK_ROOT",
    }
)


@dataclass(frozen=True, kw_only=True)
class Function:
    """One Lambda function. `name` is the logical id without "Function", in lower case."""

    name: str
    logical_id: str
    function_name: str
    arn: str
    handler: str
    runtime: str
    timeout: float
    memory_size: int
    code: Path
    snapstart: bool
    log_group: str
    log_format: str
    log_level: str | None
    # Values may be secrets (NoEcho parameters).
    variables: Mapping[str, str] = field(repr=False)


def read_function(
    logical_id: str, properties: Mapping[str, Any], scope: Scope, root: Path, environment: Mapping[str, str]
) -> Function:
    """The function with its properties (Globals merged in); `environment` wins over the template's variables."""

    def read(key: str, default: Any = None) -> Any:
        value = scope.resolve(properties.get(key, default))
        if value is None:
            raise TemplateError(f"{logical_id} has no {key}. Add it to the function or to Globals.")
        return value

    code = (root / str(read("CodeUri", "."))).resolve()
    if not code.is_dir():
        raise TemplateError(
            f"{logical_id} has its code in {code}, which is no folder. Change CodeUri, or build it with `make build`."
        )
    logging = read("LoggingConfig", {})
    function_name = scope.function_name(logical_id)
    return Function(
        name=logical_id.removesuffix("Function").lower() or logical_id.lower(),
        logical_id=logical_id,
        function_name=function_name,
        arn=scope.alias_arn(logical_id),
        handler=str(read("Handler")),
        runtime=str(read("Runtime")),
        timeout=float(read("Timeout", 3)),
        memory_size=int(read("MemorySize", 128)),
        code=code,
        snapstart=read("SnapStart", {}).get("ApplyOn") == "PublishedVersions",
        log_group=str(logging.get("LogGroup", f"/aws/lambda/{function_name}")),
        log_format=str(logging.get("LogFormat", "Text")),
        log_level=logging.get("ApplicationLogLevel"),
        variables=_variables(logical_id, properties.get("Environment", {}).get("Variables", {}), scope, environment),
    )


def _variables(
    logical_id: str, declared: Mapping[str, Any], scope: Scope, environment: Mapping[str, str]
) -> dict[str, str]:
    if reserved := sorted(_RESERVED_VARIABLES & declared.keys()):
        raise TemplateError(f"{logical_id} sets {', '.join(reserved)}, which Lambda reserves. Remove it.")
    values: dict[str, str] = {}
    missing: list[str] = []
    for name, node in declared.items():
        if name in environment:
            continue
        try:
            value = scope.resolve({"value": node}).get("value")
        except MissingValue as error:
            missing.append(f"{name} ({error.reference})")
            continue
        if value is not None:
            values[name] = str(value).lower() if isinstance(value, bool) else str(value)
    if missing:
        listing = ", ".join(missing)
        raise MissingValue(
            listing,
            f"{logical_id} has variables whose value exists only on AWS: {listing}. Pass them in environment={{...}}, "
            "or what they refer to in attributes={...}.",
        )
    return {**values, **environment}
