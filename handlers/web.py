"""Browser pages, and /mcp for one-function, REST API and ALB set-ups. Elsewhere: `uvicorn handlers.web:app`."""

import os

from app.adapters.mangum import asgi_handler
from app.tools import FEATURES
from app.wiring.web import build

app = build(os.environ, FEATURES)
handler = asgi_handler(app)
