"""Rules about the Lambda functions: what they run on, their versions, their files."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from infra.template_rules.deployment import Deployment, Resource, references

RUNTIME: Final = "python3.13"
ARCHITECTURES: Final = ("arm64", "x86_64")
GATEWAY_SECONDS: Final = 29
"""An HTTP API waits for 30 s at most."""
SNAPSTART_STORAGE_MB: Final = 512


def _functions(deployment: Deployment) -> Iterator[Resource]:
    return deployment.resources("AWS::Lambda::Function")


def answers_before_the_gateway_gives_up(deployment: Deployment) -> Iterator[str]:
    """HTTP API quotas: integration timeout, 30 seconds."""
    for function in _functions(deployment):
        seconds = int(function.properties.get("Timeout", 3))
        if seconds > GATEWAY_SECONDS:
            yield (
                f"{function.where} may run for {seconds} s, and the gateway waits for 30: its answer would be lost. "
                f"Set Timeout to {GATEWAY_SECONDS} or less."
            )


def runs_on_what_is_tested(deployment: Deployment) -> Iterator[str]:
    """The built code is compiled for one Python, and tested on it."""
    for function in _functions(deployment):
        runtime = function.properties.get("Runtime")
        if runtime != RUNTIME:
            yield f"{function.where} runs on {runtime}, and is tested on {RUNTIME}. Set Runtime to {RUNTIME}."
        architectures = function.properties.get("Architectures", ["x86_64"])
        if len(architectures) != 1 or architectures[0] not in ARCHITECTURES:
            yield f"{function.where} has Architectures {architectures}. Name one of {', '.join(ARCHITECTURES)}."


def restores_a_snapshot(deployment: Deployment) -> Iterator[str]:
    """AWS: Improving startup performance with Lambda SnapStart, supported features and limitations."""
    for function in _functions(deployment):
        if function.properties.get("SnapStart", {}).get("ApplyOn") != "PublishedVersions":
            yield (
                f"{function.where} imports everything anew for each environment. "
                "Set SnapStart: {ApplyOn: PublishedVersions}."
            )
            continue
        if (
            int(function.properties.get("EphemeralStorage", {}).get("Size", SNAPSTART_STORAGE_MB))
            > SNAPSTART_STORAGE_MB
        ):
            yield f"{function.where} has more than 512 MB of /tmp, which SnapStart refuses. Remove EphemeralStorage."
        if "FileSystemConfigs" in function.properties:
            yield f"{function.where} mounts a file system, which SnapStart refuses. Remove FileSystemConfigs."
    for alias in deployment.resources("AWS::Lambda::Alias"):
        if "ProvisionedConcurrencyConfig" in alias.properties:
            yield (
                f"{alias.where} has provisioned concurrency, which SnapStart refuses. "
                "Remove ProvisionedConcurrencyConfig."
            )


def publishes_a_version_for_every_change(deployment: Deployment) -> Iterator[str]:
    """aws/serverless-application-model#3820: no version for a parameter's new value; infra/configuration.yaml."""
    values = deployment.source["Resources"].get("Configuration", {}).get("Properties", {}).get("Parameters", {})
    counted = set(_parameters(deployment, values))
    declared = deployment.source.get("Resources", {})
    for logical_id, resource in declared.items():
        if resource["Type"] != "AWS::Serverless::Function":
            continue
        properties = resource["Properties"]
        if not properties.get("AutoPublishAliasAllProperties"):
            yield (
                f"{logical_id} goes on with an old version when only its memory or timeout has changed. "
                "Set AutoPublishAliasAllProperties: true."
            )
        if ("GetAtt", "Configuration.Outputs.Version") not in references(properties.get("VersionDescription")):
            yield (
                f"{logical_id} goes on with the old value of a parameter after a deployment. "
                "Set VersionDescription: !Sub 'Configuration ${Configuration.Outputs.Version}'."
            )
        shared = deployment.source.get("Globals", {}).get("Function", {})
        for own in (properties, shared):
            uncounted = set(_parameters(deployment, own.get("Environment", {}))) - counted
            for name in sorted(uncounted):
                yield (
                    f"{logical_id} depends on the parameter {name}, and goes on with its old value after a deployment. "
                    "Add it to the Values of Configuration."
                )


def _parameters(deployment: Deployment, node: object) -> Iterator[str]:
    """The parameters that a value depends on, through conditions too."""
    conditions = deployment.source.get("Conditions", {})
    for kind, name in references(node):
        if kind == "Condition":
            yield from _parameters(deployment, conditions.get(name))
        elif name in deployment.source.get("Parameters", {}):
            yield name


def keeps_no_old_snapshots(deployment: Deployment) -> Iterator[str]:
    """AWS Lambda pricing: SnapStart caching, per published version and second."""
    for version in deployment.resources("AWS::Lambda::Version"):
        if version.attributes.get("DeletionPolicy") == "Retain":
            yield (
                f"{version.where} stays after the next deployment, and its snapshot is paid for. "
                "Set VersionDeletionPolicy: Delete."
            )


def every_handler_file_has_its_function(deployment: Deployment) -> Iterator[str]:
    """DESIGN: one file in handlers/ is one Lambda function is one IAM role."""
    files = {path.stem for path in (deployment.root / "handlers").glob("*.py")} - {"__init__"}
    handled: dict[str, str] = {}
    for function in _functions(deployment):
        handler = str(function.properties.get("Handler"))
        module = Path(*handler.split(".")[:-1])
        if module.parts[:1] != ("handlers",) or module.name not in files:
            yield f"{function.where} has the handler {handler}, and there is no such file. Write {module}.py."
        handled[module.name] = function.where
    for name in sorted(files - set(handled)):
        yield f"handlers/{name}.py is deployed nowhere. Add a function with Handler: handlers.{name}.handler."


RULES: Final = (
    answers_before_the_gateway_gives_up,
    runs_on_what_is_tested,
    restores_a_snapshot,
    publishes_a_version_for_every_change,
    keeps_no_old_snapshots,
    every_handler_file_has_its_function,
)
