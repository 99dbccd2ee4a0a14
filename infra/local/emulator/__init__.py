"""AWS Lambda behind an API Gateway HTTP API, emulated on 127.0.0.1 from template.yaml.

    async with Emulator(Path("template.yaml"), parameters={...}) as emulator:
        ...  # emulator.url

Each function runs in at least two processes, and consecutive requests meet different ones: state that a function
keeps in its memory is lost here as early as it is on AWS.
"""

from infra.local.emulator.emulator import Emulator
from infra.local.emulator.environment import EnvironmentInfo
from infra.local.emulator.errors import EmulatorError, InitError, MissingValue, PortInUse, TemplateError
from infra.local.emulator.threaded import RunningEmulator, emulator_in_thread

__all__ = [
    "Emulator",
    "EmulatorError",
    "EnvironmentInfo",
    "InitError",
    "MissingValue",
    "PortInUse",
    "RunningEmulator",
    "TemplateError",
    "emulator_in_thread",
]
