"""Rules about who may do what: IAM policies, security groups, the cache's users."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from infra.template_rules.deployment import Deployment, branches, items

# Actions for which IAM knows no resources.
_WITHOUT_RESOURCES: Final = frozenset({"xray:PutTraceSegments", "xray:PutTelemetryRecords"})
_CONTEXT: Final = ("kms:EncryptionContext:app", "kms:EncryptionContext:purpose")
_READS_KEYS: Final = ("kms:Decrypt", "kms:GenerateDataKey", "kms:ReEncryptFrom")
_WIDE_POLICIES: Final = ("AWSLambdaBasicExecutionRole", "AWSLambdaVPCAccessExecutionRole", "FullAccess", "PowerUser")


def _statements(deployment: Deployment) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Every statement of every identity policy, whatever the conditions, with the name of where it stands."""
    for resource in deployment.resources("AWS::IAM::Role", "AWS::IAM::Policy", "AWS::IAM::ManagedPolicy"):
        documents = [resource.properties.get("PolicyDocument")]
        documents += [each.get("PolicyDocument") for each in items(resource.properties.get("Policies", []))]
        for document in documents:
            for statement in items((document or {}).get("Statement", [])):
                name = f"{resource.where}, {statement.get('Sid', statement.get('Action'))}"
                yield name, statement


def _allowed(statement: Mapping[str, Any]) -> list[str]:
    return [str(each) for each in items(statement.get("Action", []))] if statement.get("Effect") == "Allow" else []


def no_wildcards_are_granted(deployment: Deployment) -> Iterator[str]:
    """IAM: least privilege."""
    for where, statement in _statements(deployment):
        actions = _allowed(statement)
        if "NotAction" in statement or "NotResource" in statement:
            yield f"{where} allows everything but something. Name what it allows in Action and Resource."
        for action in actions:
            if "*" in action:
                yield f"{where} allows {action}. Name the actions that the code uses."
        for resource in items(statement.get("Resource", [])):
            if resource == "*" and not set(actions) <= _WITHOUT_RESOURCES and actions:
                yield f"{where} allows {', '.join(actions)} on everything. Name the resource, by !GetAtt its Arn."


def no_wide_managed_policies(deployment: Deployment) -> Iterator[str]:
    """AWS managed policies for logs grant them on every log group of the account."""
    for role in deployment.resources("AWS::IAM::Role"):
        for policy in items(role.properties.get("ManagedPolicyArns", [])):
            for wide in _WIDE_POLICIES:
                if wide in str(policy):
                    yield f"{role.where} has {wide}, which grants on everything. Write the statements that it needs."


def decrypts_sealing_keys_only(deployment: Deployment) -> Iterator[str]:
    """SECURITY 2.6: an IAM condition on the encryption context."""
    for where, statement in _statements(deployment):
        if not any(action.startswith(_READS_KEYS) for action in _allowed(statement)):
            continue
        condition = statement.get("Condition", {}).get("StringEquals", {})
        missing = [name for name in _CONTEXT if name not in condition]
        if missing:
            yield (
                f"{where} may decrypt whatever the key has encrypted. "
                f"Add Condition: StringEquals with {' and '.join(missing)}."
            )


def every_function_has_a_role_of_its_own(deployment: Deployment) -> Iterator[str]:
    """DESIGN: one handler, one function, one role."""
    seen: dict[str, str] = {}
    for function in deployment.resources("AWS::Lambda::Function"):
        role = str(function.properties.get("Role"))
        if role in seen:
            yield f"{function.where} shares its role with {seen[role]}. Give it a Role of its own."
        seen[role] = function.where


def nothing_listens_to_the_internet(deployment: Deployment) -> Iterator[str]:
    """The only way in is the HTTP API."""
    for group in deployment.resources("AWS::EC2::SecurityGroup", "AWS::EC2::SecurityGroupIngress"):
        for rule in [group.properties, *items(group.properties.get("SecurityGroupIngress", []))]:
            if rule.get("CidrIp") == "0.0.0.0/0" or rule.get("CidrIpv6") == "::/0":
                yield f"{group.where} lets everybody in. Name a SourceSecurityGroupId."


def the_cache_lets_in_one_user_with_one_prefix(deployment: Deployment) -> Iterator[str]:
    """ElastiCache: authenticating with IAM; Valkey: ACL."""
    for user in deployment.resources("AWS::ElastiCache::User"):
        if any(mode.get("Type") != "iam" for mode in branches(user.properties.get("AuthenticationMode", {}))):
            yield f"{user.where} signs in with something that can be lost. Set AuthenticationMode: {{Type: iam}}."
        words = str(user.properties.get("AccessString", "")).split()
        if {"+@all", "~*", "allkeys", "allcommands", "+@dangerous", "+@admin"} & set(words) or "-@all" not in words:
            yield f"{user.where} may run any command on any key. Begin AccessString with: on ~mcp:* -@all."
    for cache in deployment.resources("AWS::ElastiCache::ServerlessCache"):
        if "UserGroupId" not in cache.properties:
            yield f"{cache.where} lets in everybody who reaches it. Set UserGroupId."


RULES: Final = (
    no_wildcards_are_granted,
    no_wide_managed_policies,
    decrypts_sealing_keys_only,
    every_function_has_a_role_of_its_own,
    nothing_listens_to_the_internet,
    the_cache_lets_in_one_user_with_one_prefix,
)
