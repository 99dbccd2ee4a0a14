"""URI templates of resources."""

from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.errors import ConfigurationError
from app.protocol.uri_template import UriTemplate


@pytest.mark.parametrize(
    ("template", "uri", "variables"),
    [
        ("a://x", "a://x", {}),
        ("a://x", "a://y", None),
        ("a://{id}", "a://7", {"id": "7"}),
        ("a://{id}", "a://", None),
        ("a://{id}", "a://7/8", None),
        ("a://{id}", "a://7?x=1", None),
        ("a://{id}", "a://7%2F8", {"id": "7/8"}),
        ("a://{id}", "a://%C3%A9", {"id": "é"}),
        ("a://{id}", "a://%ff", None),
        ("a://{id}", "a://%zz", None),
        ("a://{id}", "a://7\n", None),
        ("a://{x}/{y}", "a://1/2", {"x": "1", "y": "2"}),
        ("a://{+path}", "a://x/y/../z", {"path": "x/y/../z"}),
        ("a://{+path}#top", "a://x#top", {"path": "x"}),
        ("a.b+c://{id}.txt", "a.b+c://7.txt", {"id": "7"}),
        ("a.b+c://{id}.txt", "axb+c://7.txt", None),
    ],
)
def test_a_uri_matches_wholly_or_not_at_all(template: str, uri: str, variables: dict[str, str] | None) -> None:
    """RFC 6570, sections 3.2.2 and 3.2.3."""
    assert UriTemplate(template).match(uri) == variables


@given(st.text(min_size=1).filter(lambda text: text.isprintable()))
def test_what_an_expansion_encodes_comes_back(value: str) -> None:
    """RFC 6570, section 3.2.2: everything but unreserved characters is percent-encoded."""
    assert UriTemplate("a://{x}").match(f"a://{quote(value, safe='')}") == {"x": value}


@pytest.mark.parametrize(
    ("template", "remedy"),
    [
        ("no-scheme/{id}", "notes://today"),
        ("a://{id", "write variables as {name}"),
        ("a://{?q}", "use {name}, or {+name}"),
        ("a://{x,y}", "use {name}, or {+name}"),
        ("a://{}", "use {name}, or {+name}"),
        ("a://{x}/{x}", "give each its own name"),
    ],
)
def test_a_template_that_cannot_work_is_refused_with_the_remedy(template: str, remedy: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        UriTemplate(template)
    assert remedy in str(caught.value)
