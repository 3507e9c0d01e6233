"""What the assistant can look up: orders, stock and opening hours."""

from typing import Any

ORDERS = {
    "20417": {"item": "Pendle city bike", "total": 649.00, "state": "ready in the shop", "collect_until": "21 June"},
    "20433": {"item": "two 28-inch tyres", "total": 57.80, "state": "sent on 3 June", "tracking_code": "HP88213"},
    "20458": {"item": "child seat", "total": 89.50, "state": "not in stock", "expected": "30 June"},
}
STOCK = {
    "inner tube": {"sizes": "26 and 28 inch", "price": 6.90, "pieces": 14},
    "front light": {"price": 24.90, "pieces": 0, "expected": "18 June"},
    "helmet": {"sizes": "S, M and L", "price": 54.00, "pieces": 9},
}
HOURS = {
    "Monday": "closed",
    **dict.fromkeys(["Tuesday", "Wednesday", "Thursday", "Friday"], "10:00 to 18:00"),
    "Saturday": "10:00 to 14:00",
    "Sunday": "closed",
}


def find_order(number: str) -> Any:
    """Return what is known of an order."""
    return ORDERS.get(number, f"There is no order {number}.")


def check_stock(item: str) -> Any:
    """Return price and number of pieces of an item."""
    return STOCK.get(item.lower(), f"There is no {item} in the catalogue, which has: {', '.join(STOCK)}.")


def opening_hours() -> Any:
    """Return the opening hours of the week."""
    return HOURS


FUNCTIONS = {"find_order": find_order, "check_stock": check_stock, "opening_hours": opening_hours}


def _takes(**texts: str) -> dict[str, Any]:
    """Return the schema of arguments that are all texts and all required."""
    properties = {name: {"type": "string", "description": what} for name, what in texts.items()}
    return {"type": "object", "properties": properties, "required": list(texts)}


DEFINITIONS = [
    {
        "name": "find_order",
        "description": "Look up an order: what it is, its total in euros, and where it is.",
        "input_schema": _takes(number="The order number, five digits"),
    },
    {
        "name": "check_stock",
        "description": "Look up the price of an item in euros, and how many pieces are in the shop.",
        "input_schema": _takes(item=f"One of: {', '.join(STOCK)}"),
    },
    {"name": "opening_hours", "description": "Look up the opening hours of the shop.", "input_schema": _takes()},
]
