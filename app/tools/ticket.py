"""Example: a resource template, read by its URI."""

from app.toolkit import CompletionContext, resource
from app.tools.desk import desk


def _ids(typed: str, context: CompletionContext) -> list[str]:
    return [id for id in desk.tickets if id.startswith(typed)]


@resource("desk://tickets/{id}", title="A ticket", mime_type="text/markdown", complete={"id": _ids})
def ticket(id: str) -> str | None:
    """A support ticket: its title, its status, and who has it."""
    found = desk.tickets.get(id)
    if found is None:
        return None
    return f"# {found.id}: {found.title}\n\n{found.status}, with {found.agent or 'nobody'}\n"
