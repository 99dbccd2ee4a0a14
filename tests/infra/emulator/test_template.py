"""What the emulator reads from a template."""

from collections.abc import Callable
from pathlib import Path
from textwrap import dedent

import pytest

from infra.local.emulator import MissingValue, TemplateError
from infra.local.emulator.template import Template, load

Load = Callable[..., Template]

HEAD = """
Parameters:
  Stage: {Type: String, Default: prod}
  Secret: {Type: String, NoEcho: true}
  Origins: {Type: CommaDelimitedList, Default: 'a, b'}
Conditions:
  IsProd: !Equals [!Ref Stage, prod]
  IsTest: !Not [!Condition IsProd]
  Both: !And [!Condition IsProd, !Or [!Condition IsTest, !Equals [a, a]]]
Mappings:
  Sizes: {prod: {Memory: 512}}
Globals:
  Function:
    Runtime: python3.13
    CodeUri: .
    AutoPublishAlias: live
    Environment: {Variables: {SHARED: shared}}
Resources:
"""

FUNCTION = """
  McpFunction:
    Type: AWS::Serverless::Function
    Properties:
      FunctionName: !Sub '${AWS::StackName}-mcp'
      Handler: h.handler
      Events:
        Mcp: {Type: HttpApi, Properties: {Path: /mcp, Method: ANY}}
"""

URI = "!Sub ['arn:aws:apigateway:x:lambda:path/2015-03-31/functions/${Fn}/invocations', {Fn: !Ref McpFunction.Alias}]"

URI_OF_LATEST = URI.replace("!Ref McpFunction.Alias", "!GetAtt McpFunction.Arn")


@pytest.fixture
def read(tmp_path: Path) -> Load:
    def write_and_load(
        resources: str,
        *,
        parameters: dict[str, str] | None = None,
        environment: dict[str, str] | None = None,
        attributes: dict[str, str] | None = None,
        built: Path | None = None,
        head: str = HEAD,
    ) -> Template:
        path = tmp_path / "template.yaml"
        path.write_text(head + resources)
        return load(
            path,
            parameters=parameters or {"Secret": "s3cret"},
            environment=environment,
            attributes=attributes,
            built=built,
        )

    return write_and_load


def variables(lines: str) -> str:
    return (
        FUNCTION
        + "      Environment:\n        Variables:\n"
        + "".join(f"          {line}\n" for line in lines.split("\n"))
    )


def api(paths: str, extra: str = "") -> str:
    return f"""
  Api:
    Type: AWS::Serverless::HttpApi
    Properties:
      {extra}
      DefinitionBody:
        openapi: 3.0.1
        paths: {paths}
"""


def integration(more: str = "", *, uri: str = URI) -> str:
    return f"{{x-amazon-apigateway-integration: {{type: aws_proxy, payloadFormatVersion: '2.0', uri: {uri}{more}}}}}"


def test_a_function_has_its_own_properties_over_the_shared_ones(read: Load, tmp_path: Path) -> None:
    """AWS SAM: Globals; defaults of AWS::Serverless::Function."""
    (function,) = read(FUNCTION + "      MemorySize: 512\n").functions
    assert (function.name, function.logical_id) == ("mcp", "McpFunction")
    assert (function.handler, function.runtime) == ("h.handler", "python3.13")
    assert (function.timeout, function.memory_size) == (3.0, 512)
    assert function.code == tmp_path.resolve()
    assert function.function_name == "local-mcp"
    assert function.arn == "arn:aws:lambda:us-east-1:123456789012:function:local-mcp:live"
    assert function.log_group == "/aws/lambda/local-mcp"


def test_variables_are_resolved_to_text(read: Load) -> None:
    """AWS CloudFormation: intrinsic functions."""
    lines = dedent("""\
        REF: !Ref Secret
        SUB: !Sub 'x-${Stage}-${AWS::Region}-${!literal}-${Extra}'
        SUB_MAP: !Sub ['${A}${Stage}', {A: !Ref Secret}]
        JOIN: !Join [',', !Ref Origins]
        IF: !If [IsProd, 'yes', 'no']
        BOTH: !If [Both, 'yes', 'no']
        GONE: !If [IsTest, x, !Ref 'AWS::NoValue']
        SELECT: !Select [1, !Ref Origins]
        SPLIT: !Select [1, !Split ['|', 'a|b']]
        MAP: !FindInMap [Sizes, !Ref Stage, Memory]
        ARN: !GetAtt McpFunction.Arn
        ALIAS: !Ref McpFunction.Alias
        SUB_ALIAS: !Sub '${McpFunction.Alias}'
        BOOL: true
        NUMBER: 7""").replace("${Extra}", "${Stage}")
    (function,) = read(variables(lines)).functions
    arn = "arn:aws:lambda:us-east-1:123456789012:function:local-mcp"
    assert function.variables == {
        "SHARED": "shared",
        "REF": "s3cret",
        "SUB": "x-prod-us-east-1-${literal}-prod",
        "SUB_MAP": "s3cretprod",
        "JOIN": "a,b",
        "IF": "yes",
        "BOTH": "yes",
        "SELECT": "b",
        "SPLIT": "b",
        "MAP": "512",
        "ARN": arn,
        "ALIAS": f"{arn}:live",
        "SUB_ALIAS": f"{arn}:live",
        "BOOL": "true",
        "NUMBER": "7",
    }


def test_the_given_environment_wins_and_spares_a_value_that_only_aws_has(read: Load) -> None:
    """Emulator-defined."""
    text = variables("CACHE: !GetAtt Cache.Endpoint.Address\nSTAGE: !Ref Stage") + "\n  Cache: {Type: AWS::X::Y}\n"
    (function,) = read(text, environment={"CACHE": "127.0.0.1", "STAGE": "local", "MORE": "1"}).functions
    assert function.variables == {"SHARED": "shared", "CACHE": "127.0.0.1", "STAGE": "local", "MORE": "1"}


def test_what_only_aws_knows_can_be_given_by_name(read: Load) -> None:
    """AWS CloudFormation: a nested stack's outputs are attributes, !GetAtt Stack.Outputs.Name; !Ref Api is its id."""
    text = variables(
        "KEY: !GetAtt Keys.Outputs.Arn\nURL: !Sub 'https://${Api}.example'\nHOST: !Sub '${Keys.Outputs.Host}'"
    )
    text += "\n  Keys: {Type: AWS::CloudFormation::Stack}\n  Api: {Type: AWS::Serverless::HttpApi}\n"
    given = {"Keys.Outputs.Arn": "arn:x", "Keys.Outputs.Host": "h", "Api": "a1"}
    (function,) = read(text, attributes=given).functions
    assert function.variables == {"SHARED": "shared", "KEY": "arn:x", "URL": "https://a1.example", "HOST": "h"}


def test_a_nested_stack_whose_condition_is_false_is_not_asked(read: Load) -> None:
    """AWS CloudFormation: Fn::If takes one side, and the other one need not exist."""
    text = variables("KEY: !If [IsTest, !GetAtt Cache.Outputs.Host, none]")
    text += "\n  Cache: {Type: AWS::CloudFormation::Stack, Condition: IsTest}\n"
    (function,) = read(text).functions
    assert function.variables == {"SHARED": "shared", "KEY": "none"}


def test_built_code_is_found_under_the_functions_logical_id(read: Load, tmp_path: Path) -> None:
    """AWS SAM: the layout of .aws-sam/build."""
    (tmp_path / "out" / "McpFunction").mkdir(parents=True)
    (function,) = read(FUNCTION, built=tmp_path / "out").functions
    assert function.code == (tmp_path / "out" / "McpFunction").resolve()
    with pytest.raises(TemplateError, match=r"McpFunction has its code in .*McpFunction, which is no folder"):
        read(FUNCTION, built=tmp_path / "elsewhere")


def test_secrets_are_not_printed_with_a_function(read: Load) -> None:
    """Template: NoEcho parameters end up in variables."""
    assert "s3cret" not in repr(read(variables("KEY: !Ref Secret")))


def test_every_missing_parameter_is_named_at_once(read: Load) -> None:
    """AWS CloudFormation: parameters without a Default must be given."""
    head = HEAD.replace("Parameters:", "Parameters:\n  Another: {Type: String}")
    with pytest.raises(TemplateError, match="Default: Another, Secret"):
        read(FUNCTION, head=head, parameters={"Stage": "x"})


def test_resources_whose_condition_is_false_do_not_exist(read: Load) -> None:
    """AWS CloudFormation: Condition."""
    text = FUNCTION + FUNCTION.replace("McpFunction:", "WebFunction:\n    Condition: IsTest").replace("/mcp", "/web")
    assert [function.name for function in read(text).functions] == ["mcp"]


def test_an_event_without_a_path_is_the_default_route(read: Load) -> None:
    """AWS SAM: HttpApi event source, Path: "If no path is specified, AWS SAM creates a default route"."""
    text = FUNCTION.replace("Properties: {Path: /mcp, Method: ANY}", "Properties: {TimeoutInMillis: 5000}")
    (route,) = read(text).routes
    assert (route.key, route.function, route.timeout) == ("$default", "mcp", 5.0)


def test_a_definition_body_describes_the_routes(read: Load) -> None:
    """AWS: x-amazon-apigateway-integration, and x-amazon-apigateway-integrations for shared ones."""
    more = ", timeoutInMillis: 29000, responseParameters: {'401': {'append:header.x': y}}"
    text = FUNCTION + api(f"{{/mcp: {{x-amazon-apigateway-any-method: {integration(more)}}}}}")
    (route,) = read(text).routes
    assert (route.key, route.function, route.timeout) == ("ANY /mcp", "mcp", 29.0)
    assert list(route.response_parameters) == [401]


def test_a_route_that_only_an_event_has_is_added_to_the_definition_body(read: Load) -> None:
    """AWS SAM: an event adds its integration to DefinitionBody where there is none."""
    text = FUNCTION + "        Other: {Type: HttpApi, Properties: {Path: /other, Method: GET}}\n"
    routes = read(text + api(f"{{/mcp: {{x-amazon-apigateway-any-method: {integration()}}}}}")).routes
    assert [route.key for route in routes] == ["ANY /mcp", "GET /other"]


@pytest.mark.parametrize(
    ("resources", "message"),
    [
        ("\n  X: {Type: AWS::S3::Bucket}\n", "no AWS::Serverless::Function"),
        (variables("A: !Ref Nobody"), "!Ref Nobody points at nothing. Declare it"),
        (variables("A: !ImportValue x"), "Fn::ImportValue is not emulated"),
        (variables("A: !If [Nothing, a, b]"), "Condition Nothing is not declared"),
        (variables("AWS_REGION: mars"), "AWS_REGION, which Lambda reserves"),
        (variables("A: !GetAtt X.Arn") + "\n  X: {Type: AWS::S3::Bucket}\n", r"A \(!GetAtt X.Arn\).*environment="),
        (FUNCTION.replace("      Handler: h.handler\n", ""), "McpFunction has no Handler"),
        (FUNCTION + "      CodeUri: nowhere\n", "nowhere"),
        (FUNCTION.replace("HttpApi", "Api"), "REST API"),
        (FUNCTION.replace("ANY}", "ANY, PayloadFormatVersion: '1.0'}"), "payload format 1.0"),
        (FUNCTION + "        Again: {Type: HttpApi, Properties: {Path: /mcp, Method: any}}\n", "event Again repeats"),
        (FUNCTION + api("{}", "CorsConfiguration: true"), "CorsConfiguration is not emulated"),
        (FUNCTION + api(f"{{/other: {{get: {integration()}}}}}"), "'GET /other'.*invoke permission"),
        (FUNCTION + api("{/mcp: {get: {}}}"), "has no x-amazon-apigateway-integration"),
        (FUNCTION + api(f"{{/mcp: {{get: {integration(uri='arn:x')}}}}}"), "names no function"),
        (
            FUNCTION + api(f"{{/mcp: {{get: {integration(uri=URI_OF_LATEST)}}}}}"),
            "Use !Ref McpFunction.Alias",
        ),
        (FUNCTION + api(f"{{/mcp: {{get: {integration().replace('2.0', '1.0')}}}}}"), "payloadFormatVersion: '2.0'"),
        (FUNCTION + api("{}") + api("{}").replace("Api:", "Api2:"), "2 HTTP APIs"),
        (FUNCTION + FUNCTION.replace("McpFunction", "MCP").replace("/mcp", "/x"), "differ only in case"),
        ("  - not: a mapping\n", "Resources"),
        ("  X: [\n", "not YAML"),
    ],
)
def test_what_cannot_be_emulated_is_refused_with_a_remedy(read: Load, resources: str, message: str) -> None:
    """Emulator-defined: better no start than a route that behaves otherwise on AWS."""
    with pytest.raises(TemplateError, match=message):
        read(resources)


def test_a_value_that_only_aws_has_is_an_error_of_its_own(read: Load) -> None:
    """So that a program can offer the missing value."""
    with pytest.raises(MissingValue):
        read(variables("A: !GetAtt X.Arn") + "\n  X: {Type: AWS::S3::Bucket}\n")


def test_an_unknown_parameter_is_refused(read: Load) -> None:
    """AWS CloudFormation: "Parameters: [X] do not exist in the template"."""
    with pytest.raises(TemplateError, match=r"no parameter Sekret\. It has: Origins, Secret, Stage"):
        read(FUNCTION, parameters={"Sekret": "x", "Secret": "y"})


def test_a_template_that_is_not_there_is_named(tmp_path: Path) -> None:
    """Emulator-defined."""
    with pytest.raises(TemplateError, match=r"Cannot read .*absent\.yaml"):
        load(tmp_path / "absent.yaml", parameters={})
