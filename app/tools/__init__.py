"""YOURS: what this server offers. Import a tool, prompt or resource here, one line each, and it is served.

These are examples from a help desk. Delete them, with desk.py, hub.py and tests/tools/, and write your own.
"""

from app.toolkit import Features
from app.tools.assign_ticket import assign_ticket
from app.tools.charge_card import charge_card
from app.tools.close_ticket import close_ticket
from app.tools.delete_report import delete_report
from app.tools.deploy import deploy
from app.tools.disconnect import disconnect
from app.tools.handover import handover
from app.tools.list_repositories import list_repositories
from app.tools.order_part import order_part
from app.tools.plan_visit import plan_visit
from app.tools.reply_to_customer import reply_to_customer
from app.tools.ticket import ticket

FEATURES = Features.of(tuple(globals().values()))
TOOLS = FEATURES.tools
