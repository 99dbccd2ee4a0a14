"""CloudFormation's intrinsic functions: YAML tags in, plain values out. Pure."""

import re
from collections.abc import Callable, Mapping
from typing import Any

import yaml

from infra.local.emulator.errors import MissingValue, TemplateError

REGION = "us-east-1"
ACCOUNT_ID = "123456789012"

# AWS::NoValue removes the property that it is the value of.
_NO_VALUE = object()

_PLACEHOLDER = re.compile(r"\$\{(!?)([^}]*)\}")

_FUNCTION_TYPES = ("AWS::Serverless::Function", "AWS::Lambda::Function")


class _Loader(yaml.SafeLoader):
    """YAML plus CloudFormation's short tags, read as their long form: `!Ref X` is `{"Ref": "X"}`."""


def _construct_tag(loader: _Loader, suffix: str, node: yaml.Node) -> dict[str, Any]:
    value: Any
    if isinstance(node, yaml.ScalarNode):
        value = loader.construct_scalar(node)
    elif isinstance(node, yaml.SequenceNode):
        value = loader.construct_sequence(node, deep=True)
    elif isinstance(node, yaml.MappingNode):
        value = loader.construct_mapping(node, deep=True)
    if suffix == "GetAtt" and isinstance(value, str):
        value = value.split(".", 1)
    return {suffix if suffix in ("Ref", "Condition") else f"Fn::{suffix}": value}


_Loader.add_multi_constructor("!", _construct_tag)


def parse(text: str) -> dict[str, Any]:
    """The template as plain data, intrinsic functions in long form and not yet resolved."""
    try:
        document = yaml.load(text, Loader=_Loader)  # noqa: S506 -- _Loader is a SafeLoader
    except yaml.YAMLError as error:
        raise TemplateError(f"The template is not YAML: {error}. Check it with cfn-lint.") from error
    if not isinstance(document, dict) or not isinstance(document.get("Resources"), dict):
        raise TemplateError("The template has no Resources section. Check it with cfn-lint.")
    return document


class Scope:
    """What references resolve against: parameter values, pseudo parameters, conditions, resources."""

    def __init__(
        self,
        document: Mapping[str, Any],
        *,
        parameters: Mapping[str, str],
        stack_name: str,
        attributes: Mapping[str, str] | None = None,
    ) -> None:
        """`attributes` are values that only AWS would know, like "Keys.Outputs.KeyArn" for that !GetAtt."""
        self._document = document
        self._attributes = attributes or {}
        self._stack_name = stack_name
        self._resources: Mapping[str, Any] = document["Resources"]
        self._conditions: Mapping[str, Any] = document.get("Conditions", {})
        self._parameters = _parameter_values(document.get("Parameters", {}), parameters)
        self._pseudo: Mapping[str, Any] = {
            "AWS::AccountId": ACCOUNT_ID,
            "AWS::NoValue": _NO_VALUE,
            "AWS::Partition": "aws",
            "AWS::Region": REGION,
            "AWS::StackName": stack_name,
            "AWS::URLSuffix": "amazonaws.com",
        }
        self._functions: Mapping[str, Callable[[Any], Any]] = {
            "Ref": self._ref,
            "Condition": self.condition,
            "Fn::And": lambda args: all(self.resolve(arg) for arg in args),
            "Fn::Equals": lambda args: self.resolve(args[0]) == self.resolve(args[1]),
            "Fn::FindInMap": self._find_in_map,
            "Fn::GetAtt": self._get_att,
            "Fn::If": lambda args: self.resolve(args[1] if self.condition(args[0]) else args[2]),
            "Fn::Join": lambda args: self.resolve(args[0]).join(_text(part) for part in self.resolve(args[1])),
            "Fn::Not": lambda args: not self.resolve(args[0]),
            "Fn::Or": lambda args: any(self.resolve(arg) for arg in args),
            "Fn::Select": lambda args: self.resolve(args[1])[int(self.resolve(args[0]))],
            "Fn::Split": lambda args: self.resolve(args[1]).split(self.resolve(args[0])),
            "Fn::Sub": self._sub,
        }

    def resolve(self, node: Any) -> Any:
        """The node with every intrinsic function replaced by its value."""
        if isinstance(node, dict):
            if len(node) == 1 and isinstance(name := next(iter(node)), str) and _is_intrinsic(name, node[name]):
                function = self._functions.get(name)
                if function is None:
                    raise TemplateError(f"{name} is not emulated. Use one of {', '.join(self._functions)}.")
                return function(node[name])
            resolved = {key: self.resolve(value) for key, value in node.items()}
            return {key: value for key, value in resolved.items() if value is not _NO_VALUE}
        if isinstance(node, list):
            return [value for value in map(self.resolve, node) if value is not _NO_VALUE]
        return node

    def condition(self, name: str) -> bool:
        if name not in self._conditions:
            raise TemplateError(f"Condition {name} is not declared. Add it to Conditions.")
        return bool(self.resolve(self._conditions[name]))

    def active(self, resource: Mapping[str, Any]) -> bool:
        """Whether the resource's Condition lets it exist."""
        return "Condition" not in resource or self.condition(resource["Condition"])

    def function_name(self, logical_id: str) -> str:
        """The name of a function on AWS, as far as it is known before deployment."""
        return self._function_property(logical_id, "FunctionName") or f"{self._stack_name}-{logical_id}"

    def function_arn(self, logical_id: str) -> str:
        """The function without a qualifier, which is its $LATEST version."""
        return f"arn:aws:lambda:{REGION}:{ACCOUNT_ID}:function:{self.function_name(logical_id)}"

    def alias_arn(self, logical_id: str) -> str:
        """What an HttpApi event invokes: the alias that SAM publishes, if the template asks for one."""
        alias = self._function_property(logical_id, "AutoPublishAlias")
        return f"{self.function_arn(logical_id)}:{alias}" if alias else self.function_arn(logical_id)

    def _function_property(self, logical_id: str, key: str) -> str:
        shared = self._document.get("Globals", {}).get("Function", {})
        return str(self.resolve(self._resources[logical_id].get("Properties", {}).get(key, shared.get(key, ""))))

    def _ref(self, name: str) -> Any:
        if name in self._parameters:
            return self._parameters[name]
        if name in self._pseudo:
            return self._pseudo[name]
        # SAM: the alias and the version that AutoPublishAlias makes are called Function.Alias and Function.Version.
        logical_id, _, generated = name.partition(".")
        resource = self._resources.get(logical_id)
        if resource is None:
            raise TemplateError(f"!Ref {name} points at nothing. Declare it under Parameters or Resources.")
        if resource["Type"] in _FUNCTION_TYPES:
            return self.alias_arn(logical_id) if generated else self.function_name(logical_id)
        if resource["Type"] == "AWS::Logs::LogGroup":
            generated_name = f"{self._stack_name}-{logical_id}"
            return self.resolve(resource.get("Properties", {}).get("LogGroupName", generated_name))
        if name in self._attributes:
            return self._attributes[name]
        raise MissingValue(f"!Ref {name}")

    def _get_att(self, args: list[str]) -> Any:
        logical_id, attribute = args
        resource = self._resources.get(logical_id)
        if resource is None:
            raise TemplateError(f"!GetAtt {logical_id}.{attribute} points at nothing. Declare it under Resources.")
        if resource["Type"] in _FUNCTION_TYPES and attribute == "Arn":
            return self.function_arn(logical_id)
        if resource["Type"] in _FUNCTION_TYPES and attribute in ("Alias", "Version"):
            return self.alias_arn(logical_id)
        if f"{logical_id}.{attribute}" in self._attributes:
            return self._attributes[f"{logical_id}.{attribute}"]
        raise MissingValue(f"!GetAtt {logical_id}.{attribute}")

    def _sub(self, args: Any) -> str:
        text, variables = (args, {}) if isinstance(args, str) else (args[0], args[1])

        def substitute(match: re.Match[str]) -> str:
            literal, name = match[1], match[2].strip()
            if literal:
                return f"${{{name}}}"
            if name in variables:
                return _text(self.resolve(variables[name]))
            is_attribute = "." in name and name not in self._parameters
            return _text(self._get_att(name.split(".", 1)) if is_attribute else self._ref(name))

        return _PLACEHOLDER.sub(substitute, text)

    def _find_in_map(self, args: list[Any]) -> Any:
        value: Any = self._document.get("Mappings", {})
        for key in map(self.resolve, args):
            if key not in value:
                raise TemplateError(f"!FindInMap finds no {key}. Add it to Mappings.")
            value = value[key]
        return value


def _is_intrinsic(name: str, argument: Any) -> bool:
    # A policy document has a key "Condition" as well, with a mapping under it.
    return name.startswith("Fn::") or (name in ("Ref", "Condition") and isinstance(argument, str))


def _parameter_values(declared: Mapping[str, Any], given: Mapping[str, str]) -> dict[str, Any]:
    """A value for every parameter. AllowedPattern is not enforced: local URLs are http, and that is the point."""
    if unknown := sorted(set(given) - set(declared)):
        raise TemplateError(
            f"The template has no parameter {', '.join(unknown)}. It has: {', '.join(sorted(declared))}."
        )
    if missing := sorted(name for name in declared if name not in given and "Default" not in declared[name]):
        raise TemplateError(
            f"These template parameters have neither a value nor a Default: {', '.join(missing)}. "
            f"Pass parameters={{{', '.join(f'{name!r}: ...' for name in missing)}}}."
        )
    values: dict[str, Any] = {}
    for name, declaration in declared.items():
        value = _text(given.get(name, declaration.get("Default")))
        is_list = declaration["Type"] == "CommaDelimitedList" or declaration["Type"].startswith("List<")
        values[name] = [item.strip() for item in value.split(",")] if is_list else value
    return values


def _text(value: Any) -> str:
    """A scalar as CloudFormation writes it into a string."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)
