"""The official conformance suite against our server: every scenario by name, warnings as errors.

The server runs in three environments of the emulator, with authentication on, and every response that the suite
gets is also judged by the official types.
"""

import pytest

from tests.conformance import legacy
from tests.conformance.conftest import RunSuite
from tests.conformance.scenarios import REVISION, SCENARIOS
from tests.conformance.server import ENVIRONMENTS, ServerUnderTest
from tests.conformance.suite import Suite

ALL = ("--suite", "all", "--spec-version")


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_a_scenario_of_the_revision_passes(run: RunSuite, scenario: str) -> None:
    """Every check of the scenario, and every response against the schema of the revision."""
    result = run(*ALL, REVISION)
    assert scenario in result.checks, result.output
    assert result.problems(scenario) == []


def test_the_run_knows_exactly_these_scenarios_and_ends_well(run: RunSuite, suite: Suite) -> None:
    """A scenario that disappears from the suite or from this table would otherwise be a silent loss."""
    result = run(*ALL, REVISION)
    assert sorted(result.checks) == sorted(suite.listed("--server", "--spec-version", REVISION)) == list(SCENARIOS)
    assert result.all_problems() == []
    assert result.exit_code == 0, result.output


def test_what_the_revision_requires_is_met(run: RunSuite) -> None:
    """The frozen set that decides about a tier; its exit code looks at that set alone."""
    result = run("--requirements", REVISION)
    assert result.exit_code == 0, result.output
    assert [problem for problem in result.all_problems() if problem.partition(":")[0] in SCENARIOS] == []


@pytest.mark.parametrize(
    ("revision", "scenario"),
    [(revision, scenario) for revision, scenarios in legacy.SCENARIOS.items() for scenario in scenarios],
)
def test_a_scenario_of_an_earlier_revision_passes_if_a_server_without_sessions_can(
    run: RunSuite, revision: str, scenario: str
) -> None:
    """Each that it cannot pass has its reason in legacy.NOT_STATELESS, and must fail: no reason outlives itself."""
    result = run(*ALL, revision)
    assert scenario in result.checks, result.output
    problems = result.problems(scenario)
    if scenario in legacy.NOT_STATELESS:
        (problem,) = problems
        assert problem.startswith(legacy.PROBLEMS[scenario])
    else:
        assert problems == []


@pytest.mark.parametrize("revision", legacy.SCENARIOS)
def test_the_run_of_an_earlier_revision_knows_exactly_these_scenarios(
    run: RunSuite, suite: Suite, revision: str
) -> None:
    listed = suite.listed("--server", "--spec-version", revision)
    assert sorted(run(*ALL, revision).checks) == sorted(listed) == sorted(legacy.SCENARIOS[revision])


def test_every_response_of_every_run_is_of_the_official_types_and_many_environments_gave_them(
    run: RunSuite, everything: ServerUnderTest
) -> None:
    """Runs after the others, whose responses it reports."""
    for revision in (REVISION, *legacy.SCENARIOS):
        run(*ALL, revision)
    assert everything.proxy.passed > 100
    assert everything.proxy.verdicts == []
    assert len(everything.emulator.environments()) == ENVIRONMENTS
