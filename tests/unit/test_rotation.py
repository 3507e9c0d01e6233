"""Which rotation it is: numbers, days, and what is neither."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matrix_files import GOLDEN

from pytest_hillclimb.schedule.rotation import rotation_of, week_of

TODAY = datetime(2026, 8, 30, 6, 17, tzinfo=UTC)
quick = settings(derandomize=True, deadline=None, max_examples=100)


@pytest.mark.parametrize(("text", "week"), GOLDEN["weeks"])
def test_weeks_are_those_of_the_golden_values(text: str, week: int | None) -> None:
    if week is None:
        with pytest.raises(ValueError, match="a whole number, 'today', a date"):
            rotation_of(text, TODAY)
    else:
        assert rotation_of(text, TODAY) % 7 == week


@pytest.mark.parametrize(
    ("text", "rotation"),
    [
        ("0", 0),
        ("7", 7),
        ("+3", 3),
        ("-8", -8),
        ("007", 7),
        ("999999999999999999", 10**18 - 1),
        ("today", 2956),
        ("2026-08-26", 2955),
        ("2026-08-27", 2956),
        ("1970-01-01", 0),
        ("1969-12-31", -1),
        ("0001-01-01", -102738),
        ("9999-12-31", 418985),
        ("2026-08-27T00:00Z", 2956),
        ("2026-08-27t00:00:00z", 2956),
        ("2026-08-27 00:00:00.5+00:00", 2956),
        ("2026-08-27T01:59:59+02:00", 2955),
        ("2026-08-26T22:00:00-02:00", 2956),
        ("0001-01-01T00:00:00+23:59", -102738),
    ],
)
def test_a_rotation_is_a_number_or_the_week_of_a_day(text: str, rotation: int) -> None:
    assert rotation_of(text, TODAY) == rotation


@pytest.mark.parametrize(
    "text",
    [
        *("", " ", "1.5", "1e3", "NaN", "1_0", "0x1", "\uff11", "\u0663", "--1", "+", " 1", "1\n", "9" * 30, "Today"),
        *("now", "2026-8-1", "2026-08", "2026/08/27", "2026-W35-4", "2026-08-27Z", "2026-08-27\n", "-2026-08-27"),
        *("2026-08-27T06:00", "2026-08-27T06:00:00", "2026-08-27T06Z", "2026-08-27T06:00+2", "2026-08-27T06:00+02"),
        *("2026-08-27T24:00Z", "2026-08-27T23:59:60Z", "2026-08-27T06:00 Z", "2026-08-27T06:00Z\n"),
        "\uff12\uff10\uff12\uff16-08-27",
    ],
)
def test_what_is_no_rotation_is_refused_with_what_is(text: str) -> None:
    with pytest.raises(ValueError, match=r"^a whole number, 'today', a date such as .* or a date-time with an offset"):
        rotation_of(text, TODAY)


@pytest.mark.parametrize("text", ["2026-02-30", "2026-02-29", "2026-13-01", "0000-01-01", "2026-01-01T00:00+24:00"])
def test_days_and_offsets_that_do_not_exist_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="there is no such day or offset"):
        rotation_of(text, TODAY)


@quick
@given(st.integers(-5000, 5000), st.timedeltas(timedelta(0), timedelta(days=6, hours=23)), st.integers(-14, 14))
def test_a_week_is_seven_days_from_a_thursday_in_utc_wherever_one_is(week: int, into: timedelta, hours: int) -> None:
    moment = (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(weeks=week) + into).astimezone(
        timezone(timedelta(hours=hours))
    )
    assert week_of(moment) == week
    assert rotation_of("today", moment) == week


@quick
@given(st.integers(-(10**18) + 1, 10**18 - 1))
def test_numbers_are_themselves(number: int) -> None:
    assert rotation_of(str(number), TODAY) == number
