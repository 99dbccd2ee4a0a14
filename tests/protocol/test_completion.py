"""completion/complete for prompts and resource templates."""

from typing import Any

import pytest

from tests.protocol.offered import error, offered


def complete(ref: Any, name: Any, value: Any, **more: Any) -> Any:
    params = {"ref": ref, "argument": {"name": name, "value": value}, **more}
    return offered().client().request("completion/complete", params)


TRIP = {"type": "ref/prompt", "name": "trip"}


def test_choices_complete_themselves_whatever_the_case() -> None:
    """server/utilities/completion."""
    assert complete(TRIP, "style", "CH").result["completion"] == {
        "values": ["cheap", "chic"],
        "total": 2,
        "hasMore": False,
    }


def test_a_function_completes_and_sees_what_is_filled_in_already() -> None:
    """server/utilities/completion: context.arguments."""
    reply = complete(TRIP, "city", "O", context={"arguments": {"country": "NO-"}})
    assert reply.result["completion"]["values"] == ["NO-O0", "NO-O1"]


def test_no_more_than_a_hundred_values_are_sent() -> None:
    """server/utilities/completion: maximum 100 items per response."""
    completion = complete(TRIP, "city", "many").result["completion"]
    assert (len(completion["values"]), completion["hasMore"], "total" in completion) == (100, True, False)


def test_a_template_completes_by_its_uri() -> None:
    reply = complete({"type": "ref/resource", "uri": "notes://by-id/{id}"}, "id", "4")
    assert reply.result["completion"]["values"] == ["41"]


def test_an_argument_that_nobody_completes_has_no_values() -> None:
    assert complete(TRIP, "days", "").result["completion"] == {"values": [], "total": 0, "hasMore": False}


@pytest.mark.parametrize(
    ("ref", "name", "value", "more"),
    [
        ({"type": "ref/prompt", "name": "nobody"}, "x", "", {}),
        ({"type": "ref/resource", "uri": "notes://nobody/{id}"}, "x", "", {}),
        ({"type": "ref/tool", "name": "greet"}, "x", "", {}),
        ({"type": "ref/prompt"}, "x", "", {}),
        ("trip", "x", "", {}),
        (TRIP, 5, "", {}),
        (TRIP, "city", None, {}),
        (TRIP, "city", "", {"context": []}),
        (TRIP, "city", "", {"context": {"arguments": {"country": 5}}}),
    ],
)
def test_what_cannot_be_completed_is_an_invalid_parameter(
    ref: Any, name: Any, value: Any, more: dict[str, Any]
) -> None:
    """server/utilities/completion, Error Handling: -32602."""
    assert error(complete(ref, name, value, **more)) == (400, -32602)
