"""Rules about what must not be readable: parameters, environment variables, and what must not be lost."""

import re
from collections.abc import Iterator
from typing import Any, Final

from infra.template_rules.deployment import Deployment, branches, references

# In a name, a word that says that the value is one to keep.
_SECRET = re.compile(r"(?i)(?:^|_|(?<=[a-z]))(secret|password|token|pepper|api_?key|sealing_?keys)s?(?:$|_|(?=[A-Z]))")
# What only names a secret: its ARN or id.
_NAME_ONLY = re.compile(r"(?i)(arn|id)$")


def _may_read(deployment: Deployment, node: Any) -> Iterator[str]:
    """The parameters whose value a node holds, as they are and not by a name."""
    declared = deployment.source.get("Parameters", {})
    return (name for kind, name in references(node) if kind == "Ref" and name in declared)


def secret_parameters_do_not_echo(deployment: Deployment) -> Iterator[str]:
    """AWS CloudFormation: NoEcho."""
    for file, document in deployment.documents():
        for name, declared in document.get("Parameters", {}).items():
            if _SECRET.search(name) and not _NAME_ONLY.search(name) and not declared.get("NoEcho"):
                yield f"{file}: the parameter {name} is shown to everybody who may see the stack. Set NoEcho: true."


def variables_hold_no_secrets(deployment: Deployment) -> Iterator[str]:
    """AWS Lambda: environment variables are readable with lambda:GetFunctionConfiguration."""
    declared = deployment.source.get("Parameters", {})
    for function in deployment.resources("AWS::Lambda::Function"):
        for name, value in function.properties.get("Environment", {}).get("Variables", {}).items():
            hidden = [each for each in _may_read(deployment, value) if declared[each].get("NoEcho")]
            spelled = any(isinstance(each, str) and each for each in branches(value))
            read = any(_may_read(deployment, value))
            if hidden or (_SECRET.search(name) and (spelled or read)):
                yield (
                    f"{function.where} has a secret in {name}, where everybody who sees the function sees it. "
                    "Put it in Secrets Manager, and its ARN in the variable."
                )


def secrets_are_not_spelled_out(deployment: Deployment) -> Iterator[str]:
    """A template is in version control."""
    for secret in deployment.resources("AWS::SecretsManager::Secret"):
        text = secret.properties.get("SecretString")
        if text not in (None, "{}"):
            yield f"{secret.where} has its value in the template. Leave SecretString: '{{}}', and put the value there."


def what_opens_everything_is_kept(deployment: Deployment) -> Iterator[str]:
    """Without key or key ring nothing that was ever sealed opens again."""
    for key in deployment.resources("AWS::KMS::Key"):
        if not key.properties.get("EnableKeyRotation"):
            yield f"{key.where} keeps one backing key for ever. Set EnableKeyRotation: true."
    for resource in deployment.resources("AWS::KMS::Key", "AWS::SecretsManager::Secret"):
        is_ring = resource.type == "AWS::KMS::Key" or resource.logical_id == "KeyRing"
        if is_ring and resource.attributes.get("DeletionPolicy") not in ("Retain", "RetainExceptOnCreate"):
            yield f"{resource.where} goes with the stack, and what was sealed with it. Set DeletionPolicy: Retain."
        if resource.attributes.get("UpdateReplacePolicy") != "Retain":
            yield f"{resource.where} may be replaced by an empty one. Set UpdateReplacePolicy: Retain."


RULES: Final = (
    secret_parameters_do_not_echo,
    variables_hold_no_secrets,
    secrets_are_not_spelled_out,
    what_opens_everything_is_kept,
)
