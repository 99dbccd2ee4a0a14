"""Rules about running it: logs, alarms, and how the nested templates fit together."""

import json
from collections.abc import Iterator
from typing import Any, Final

import yaml

from infra.template_rules.deployment import Deployment, branches, references

# Ten times as fast, where PyYAML was built with it.
_Loader: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def every_function_logs_to_a_group_of_the_template(deployment: Deployment) -> Iterator[str]:
    """A group that Lambda makes itself is kept for ever."""
    groups = {each.logical_id for each in deployment.resources("AWS::Logs::LogGroup")}
    for function in deployment.resources("AWS::Lambda::Function"):
        logging = function.properties.get("LoggingConfig", {})
        if logging.get("LogGroup", {}).get("Ref") not in groups:
            yield (
                f"{function.where} has no log group in the template, and its logs are kept for ever. Add an "
                "AWS::Logs::LogGroup, and name it in LoggingConfig."
            )
        if logging.get("LogFormat") != "JSON":
            yield f"{function.where} logs text, and no metric filter reads it. Set LogFormat: JSON in LoggingConfig."


def logs_are_not_kept_for_ever(deployment: Deployment) -> Iterator[str]:
    """They hold the addresses of people."""
    for group in deployment.resources("AWS::Logs::LogGroup"):
        if not group.properties.get("RetentionInDays"):
            yield f"{group.where} keeps logs for ever. Set RetentionInDays."


def alarms_reach_somebody(deployment: Deployment) -> Iterator[str]:
    """CloudWatch: missing data is not good news by itself, and an alarm without an action tells nobody."""
    for alarm in deployment.resources("AWS::CloudWatch::Alarm"):
        if not alarm.properties.get("AlarmActions"):
            yield f"{alarm.where} tells nobody. Set AlarmActions: [!Ref Topic]."
        if "TreatMissingData" not in alarm.properties:
            yield f"{alarm.where} does not say what no data means. Set TreatMissingData: notBreaching."
        if not alarm.properties.get("AlarmDescription"):
            yield f"{alarm.where} does not say what to do. Set AlarmDescription."


def metric_filters_and_alarms_agree(deployment: Deployment) -> Iterator[str]:
    """An alarm on a metric that nobody writes never rings."""
    written = {
        transformation["MetricName"]
        for each in deployment.resources("AWS::Logs::MetricFilter")
        for transformation in each.properties["MetricTransformations"]
    }
    rung = {
        str(alarm.properties.get("MetricName"))
        for alarm in deployment.resources("AWS::CloudWatch::Alarm")
        if not str(alarm.properties.get("Namespace", "AWS/")).startswith("AWS/")
    }
    for name in sorted(rung - written):
        yield f"An alarm waits for the metric {name}, which no filter writes. Add an AWS::Logs::MetricFilter."
    for name in sorted(written - rung):
        yield f"The metric {name} rings no alarm. Add an AWS::CloudWatch::Alarm, or remove its filter."


def nested_templates_get_what_they_ask_for(deployment: Deployment) -> Iterator[str]:
    """AWS CloudFormation says so only in the middle of a deployment."""
    stacks = {
        each.logical_id: each.properties
        for each in deployment.resources("AWS::CloudFormation::Stack")
        if each.properties.get("TemplateURL") in deployment.nested
    }
    for logical_id, properties in stacks.items():
        path = properties["TemplateURL"]
        declared, given = deployment.nested[path].get("Parameters", {}), properties.get("Parameters", {})
        for name in sorted(set(given) - set(declared)):
            yield f"{logical_id} passes {name}, which {path} does not know. Remove it, or declare it there."
        for name in sorted(name for name in declared if name not in given and "Default" not in declared[name]):
            yield f"{logical_id} does not pass {name}, which {path} needs. Add it to its Parameters."
    for kind, name in references(deployment.source):
        stack, _, output = name.partition(".Outputs.")
        if kind == "GetAtt" and stack in stacks and output:
            path = stacks[stack]["TemplateURL"]
            if output not in deployment.nested[path].get("Outputs", {}):
                yield f"{name} is not an output of {path}. Add it to its Outputs."


def templates_use_no_yaml_anchors(deployment: Deployment) -> Iterator[str]:
    """AWS CloudFormation: "YAML aliases are not supported"; the SAM CLI resolves them, and others do not."""
    for file, text in deployment.texts.items():
        for token in yaml.scan(text, Loader=_Loader):
            if isinstance(token, yaml.AnchorToken | yaml.AliasToken):
                yield f"{file} line {token.start_mark.line + 1} has a YAML anchor or alias. Write it out."


def the_dashboard_is_json(deployment: Deployment) -> Iterator[str]:
    """AWS says so only at the end of a deployment."""
    for dashboard in deployment.resources("AWS::CloudWatch::Dashboard"):
        for text in _texts(dashboard.properties["DashboardBody"]):
            try:
                json.loads(text)
            except ValueError as error:
                yield f"{dashboard.where} has a body that is no JSON ({error}). Correct it."


def _texts(node: Any) -> Iterator[str]:
    """What a substituted text can be, names left in place of values."""
    body = node["Fn::Sub"] if isinstance(node, dict) else node
    text, variables = (body, {}) if isinstance(body, str) else (body[0], body[1])
    yielded = [text]
    for name, value in variables.items():
        values = [each["Fn::Sub"] if isinstance(each, dict) else each for each in branches(value)]
        yielded = [each.replace(f"${{{name}}}", value) for each in yielded for value in values]
    yield from yielded


RULES: Final = (
    every_function_logs_to_a_group_of_the_template,
    logs_are_not_kept_for_ever,
    alarms_reach_somebody,
    metric_filters_and_alarms_agree,
    nested_templates_get_what_they_ask_for,
    templates_use_no_yaml_anchors,
    the_dashboard_is_json,
)
