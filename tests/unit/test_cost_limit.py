"""The ceiling of a campaign as typed: a plain decimal number of US dollars above 0."""

from __future__ import annotations

import pytest
from matrix_files import GOLDEN

from pytest_hillclimb.errors import OptionError
from pytest_hillclimb.options import OPTIONS, parse_value

[MAX_COST] = (option for option in OPTIONS if option.name == "max-cost")


@pytest.mark.parametrize(("text", "usd"), GOLDEN["cost_limits"])
def test_ceilings_are_those_of_the_golden_values(text: str, usd: float | None) -> None:
    if usd is None:
        with pytest.raises(OptionError, match="--hillclimb-max-cost: expected US dollars"):
            parse_value(MAX_COST, text, MAX_COST.flag)
    else:
        assert parse_value(MAX_COST, text, MAX_COST.flag) == usd
