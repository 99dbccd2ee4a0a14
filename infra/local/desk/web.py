"""handlers/web.py, with the desk's tools."""

import os

from app.adapters.mangum import asgi_handler
from app.wiring.web import build
from infra.local.desk.tools import FEATURES

app = build(os.environ, FEATURES)
handler = asgi_handler(app)
