"""Tools that ask over several rounds: the user, the client's model, the client's roots (basic/patterns/mrtr)."""

from pydantic import BaseModel

from app.toolkit import Accepted, Context, CreateMessage, InputRequired, ListRoots, Question, tool


class Name(BaseModel):
    name: str


class Colour(BaseModel):
    color: str


class Confirmation(BaseModel):
    ok: bool


# input-required-result-ignore-extra-params answers before it was asked: nothing here depends on the answer.
@tool(read_only=True, stateless=True)
def test_input_required_result_elicitation(ctx: Context) -> str:
    """Ask for a name."""
    match ctx.ask("user_name", "What is your name?", Name):
        case Accepted(answer):
            return f"Hello, {answer.name}!"
        case _:
            return ctx.stop("Hello, whoever you are.")


@tool(read_only=True)
def test_input_required_result_sampling(ctx: Context) -> str:
    """Ask the client's model."""
    return ctx.sample("capital_question", ["What is the capital of France?"], max_tokens=100).text


@tool(read_only=True)
def test_input_required_result_list_roots(ctx: Context) -> str:
    """Ask for the client's roots."""
    return f"Roots: {', '.join(root.uri for root in ctx.roots('client_roots'))}"


@tool(read_only=True)
def test_input_required_result_request_state(ctx: Context) -> str:
    """Ask for a confirmation that counts only with the state that asked for it."""
    match ctx.ask("confirm", "Please confirm", Confirmation):
        case Accepted(Confirmation(ok=True)):
            return "state-ok"
        case _:
            return ctx.stop("Not confirmed.")


@tool(read_only=True)
def test_input_required_result_tampered_state(ctx: Context) -> str:
    """Ask for a confirmation; the suite spoils the state."""
    match ctx.ask("confirm", "Please confirm", Confirmation):
        case Accepted(Confirmation(ok=True)):
            return "Confirmed."
        case _:
            return ctx.stop("Not confirmed.")


@tool(read_only=True)
def test_input_required_result_multiple_inputs(ctx: Context) -> str | InputRequired:
    """Ask for three things at once, in the explicit style."""
    name = ctx.responses.get("user_name", Name)
    greeting, roots = ctx.responses.raw("greeting"), ctx.responses.raw("client_roots")
    match name:
        case Accepted(answer) if greeting and roots:
            return f"{answer.name}: {greeting['content']['text']}, {len(roots['roots'])} roots"
    return InputRequired(
        {
            "user_name": Question("What is your name?", Name),
            "greeting": CreateMessage(["Generate a greeting"], max_tokens=50),
            "client_roots": ListRoots(),
        },
        state={"asked": "all"},
    )


@tool(read_only=True)
def test_input_required_result_multi_round(ctx: Context) -> str:
    """Ask one question after the other."""
    match ctx.ask("step1", "Step 1: What is your name?", Name):
        case Accepted(name):
            pass
        case _:
            return ctx.stop("No name, no color.")
    match ctx.ask("step2", "Step 2: What is your favorite color?", Colour):
        case Accepted(colour):
            return f"{name.name} likes {colour.color}."
        case _:
            return ctx.stop(f"{name.name} likes no color.")


@tool(read_only=True)
def test_input_required_result_capabilities(ctx: Context) -> str | InputRequired:
    """Ask for whatever the client declares."""
    questions: dict[str, Question[Name] | CreateMessage | ListRoots] = {}
    if "elicitation" in ctx.client_capabilities:
        questions["user_name"] = Question("What is your name?", Name)
    if "sampling" in ctx.client_capabilities:
        questions["greeting"] = CreateMessage(["Generate a greeting"], max_tokens=50)
    if "roots" in ctx.client_capabilities:
        questions["client_roots"] = ListRoots()
    if not questions or any(ctx.responses.raw(key) is not None for key in questions):
        return f"Asked for: {', '.join(questions) or 'nothing'}."
    return InputRequired({**questions})


@tool(read_only=True)
def test_missing_capability(ctx: Context) -> str:
    """Need sampling, which the client does not declare."""
    return ctx.sample("anything", ["Say anything"], max_tokens=10).text


@tool(read_only=True)
def test_streaming_elicitation(ctx: Context) -> str:
    """Ask, without a request of the server's own on the stream."""
    match ctx.ask("user_name", "What is your name?", Name):
        case Accepted(answer):
            return f"Hello, {answer.name}!"
        case _:
            return ctx.stop("Hello, whoever you are.")


ASKING = (
    test_input_required_result_elicitation,
    test_input_required_result_sampling,
    test_input_required_result_list_roots,
    test_input_required_result_request_state,
    test_input_required_result_tampered_state,
    test_input_required_result_multiple_inputs,
    test_input_required_result_multi_round,
    test_input_required_result_capabilities,
    test_missing_capability,
    test_streaming_elicitation,
)
