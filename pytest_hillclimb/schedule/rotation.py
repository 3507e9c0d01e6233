"""Which rotation it is: a number, or the week that a day lies in.

Weeks are counted from the epoch, so week 0 starts on Thursday, 1970-01-01, 00:00 UTC, and earlier weeks are negative.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

EXPECTED = (
    "a whole number, 'today', a date such as 2026-08-27, or a date-time with an offset, such as 2026-08-27T06:00Z"
)

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_WEEK = timedelta(weeks=1)
_INTEGER = re.compile(r"[+-]?[0-9]{1,18}")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_TIME = re.compile(r"[Tt ]([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9](\.[0-9]{1,6})?)?([Zz]|[+-][0-9]{2}:[0-5][0-9])")


def rotation_of(text: str, today: datetime) -> int:
    """Return the rotation that a user asked for, of any size and sign.

    :param text: a number, ``today``, a date (UTC), or a date-time with an offset
    :param today: now, with a time zone
    :raises ValueError: with what is expected instead
    """
    if _INTEGER.fullmatch(text):
        return int(text)
    return week_of(today if text == "today" else _moment(text))


def week_of(moment: datetime) -> int:
    """Return the number of weeks from the epoch to *moment*, which has a time zone; negative before the epoch."""
    return (moment - _EPOCH) // _WEEK


def _moment(text: str) -> datetime:
    date = _DATE.match(text)
    time = text[date.end() :] if date else ""
    if not date or (time and not _TIME.fullmatch(time)):
        raise ValueError(EXPECTED)
    try:
        moment = datetime.fromisoformat(text.upper())
    except ValueError:
        raise ValueError(f"{EXPECTED}; there is no such day or offset") from None
    return moment if time else moment.replace(tzinfo=UTC)
