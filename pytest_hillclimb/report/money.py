"""Money in words: amounts in US dollars, and what is not known of a cost."""

from __future__ import annotations

import math

from pytest_hillclimb.model.prices import RowCost
from pytest_hillclimb.report.terminal import one_line, plural

_DECIMALS, _MOST_DECIMALS = 4, 12
_SIGNIFICANT = 4
_REASONS = 3


def dollars(usd: float) -> str:
    """Return an amount with 4 decimals, a smaller one than 0.001 with up to 4 significant digits: never a false 0."""
    if not 0 < usd < 0.001:
        return f"{usd:.{_DECIMALS}f}"
    decimals = _SIGNIFICANT - 1 - math.floor(math.log10(usd))
    if decimals > _MOST_DECIMALS:
        return f"{usd:.{_SIGNIFICANT - 1}e}"
    kept = f"{usd:.{decimals}f}".rstrip("0")
    return kept + "0" * (_DECIMALS - len(kept.partition(".")[2]))


def gaps(cost: RowCost) -> list[str]:
    """Return what a cost leaves out: usages without a price and why, and executions that do not tell what they used."""
    found = []
    if cost.unpriced:
        reasons = sorted(cost.why, key=lambda each: -cost.why[each])
        more = f"; {len(reasons) - _REASONS} more reasons" if len(reasons) > _REASONS else ""
        told = "; ".join(one_line(reason) for reason in reasons[:_REASONS])
        hint = "; prices come from hillclimb_prices" if any("no price for" in reason for reason in reasons) else ""
        found.append(f"{plural(cost.unpriced, 'usage')} not priced{f' ({told}{more}{hint})' if told else ''}")
    if cost.unknown:
        found.append(f"{plural(cost.unknown, 'execution')} of unknown cost")
    return found


def is_partial(cost: RowCost) -> bool:
    """Return whether more was spent than the cost says, or may have been."""
    return bool(cost.unpriced or cost.unknown)
