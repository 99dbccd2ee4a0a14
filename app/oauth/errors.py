"""Why a browser does not get what it asked for. Each is an answer to a page request; none names another user.

Refused (app.errors)        the caller's: `reason` is for the log, the page says one fixed sentence
└── FlowRefused
    ├── FlowNotFound        no such link, or it has expired: 404
    ├── WrongUser           the link was made for another account: 403, and the flow stays as it is
    └── FlowEnded           the link has done its work or was given up: 410, `status` says which

Unavailable (app.errors)    the store or the provider cannot be reached: 503
"""

from app.errors import Refused


class FlowRefused(Refused):
    """A browser may not do this with this flow."""


class FlowNotFound(FlowRefused):
    """There is no live flow with this handle. A wrong one and an expired one cannot be told apart."""

    def __init__(self) -> None:
        super().__init__("flow_not_found")


class WrongUser(FlowRefused):
    """The signed-in user is not the one for whom the flow was made. A security event: log it."""

    def __init__(self) -> None:
        super().__init__("wrong_user")


class FlowEnded(FlowRefused):
    """The flow cannot take this step any more.

    `status` is where it stands: completed, denied, declined, failed_final, or exchanging while another
    request is finishing it.
    """

    def __init__(self, status: str) -> None:
        self.status = status
        super().__init__(f"flow_{status}")
