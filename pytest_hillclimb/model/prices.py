"""What usage costs. Rows keep usage, never money: the cost of a row is derived from it whenever it is asked for.

Models are looked up by their exact names, dated and undated ones alike: a longer name is another model, and may have
another price. What has no known price is not priced (None), which is never the same as 0.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any

from pydantic import ValidationError

from pytest_hillclimb.errors import RefusedError
from pytest_hillclimb.model.rates import LongPrompt, Price, Rates
from pytest_hillclimb.model.usage import UnpricedError, Usage, known_part, read_usage, single_calls, total_tokens

__all__ = ["UNBILLED", "LongPrompt", "Price", "PriceTable", "Rates", "RowCost", "summed", "total_tokens"]

UNBILLED = frozenset(
    {
        "rate_limited",
        "overloaded",
        "bad_request",
        "context_length",
        "request_too_large",
        "authentication",
        "billing",
        "permission",
        "unknown_model",
    }
)
"""Classes of failures by which a provider has refused a request, which it does not bill."""

UNKNOWN_TRIES = "tries_of_unknown_cost"
"""The key under which a row counts tries that have failed, may have been billed and do not say what."""

_REMARKS = ("unit", "source", "note", "as_of")


@dataclass(frozen=True, slots=True)
class RowCost:
    """What a row, or several, cost in US dollars, failed tries included: app and judge apart.

    A part is None when nothing of it was priced: it is not measured, and not 0. ``unpriced`` counts the usages that are
    there and could not be priced; while it is above 0, a part that has a number costs more than that. ``why`` counts
    the reasons.

    ``silent`` counts the rows that name neither a model nor a usage of the app, and ``untold`` those of other unknown
    spend: a model without a usage, or a failed try that may have been billed. ``reports`` tells whether the app has
    reported any usage.
    """

    app: float | None = None
    judge: float | None = None
    unpriced: int = 0
    why: Mapping[str, int] = field(default_factory=dict, compare=False)
    untold: int = 0
    silent: int = 0
    reports: bool = field(default=False, compare=False)

    @property
    def total(self) -> float | None:
        """App and judge together, None when nothing was priced."""
        return _sum((self.app, self.judge))

    @property
    def unknown(self) -> int:
        """How many executions have cost nobody knows what; an app that never reports usage is taken for a free one."""
        return self.untold + (self.silent if self.reports else 0)


def _as_named(model: str) -> str:
    return model


KnownAs = Callable[[str], str]
"""Returns the name that a model was requested by: it is priced as that when it has no price itself."""


class PriceTable:
    """Prices by exact model name."""

    def __init__(self, prices: Mapping[str, Price]) -> None:
        self._prices = dict(prices)

    @staticmethod
    @cache
    def built_in() -> PriceTable:
        """Return the table that comes with the package: list prices of Claude models, read on first use."""
        text = files("pytest_hillclimb.model").joinpath("prices.json").read_text(encoding="utf-8")
        return PriceTable({}).with_prices(json.loads(text)["models"], "prices.json")

    def __contains__(self, model: object) -> bool:
        return model in self._prices if isinstance(model, str) else False

    def __getitem__(self, model: str) -> Price:
        return self._prices[model]

    def with_prices(self, prices: object, where: str) -> PriceTable:
        """Return a table that also has a user's prices; they take the place of a model's earlier price as a whole.

        :param prices: ``{model: {"in": ..., "out": ..., ...}}``; None adds nothing. The keys are those of ``Price``
        :param where: how messages name the source, such as ``_state.json: prices``
        :raises RefusedError: naming source, model and field
        """
        if prices is None:
            return self
        if not isinstance(prices, Mapping):
            raise RefusedError(f'{where} must be a mapping such as {{"model": {{"in": 3, "out": 15}}}}')
        remarks = {key for key in _REMARKS if isinstance(prices.get(key), str)}
        added = {str(m): _price(p, f"{where}: {m}") for m, p in prices.items() if m not in remarks}
        return PriceTable({**self._prices, **added})

    def with_lines(self, lines: Iterable[str], where: str) -> PriceTable:
        """Return a table that also has prices written as ``MODEL in=3 out=15 cache_read=0.3``, one model a line.

        :param where: how messages name the source, such as ``hillclimb_prices in pytest.ini``
        :raises RefusedError: naming source, model and field, or a model that has two lines
        """
        prices: dict[str, dict[str, Any]] = {}
        for model, price in (_read_line(line, where) for line in lines if line.strip()):
            if model in prices:
                raise RefusedError(f"{where}: {model} has two lines; put all that it costs into one")
            prices[model] = price
        return self.with_prices(prices, where)

    def cost(self, usage: object, model: object, known_as: KnownAs = _as_named) -> float | None:
        """Return the cost of a usage in US dollars, None when it is not priced."""
        cost = self._cost_or_reason(usage, model, known_as)
        return None if isinstance(cost, str) else cost

    def why_unpriced(self, usage: object, model: object, known_as: KnownAs = _as_named) -> str | None:
        """Return why a usage is not priced, None when it is."""
        cost = self._cost_or_reason(usage, model, known_as)
        return cost if isinstance(cost, str) else None

    def least_cost(self, usage: object, model: object, known_as: KnownAs = _as_named) -> float:
        """Return what a usage costs at least, by those of its counts that can be read; 0 when that is not known."""
        try:
            return self._cost(usage, model, known_as, known_part)
        except UnpricedError:
            return 0.0

    def row_cost(self, row: Mapping[str, Any], model: str | None = None, known_as: KnownAs = _as_named) -> RowCost:
        """Return the cost of a results or errors row.

        A failed try that does not name its model had that of the row.

        :param model: the requested model, for app usage of a row that names none
        :param known_as: the name by which a model of the app was requested
        """
        app_model, judge_model = row.get("model") or model, row.get("judge_model")
        meta = row.get("meta")
        account = row if "failure_class" in row else meta if isinstance(meta, Mapping) else {}
        tries = account.get("retry_usage")
        failed = [each for each in tries if isinstance(each, Mapping)] if isinstance(tries, list) else []
        app = [(row.get("usage"), app_model)]
        app += [(each, each.get("model") or app_model) for each in failed if "judge_model" not in each]
        judge = [(row.get("judge_usage"), judge_model)]
        judge += [(each, each["judge_model"] or judge_model) for each in failed if "judge_model" in each]
        app_cost, app_reasons = self._priced(app, known_as)
        judge_cost, judge_reasons = self._priced(judge, _as_named)
        reasons = [*app_reasons, *judge_reasons]
        reports = any(usage is not None for usage, _ in app)
        silent, untold = _unknown(row, account)
        return RowCost(app_cost, judge_cost, len(reasons), Counter(reasons), untold, silent, reports)

    def _cost(
        self, usage: object, model: object, known_as: KnownAs, read: Callable[[object], Usage] = read_usage
    ) -> float:
        parts = usage.get("by_model") if isinstance(usage, Mapping) else None
        if isinstance(parts, Mapping) and parts:  # several models, each with its own price
            return sum(self._cost(part, of, known_as, read) for of, part in parts.items())
        counts = read(usage)
        named = isinstance(model, str) and model
        price = self._prices.get(named) or self._prices.get(known_as(named)) if named else None
        if price is None:
            raise UnpricedError(f"there is no price for model {model!r}" if model else "the model is not known")
        return sum(price.cost(call) for call in single_calls(usage, read)) or price.cost(counts)

    def _cost_or_reason(self, usage: object, model: object, known_as: KnownAs) -> float | str:
        try:
            return self._cost(usage, model, known_as)
        except UnpricedError as reason:
            return str(reason)

    def _priced(self, usages: Iterable[tuple[object, object]], known_as: KnownAs) -> tuple[float | None, list[str]]:
        costs = [self._cost_or_reason(usage, model, known_as) for usage, model in usages if usage is not None]
        reasons = [cost for cost in costs if isinstance(cost, str)]
        return _sum(cost for cost in costs if not isinstance(cost, str)), reasons


def summed(costs: Iterable[RowCost]) -> RowCost:
    """Return what several rows cost together."""
    every = list(costs)
    return RowCost(
        app=_sum(c.app for c in every),
        judge=_sum(c.judge for c in every),
        unpriced=sum(c.unpriced for c in every),
        why=sum((Counter(c.why) for c in every), Counter[str]()),
        untold=sum(c.untold for c in every),
        silent=sum(c.silent for c in every),
        reports=any(c.reports for c in every),
    )


def _unknown(row: Mapping[str, Any], account: Mapping[str, Any]) -> tuple[bool, bool]:
    """Return whether a row is silent about its app's spend, and whether other spend of it is unknown."""
    untold = bool(account.get(UNKNOWN_TRIES))
    untold = untold or (row.get("judge_model") is not None and row.get("judge_usage") is None)
    if row.get("usage") is not None or row.get("failure_class") in UNBILLED:
        return False, untold
    untold = untold or row.get("model") is not None
    return not untold, untold


def _sum(parts: Iterable[float | None]) -> float | None:
    known = [part for part in parts if part is not None]
    return sum(known) if known else None


def _price(value: object, where: str) -> Price:
    if not isinstance(value, Mapping):
        raise RefusedError(f'{where} must be a price such as {{"in": 3, "out": 15}}')
    try:
        return Price.model_validate(value)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        field = ".".join(map(str, first["loc"]))
        if first["type"] == "extra_forbidden":
            known = ", ".join(f.alias or name for name, f in Price.model_fields.items())
            raise RefusedError(f"{where}: {field} is no key of a price; there are: {known}") from None
        raise RefusedError(f"{where}: {f'{field}: ' if field else ''}{first['msg'].lower()}") from None


def _read_line(line: str, where: str) -> tuple[str, dict[str, Any]]:
    model, *pairs = line.split()
    price: dict[str, Any] = {}
    for pair in pairs:
        name, equals, number = pair.partition("=")
        try:
            price[name] = float(number) if equals and number.isascii() and "_" not in number else None
        except ValueError:
            price[name] = None
        if price[name] is None:
            raise RefusedError(f"{where}: {model}: expected name=number, such as in=3, got {pair!r}")
    return model, price
