"""Orders: finding the number in a message, looking it up, and what can be done with it."""

import re
from dataclasses import dataclass
from datetime import date, timedelta
from functools import cache
from pathlib import Path

import yaml

from app.rules import Rules

ORDERS_FILE = Path(__file__).parent / "data" / "orders.yaml"


@dataclass(frozen=True)
class Order:
    """One order of the shop."""

    number: str
    item: str
    shipped: date | None = None
    carrier: str | None = None
    expected: date | None = None
    delivered: date | None = None


@cache
def _orders() -> dict[str, Order]:
    entries = yaml.safe_load(ORDERS_FILE.read_text(encoding="utf-8"))
    return {entry["number"]: Order(**entry) for entry in entries}


def order_number(message: str, rules: Rules) -> str | None:
    """Return the order number that the customer wrote, if any."""
    found = re.search(rules.order_number, message)
    return found[0] if found else None


def find_order(number: str) -> Order | None:
    """Return the order with this number, if there is one."""
    return _orders().get(number)


def last_return_day(order: Order, rules: Rules) -> date | None:
    """Return the day on which the return period ends; None while the parcel is on its way."""
    return order.delivered + timedelta(days=rules.return_days) if order.delivered else None


def can_be_returned(last_day: date, today: date, rules: Rules) -> bool:
    """Tell whether a return that ends on *last_day* is still possible."""
    return today <= last_day if rules.last_day_counts else today < last_day
