"""`make doctor`: the configuration in this environment, or with --url a deployed endpoint from outside."""

import argparse
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from infra.doctor.configuration import check_configuration
from infra.doctor.endpoint import check_endpoint
from infra.doctor.finding import Finding, any_fails, fail
from infra.doctor.http import Http
from infra.doctor.token import check_with_token

VARIABLE: Final = "MCP_TOKEN"


def findings(arguments: Sequence[str], environment: Mapping[str, str], http: Http) -> Iterator[Finding]:
    """What the given arguments ask for."""
    parser = argparse.ArgumentParser(prog="python -m infra.doctor", description=__doc__)
    parser.add_argument("--url", help="the endpoint that clients are given, like https://mcp.example.com/mcp")
    parser.add_argument(
        "--token", action="store_true", help=f"call it with the access token in {VARIABLE} too (never as an argument)"
    )
    asked = parser.parse_args(arguments)
    if asked.token and not asked.url:
        parser.error("--token needs --url")
    if not asked.url:
        yield from check_configuration(environment, http)
        return
    yield from check_endpoint(http, asked.url)
    if asked.token:
        token = environment.get(VARIABLE, "").strip()
        if token:
            yield from check_with_token(http, asked.url, token)
        else:
            yield fail("token", f"{VARIABLE} is not set: export an access token in it.")


def main() -> int:
    found = []
    for each in findings(sys.argv[1:], os.environ, Http()):
        print(each, flush=True)
        found.append(each)
    return int(any_fails(found))


if __name__ == "__main__":
    sys.exit(main())
