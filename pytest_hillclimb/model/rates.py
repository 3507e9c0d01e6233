"""The prices of one model, and what a usage costs by them.

Formula, per token: input, output and ``reasoning_tokens`` (at the price of output), cache reads and cache writes at
their prices; times the factors of batch, fast mode and US-only inference where the usage names them; plus web searches.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, model_validator

from pytest_hillclimb.model.usage import UnpricedError, Usage

_PER_MILLION = 1_000_000
_CACHE_READ, _CACHE_WRITE_5M, _CACHE_WRITE_1H = 0.1, 1.25, 2.0  # factors on the price of input, by the API's price list
_ANYWHERE = {"global": 1.0, "not_available": 1.0, "": 1.0}  # what inference_geo says of calls at the normal price

_MAX_PRICE = 1e9
_Dollars = Annotated[float, Field(ge=0, le=_MAX_PRICE, allow_inf_nan=False, strict=True)]
_Factor = Annotated[float, Field(gt=0, le=1e3, allow_inf_nan=False, strict=True)]


class Rates(BaseModel):
    """US dollars per million tokens of each kind; those of the cache follow from ``input`` unless given."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    input: _Dollars = Field(alias="in")
    output: _Dollars = Field(alias="out")
    cache_read: _Dollars
    cache_write_5m: _Dollars
    cache_write_1h: _Dollars

    @model_validator(mode="before")
    @classmethod
    def _with_cache(cls, data: Any) -> Any:
        if not isinstance(data, Mapping):
            return data
        given = {key: value for key, value in data.items() if value is not None}
        base = given.get("in")
        if isinstance(base, bool) or not isinstance(base, (int, float)) or not 0 <= base <= _MAX_PRICE:
            base = 0.0  # which its own field refuses
        derived = {"cache_read": _CACHE_READ, "cache_write_5m": _CACHE_WRITE_5M, "cache_write_1h": _CACHE_WRITE_1H}
        return {**{name: base * factor for name, factor in derived.items()}, **given}

    def dollars(self, usage: Usage) -> float:
        """Return the cost of the tokens of *usage* in US dollars."""
        return (
            usage.input * self.input
            + (usage.output + usage.reasoning) * self.output
            + usage.cache_read * self.cache_read
            + usage.cache_write_5m * self.cache_write_5m
            + usage.cache_write_1h * self.cache_write_1h
        ) / _PER_MILLION


class LongPrompt(Rates):
    """The rates of a call whose whole prompt, cached or not, has more than ``above`` tokens.

    A usage that was summed over several calls is priced call by call where it holds them (``calls``); without them it
    is taken for one call.
    """

    above: Annotated[int, Field(ge=0, strict=True)]


class Price(Rates):
    """The prices of one model.

    ``web_search_per_1000`` is in US dollars; ``batch`` (default: half), ``fast`` and ``us_inference`` are factors on
    the rates. What is None is not known, and usage that names it is not priced. ``as_of`` says when the price was
    confirmed.
    """

    web_search_per_1000: _Dollars | None = None
    batch: _Factor = 0.5
    fast: _Factor | None = None
    us_inference: _Factor | None = None
    long_prompt: LongPrompt | None = None
    as_of: str | None = None
    note: str | None = None

    def cost(self, usage: Usage) -> float:
        """Return the cost of *usage* in US dollars.

        :raises UnpricedError: when it names something that no price is known for
        """
        if usage.unknown:
            raise UnpricedError(f"there is no price for {', '.join(usage.unknown)}")
        if usage.web_searches and self.web_search_per_1000 is None:
            raise UnpricedError("there is no price for web searches")
        searches = usage.web_searches * (self.web_search_per_1000 or 0.0) / 1000
        is_long = self.long_prompt is not None and usage.prompt > self.long_prompt.above
        rates = self.long_prompt if is_long and self.long_prompt is not None else self
        return rates.dollars(usage) * self._factor(usage) + searches

    def _factor(self, usage: Usage) -> float:
        factors: dict[tuple[str, str], float | None] = {
            ("service_tier", usage.tier): {"standard": 1.0, "batch": self.batch}.get(usage.tier),
            ("speed", usage.speed): {"standard": 1.0, "fast": self.fast}.get(usage.speed),
            ("inference_geo", usage.geo): {**_ANYWHERE, "us": self.us_inference}.get(usage.geo),
        }
        product = 1.0
        for (name, value), factor in factors.items():
            if factor is None:
                raise UnpricedError(f"there is no price for {name} {value!r}")
            product *= factor
        return product
