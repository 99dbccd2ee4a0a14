"""disconnect: the connection is gone, also where the third party cannot be told."""

from app.testing import FORMS_AND_URLS, Server
from app.tools.disconnect import disconnect
from app.tools.list_repositories import list_repositories


def test_it_forgets_the_connection_and_says_whether_there_was_one() -> None:
    """Delete first, revoke as best one can: an unreachable provider keeps nobody connected."""
    server = Server([disconnect, list_repositories], providers=["hub"])
    server.connect("alice", "hub", scopes=["repo:read", "user:read"])
    alice = server.client("alice", capabilities=FORMS_AND_URLS)
    assert alice.call("disconnect").text == "Local Hub is disconnected."
    assert alice.call("disconnect").text == "Local Hub was not connected."
    assert alice.begin("list_repositories").asked
