"""The server that the conformance suite expects, with our toolkit: its names and texts are the suite's."""

from app.toolkit import Features
from tests.conformance.everything.asking import ASKING
from tests.conformance.everything.older import OLDER
from tests.conformance.everything.plain import PLAIN
from tests.conformance.everything.prompts import PROMPTS
from tests.conformance.everything.resources import RESOURCES

# http-header-validation calls whichever tool is listed first, without arguments.
FEATURES = Features(tools=(*PLAIN, *ASKING, *OLDER), prompts=PROMPTS, resources=RESOURCES)
