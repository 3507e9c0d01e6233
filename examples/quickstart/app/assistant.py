"""Answers a customer's message: find the topic, look up what is needed, fill in a reply."""

import random
import re
from dataclasses import asdict, dataclass, field
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from app.orders import Order, can_be_returned, find_order, last_return_day, order_number
from app.rules import Rules

REPLIES_FILE = Path(__file__).parent / "data" / "replies.yaml"
GREETINGS = ["Hello!", "Hi there!", "Thank you for your message."]


@dataclass(frozen=True)
class Step:
    """One look-up that the assistant made on its way to the reply."""

    tool: str
    arguments: dict[str, Any]
    result: Any


@dataclass
class Answer:
    """A reply and how it came about."""

    text: str = ""
    steps: list[Step] = field(default_factory=list)


def answer(message: str, *, rules: Rules, today: date, rng: random.Random) -> Answer:
    """Answer one message.

    Where several topics match equally well, *rng* decides, much as a model may answer differently the next time.
    """
    result = Answer()
    topic = _topic(message, rules, rng)
    result.steps.append(Step("find_topic", {"message": message}, topic))
    if topic in ("returns", "tracking"):
        body = _about_an_order(topic, message, rules, today, result)
    else:
        body = _replies()[topic or "hand_over"]
    result.text = f"{rng.choice(GREETINGS)} {body}"
    return result


def _topic(message: str, rules: Rules, rng: random.Random) -> str | None:
    words = _words(message, rules)
    scores = {
        topic: sum(all(word in words for word in phrase.split()) for phrase in phrases)
        for topic, phrases in rules.topics.items()
    }
    for topic in rules.first:
        if scores[topic]:
            return topic
    best = max(scores.values())
    return rng.choice([topic for topic, score in scores.items() if score == best]) if best else None


def _words(message: str, rules: Rules) -> set[str]:
    return set(re.findall(r"[A-Za-z']+", message.lower() if rules.ignore_case else message))


def _about_an_order(topic: str, message: str, rules: Rules, today: date, result: Answer) -> str:
    number = order_number(message, rules)
    if number is None:
        return _replies()["ask_for_number"]
    order = find_order(number)
    result.steps.append(Step("find_order", {"number": number}, asdict(order) if order else None))
    if order is None:
        return _replies()["unknown_order"].format(number=number)
    last_day = last_return_day(order, rules)
    name = _return_reply(last_day, today, rules) if topic == "returns" else _tracking_reply(order)
    return _replies()[name].format(**_readable(asdict(order) | {"last_day": last_day}))


def _return_reply(last_day: date | None, today: date, rules: Rules) -> str:
    if last_day is None:
        return "return_too_early"
    return "return_open" if can_be_returned(last_day, today, rules) else "return_closed"


def _tracking_reply(order: Order) -> str:
    if order.delivered:
        return "tracking_delivered"
    return "tracking_shipped" if order.shipped else "tracking_packing"


def _readable(values: dict[str, Any]) -> dict[str, Any]:
    return {k: f"{v.day} {v:%B %Y}" if isinstance(v, date) else v for k, v in values.items()}


@cache
def _replies() -> dict[str, str]:
    return yaml.safe_load(REPLIES_FILE.read_text(encoding="utf-8"))
