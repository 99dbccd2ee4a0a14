"""What can go wrong before a request is served, each message ending with its remedy.

EmulatorError
├── TemplateError       template.yaml cannot be run here as it is written
│   └── MissingValue    ... because a value exists only on AWS
├── InitError           a function did not survive INIT
└── PortInUse           the gateway's port belongs to another process
"""


class EmulatorError(Exception):
    """Base of everything that this package raises on purpose."""


class TemplateError(EmulatorError):
    """The template cannot be emulated; deploying it may be fine or may fail for the same reason."""


class MissingValue(TemplateError):
    """A reference to something that only a deployed stack has, like the address of a cache."""

    def __init__(self, reference: str, message: str | None = None) -> None:
        super().__init__(message or f"{reference} has a value only on AWS. Use a template parameter for it.")
        self.reference = reference


class InitError(EmulatorError):
    """The handler module could not be imported, or INIT took too long."""


class PortInUse(EmulatorError):
    """Another process listens on the port that was asked for."""
