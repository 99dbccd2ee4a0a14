"""The only module that a tool imports: `tool`, the Context it gets, and the answers a user can give.

A tool is a function. It runs from the top in every round: a question that has been answered returns its
answer, one that is open ends the invocation with `input_required`, and the client's retry, on any
instance, runs the function again. So what stands before a question runs once in each round: keep effects
after the last one.
"""

from app.protocol.dispatch import Tool
from app.protocol.elicitation import Accepted, Answer, Cancelled, Declined, Invalid, Missing
from app.toolkit.context import Context, InputRequired, Question
from app.toolkit.definition import tool

__all__ = [
    "Accepted",
    "Answer",
    "Cancelled",
    "Context",
    "Declined",
    "InputRequired",
    "Invalid",
    "Missing",
    "Question",
    "Tool",
    "tool",
]
