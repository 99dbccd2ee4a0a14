"""The rules for template.yaml: the real template keeps them, and each fault that is planted in a copy is named."""

import re
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from infra.check_template import broken_rules, lint
from infra.template_rules import RULES, Deployment

ROOT = Path(__file__).parent.parent.parent
TEMPLATES = ("template.yaml", *(str(path.relative_to(ROOT)) for path in sorted((ROOT / "infra").glob("*.yaml"))))


def copy_to(folder: Path) -> Path:
    """A copy of everything that the rules read."""
    for each in (*TEMPLATES, *(str(path.relative_to(ROOT)) for path in (ROOT / "handlers").glob("*.py"))):
        (folder / each).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / each, folder / each)
    return folder


def replace_once(file: Path, old: str, new: str) -> None:
    text = file.read_text()
    assert old in text, f"{file.name} has no {old!r}: the test plants nothing"
    file.write_text(text.replace(old, new, 1))


@cache
def planted(file: str, old: str, new: str) -> dict[str, list[str]]:
    """What each rule says when some text is replaced once in a copy."""
    with TemporaryDirectory() as scratch:
        folder = copy_to(Path(scratch))
        replace_once(folder / file, old, new)
        deployment = Deployment.read(folder / "template.yaml")
        return {rule.__name__: sentences for rule in RULES if (sentences := list(rule(deployment)))}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return copy_to(tmp_path)


def test_the_template_keeps_every_rule() -> None:
    """make check-template."""
    assert list(broken_rules(Deployment.read(ROOT / "template.yaml"))) == []


def test_every_rule_gives_its_source() -> None:
    """STYLE: docstrings give the source."""
    assert [rule for rule in RULES if not rule.__doc__] == []
    assert len(set(RULES)) == len(RULES)


FUNCTION = "      Handler: handlers.mcp.handler\n"
DECRYPT = "            Action: kms:Decrypt\n"

FAULTS = {
    "timeout": ("    Timeout: 25\n", "    Timeout: 45\n", "may run for 45 s.*29 or less"),
    "runtime": ("Runtime: python3.13", "Runtime: python3.12", "Set Runtime to python3.13"),
    "architecture": ("Architectures: [arm64]", "Architectures: [arm64, x86_64]", "Name one of arm64, x86_64"),
    "no SnapStart": ("      ApplyOn: PublishedVersions", "      ApplyOn: None", "Set SnapStart:"),
    "big /tmp": (FUNCTION, FUNCTION + "      EphemeralStorage: {Size: 1024}\n", "Remove EphemeralStorage"),
    "file system": (
        FUNCTION,
        FUNCTION + "      FileSystemConfigs: [{Arn: 'arn:aws:x', LocalMountPath: /mnt/x}]\n",
        "Remove FileSystemConfigs",
    ),
    "provisioned": (
        FUNCTION,
        FUNCTION + "      ProvisionedConcurrencyConfig: {ProvisionedConcurrentExecutions: 1}\n",
        "Remove ProvisionedConcurrencyConfig",
    ),
    "not all properties": (
        "      AutoPublishAliasAllProperties: true\n",
        "",
        "Set AutoPublishAliasAllProperties: true",
    ),
    "no new version": (
        "      VersionDescription: !Sub 'Configuration ${Configuration.Outputs.Version}'\n",
        "",
        "Set VersionDescription",
    ),
    "uncounted parameter": ("            - !Ref Issuer\n", "", "parameter Issuer.*Values of Configuration"),
    "uncounted condition": ("            - !Ref CacheMode\n", "", "parameter CacheMode.*Values of Configuration"),
    "old snapshots": ("    VersionDeletionPolicy: Delete\n", "", "Set VersionDeletionPolicy: Delete"),
    "handler without a file": ("handlers.mcp.handler", "handlers.cmp.handler", r"Write handlers/cmp\.py"),
    "file without a function": (
        "handlers.mcp.handler",
        "handlers.web.handler",
        r"handlers/mcp\.py is deployed nowhere",
    ),
    "no alias": ("function:${AWS::StackName}-mcp:live'", "function:${AWS::StackName}-mcp'", "End its uri in :live"),
    "other function": (
        "function:${AWS::StackName}-mcp:live'",
        "function:elsewhere:live'",
        "End its uri in the function",
    ),
    "no event": ("Path: /.well-known/oauth-protected-resource, ", "Path: /other, ", "Add an HttpApi event for it"),
    "no route": ("Path: /.well-known/oauth-protected-resource, ", "Path: /other, ", "Add it to DefinitionBody"),
    "no challenge": (
        "                '401': {'overwrite:header.www-authenticate': $response.header.x-mcp-challenge}\n",
        "",
        "loses WWW-Authenticate with 401.*Map overwrite",
    ),
    "impatient gateway": ("timeoutInMillis: 29000", "timeoutInMillis: 20000", "Raise timeoutInMillis"),
    "payload": ("payloadFormatVersion: '2.0'", "payloadFormatVersion: '1.0'", "Set payloadFormatVersion: '2.0'"),
    "no throttling": ("        ThrottlingRateLimit: 50\n", "", "Set ThrottlingBurstLimit and ThrottlingRateLimit"),
    "path in the log": ("$context.routeKey", "$context.path", r"writes \$context.path.*Log \$context.routeKey"),
    "override in the log": ("$context.routeKey", "$context.requestOverride.path", r"writes \$context.requestOverride"),
    "log is no JSON": ('{"requestId":', '{requestId":', "Write Format as one JSON object"),
    "wildcard action": (DECRYPT, DECRYPT.replace("Decrypt", "*"), r"allows kms:\*. Name the actions"),
    "wildcard resource": ("Resource: !GetAtt Keys.Outputs.KeyArn", "Resource: '*'", "kms:Decrypt on everything"),
    "wildcard in a condition": (
        "              Resource: !GetAtt Keys.Outputs.ConnectionsArn",
        "              Resource: '*'",
        "ReadConnectionsSecret allows secretsmanager:GetSecretValue on everything",
    ),
    "all but": (DECRYPT, "            NotAction: kms:Encrypt\n", "Name what it allows in Action"),
    "managed policy": ("AWSLambdaENIManagementAccess", "AWSLambdaVPCAccessExecutionRole", "Write the statements"),
    "no context": (
        "                kms:EncryptionContext:purpose: sealing-key\n",
        "",
        "StringEquals with kms:.*:purpose",
    ),
    "shared role": ("Role: !GetAtt WebRole.Arn", "Role: !GetAtt McpRole.Arn", "Give it a Role of its own"),
    "plain secret": (
        "        MCP_ISSUER: !Ref Issuer\n",
        "        MCP_ISSUER: !Ref Issuer\n        MCP_STRIPE_SECRET: !Ref Stage\n",
        "secret in MCP_STRIPE_SECRET.*Put it in Secrets Manager",
    ),
    "spelled secret": (
        "        MCP_ISSUER: !Ref Issuer\n",
        "        MCP_ISSUER: !Ref Issuer\n        STRIPE_API_KEY: sk_live_1\n",
        "secret in STRIPE_API_KEY",
    ),
    "hidden parameter in a variable": (
        "  Issuer:\n    Type: String\n",
        "  Issuer:\n    Type: String\n    NoEcho: true\n",
        "secret in MCP_ISSUER",
    ),
    "echo": (
        "  Stage:\n",
        "  OidcClientSecret: {Type: String}\n  Stage:\n",
        "parameter OidcClientSecret.*NoEcho: true",
    ),
    "no log group": (
        "      LoggingConfig:\n        LogGroup: !Ref McpLogs\n",
        "",
        "Add an AWS::Logs::LogGroup, and name it in LoggingConfig",
    ),
    "text logs": ("LogFormat: JSON", "LogFormat: Text", "Set LogFormat: JSON"),
    "kept for ever": ("      RetentionInDays: !Ref LogRetentionDays\n", "", "Set RetentionInDays"),
    "not passed": ("        AlarmEmail: !Ref AlarmEmail\n", "", "does not pass AlarmEmail"),
    "passed in vain": ("        AlarmEmail: !Ref", "        AlarmMail: !Ref", "passes AlarmMail.*declare it there"),
    "no output": ("Keys.Outputs.KeyArn", "Keys.Outputs.KeyId", "Keys.Outputs.KeyId is not an output"),
    "anchor": (
        "  Stage:\n    Type: String\n",
        "  Stage: &text\n    Type: String\n",
        "YAML anchor or alias. Write it out",
    ),
}


NESTED_FAULTS = {
    "open to all": (
        "infra/network.yaml",
        "          SourceSecurityGroupId: !Ref FunctionSecurityGroup\n          Description: from the functions\n",
        "          CidrIp: 0.0.0.0/0\n",
        "lets everybody in. Name a SourceSecurityGroupId",
    ),
    "password": ("infra/cache.yaml", "{Type: iam}", "{Type: no-password-required}", "Type: iam"),
    "any command": ("infra/cache.yaml", "-@all +@read", "+@all +@read", "Begin AccessString"),
    "any key": ("infra/cache.yaml", "on ~mcp:*", "on ~*", "Begin AccessString"),
    "no users": ("infra/cache.yaml", "      UserGroupId: !Ref Users\n", "", "Set UserGroupId"),
    "no rotation": ("infra/keys.yaml", "      EnableKeyRotation: true\n", "", "Set EnableKeyRotation"),
    "key lost": ("infra/keys.yaml", "    DeletionPolicy: RetainExceptOnCreate\n", "", "Set DeletionPolicy: Retain"),
    "key replaced": ("infra/keys.yaml", "    UpdateReplacePolicy: Retain\n", "", "Set UpdateReplacePolicy: Retain"),
    "spelled out": ("infra/keys.yaml", "SecretString: '{}'", "SecretString: s3cret", "has its value in the template"),
    "silent alarm": ("infra/alarms.yaml", "      AlarmActions: [!Ref Topic]\n", "", "tells nobody"),
    "no data": ("infra/alarms.yaml", "      TreatMissingData: notBreaching\n", "", "Set TreatMissingData"),
    "no remedy": (
        "infra/alarms.yaml",
        "      AlarmDescription: Clients get 5xx answers.\n",
        "",
        "Set AlarmDescription",
    ),
    "never rings": (
        "infra/alarms.yaml",
        "      MetricName: Crashes\n",
        "      MetricName: Crash\n",
        "no filter writes",
    ),
    "never heard": ("infra/alarms.yaml", "      MetricName: Crashes\n", "      MetricName: Crash\n", "rings no alarm"),
    "dashboard": (
        "infra/alarms.yaml",
        '"yAxis": "right"}]]}}\n            - \'\'',
        '"yAxis": "right"}]}}\n            - \'\'',
        "no JSON",
    ),
}


ALL_FAULTS = {name: ("template.yaml", *fault) for name, fault in FAULTS.items()} | NESTED_FAULTS


@pytest.mark.parametrize(("file", "old", "new", "sentence"), ALL_FAULTS.values(), ids=ALL_FAULTS.keys())
def test_a_fault_is_named_with_its_remedy(file: str, old: str, new: str, sentence: str) -> None:
    """Each is a deployment that fails late, or one that works and is wrong."""
    problems = [problem for sentences in planted(file, old, new).values() for problem in sentences]
    assert any(re.search(sentence, problem) for problem in problems), problems
    assert all(problem.endswith(".") for problem in problems)


def test_every_rule_is_broken_by_some_fault() -> None:
    """A rule that no fault breaks may be one that never speaks."""
    broken = {name for file, old, new, _ in ALL_FAULTS.values() for name in planted(file, old, new)}
    assert broken == {rule.__name__ for rule in RULES}


def test_the_expansion_is_linted(project: Path) -> None:
    """cfn-lint does not see these in a SAM template."""
    template = project / "template.yaml"
    replace_once(template, "    Timeout: 25\n", "    Timeout: 901\n")
    replace_once(template, "Runtime: python3.13", "Runtime: python3.99")
    replace_once(template, "Action: elasticache:Connect", "Action: elasticache:Conect")
    said = lint(Deployment.read(template))
    assert [code for code in ("E3717", "E3030", "W3037") if code not in said] == [], said


def test_the_command_says_what_is_wrong_and_fails(project: Path) -> None:
    """make check-template."""
    template = project / "template.yaml"
    template.write_text(template.read_text().replace("    Timeout: 25\n", "    Timeout: 45\n"))
    command = [sys.executable, "-m", "infra.check_template", str(template)]
    checked = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert checked.returncode == 1
    assert "McpFunction may run for 45 s" in checked.stdout
    assert "Traceback" not in checked.stderr
    absent = subprocess.run([*command[:-1], "absent.yaml"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert absent.returncode == 1
    assert "Pass the path of a SAM template." in absent.stderr
