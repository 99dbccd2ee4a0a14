"""What is deployed, as plain data: the template as written, as SAM expands it, and the nested templates."""

import copy
import logging
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from infra.local.emulator.intrinsics import parse


class Resource(NamedTuple):
    """One resource. `where` names it, with its file if that is a nested one."""

    where: str
    logical_id: str
    type: str
    properties: Mapping[str, Any]
    attributes: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Deployment:
    """`source` and `expanded` are template.yaml, `nested` its nested templates by the path that it names them with."""

    root: Path
    source: Mapping[str, Any]
    expanded: Mapping[str, Any]
    nested: Mapping[str, Mapping[str, Any]]
    texts: Mapping[str, str]

    @classmethod
    def read(cls, template: Path) -> "Deployment":
        """Read everything. Raises TemplateError, OSError, and what the SAM translator raises."""
        text = template.read_text(encoding="utf-8")
        source = _parsed(text)
        texts, nested = {template.name: text}, {}
        for resource in source["Resources"].values():
            if resource["Type"] == "AWS::CloudFormation::Stack":
                path = str(resource["Properties"]["TemplateURL"])
                texts[path] = (template.parent / path).read_text(encoding="utf-8")
                nested[path] = _parsed(texts[path])
        return cls(root=template.parent, source=source, expanded=expand(source), nested=nested, texts=texts)

    def resources(self, *types: str) -> Iterator[Resource]:
        """Every resource of these types, or of all: of the expanded template and of the nested ones."""
        for file, document in (("", self.expanded), *self.nested.items()):
            for logical_id, resource in document["Resources"].items():
                if not types or resource["Type"] in types:
                    where = f"{file}: {logical_id}" if file else logical_id
                    yield Resource(where, logical_id, resource["Type"], resource.get("Properties", {}), resource)

    def documents(self) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """Every template as it is written, by file name."""
        yield next(iter(self.texts)), self.source
        yield from self.nested.items()


_parsed = cache(parse)


def expand(source: Mapping[str, Any]) -> Mapping[str, Any]:
    """The template that SAM makes of it, without asking AWS for anything."""
    os.environ.setdefault("AWS_DEFAULT_REGION", "us-east-1")
    from samtranslator.translator.transform import transform

    # It warns about metrics that it was never asked to publish.
    logging.getLogger("samtranslator.metrics").setLevel(logging.ERROR)
    document = copy.deepcopy(dict(source))
    document.get("Globals", {}).get("Function", {}).pop("CodeUri", None)
    for resource in document["Resources"].values():
        if resource["Type"] == "AWS::Serverless::Function":
            # The code is built elsewhere; SAM only wants to know where it has been uploaded to.
            resource["Properties"]["CodeUri"] = "s3://artefacts/function.zip"
    defaults = {name: each.get("Default", "") for name, each in source.get("Parameters", {}).items()}

    class NoManagedPolicies:
        def load(self) -> dict[str, str]:
            return {}

    expanded: Mapping[str, Any] = transform(document, defaults, NoManagedPolicies())
    return expanded


def branches(node: Any) -> Iterator[Any]:
    """What a value can be: both sides of every Fn::If, without AWS::NoValue."""
    if isinstance(node, dict) and set(node) == {"Fn::If"}:
        for side in node["Fn::If"][1:]:
            yield from branches(side)
    elif node != {"Ref": "AWS::NoValue"}:
        yield node


def items(node: Any) -> list[Any]:
    """The elements of a list, or of what stands for one, whatever the conditions."""
    found = [each for side in branches(node) for each in (side if isinstance(side, list) else [side])]
    return [side for each in found for side in branches(each)]


def references(node: Any) -> Iterator[tuple[str, str]]:
    """Every name that a value refers to, as (kind, name), where kind is Ref, GetAtt, or Condition."""
    if isinstance(node, list):
        for each in node:
            yield from references(each)
    elif isinstance(node, dict):
        for key, value in node.items():
            if key in ("Ref", "Condition") and isinstance(value, str):
                yield key, value
            elif key == "Fn::GetAtt":
                yield "GetAtt", ".".join(value) if isinstance(value, list) else str(value)
            elif key == "Fn::If":
                yield "Condition", str(value[0])
                yield from references(value[1:])
            elif key == "Fn::Sub":
                yield from _substituted(value)
            else:
                yield from references(value)


def _substituted(value: Any) -> Iterator[tuple[str, str]]:
    text, variables = (value, {}) if isinstance(value, str) else (value[0], value[1])
    for placeholder in text.split("${")[1:]:
        name = placeholder.partition("}")[0].strip()
        if not name.startswith("!") and name not in variables:
            yield "GetAtt" if "." in name else "Ref", name
    yield from references(variables)
