"""The page at the root of the local gateway: call a tool, answer its question, and watch the rounds on the wire.

For looking and learning, on this machine only; nothing of it is deployed.
"""

from infra.local.page.application import LocalPage

__all__ = ["LocalPage"]
