"""Bringing what trials print and log home to their own item, while pytest captures for the item in front."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable

import pytest

from pytest_hillclimb.engine.output import LogRouter, StreamRouter, not_from_a_trial, outside_of_trials

_DEFAULT_FORMAT = "%(levelname)-8s %(name)s:%(filename)s:%(lineno)d %(message)s"


class OutputRouting:
    """Routes streams and log records of trials for the time of a run. With ``-s``, streams are left alone.

    :param redact: takes the secrets out of a text
    """

    def __init__(self, config: pytest.Config, redact: Callable[[str], str]) -> None:
        self._capturing = config.getoption("capture", "no") != "no"
        self._streams = StreamRouter(redact)
        self._logs = LogRouter(redact)
        self._logs.setFormatter(
            logging.Formatter(_ini(config, "log_format") or _DEFAULT_FORMAT, _ini(config, "log_date_format"))
        )
        self._filtered: list[logging.Handler] = []
        self._freed: list[logging.Handler] = []

    def start(self) -> None:
        """Start routing."""
        logging.getLogger().handlers.insert(0, self._logs)  # before those that pytest prints and writes with
        self.adopt()

    def adopt(self) -> None:
        """Route the streams and pytest's log collectors that are in place now; pytest changes them between phases."""
        if self._capturing:
            for name in ("stdout", "stderr"):
                for stream in (getattr(sys, name), getattr(sys, f"__{name}__")):
                    if stream is not None:
                        self._streams.adopt(stream, name)
        for handler in logging.getLogger().handlers:
            kind = type(handler).__name__
            if kind == "LogCaptureHandler" and handler not in self._filtered:
                handler.addFilter(not_from_a_trial)
                self._filtered.append(handler)
            elif kind == "_LiveLoggingStreamHandler" and handler not in self._freed:
                handler.emit = outside_of_trials(handler.emit)  # type: ignore[assignment,method-assign]
                self._freed.append(handler)

    def stop(self) -> None:
        """Leave streams and logging as they were."""
        self._streams.release()
        logging.getLogger().removeHandler(self._logs)
        for handler in self._filtered:
            handler.removeFilter(not_from_a_trial)
        for handler in self._freed:
            handler.__dict__.pop("emit", None)


def _ini(config: pytest.Config, name: str) -> str | None:
    try:
        value = config.getini(name)
    except (KeyError, ValueError):  # the logging plugin is off
        return None
    return str(value) if value else None
