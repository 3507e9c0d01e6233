"""Exceptions by which the engine itself ends a trial."""

from __future__ import annotations


class Fenced(BaseException):
    """The trial has ended while its lane was elsewhere: the lane unwinds, and its work is dropped."""


class TrialTimeout(Exception):
    """The deadline of the execution has passed."""

    failure_class = "timeout"


class Substituted(Exception):
    """Another model answered than the one that was asked for."""

    failure_class = "serving_substitution"


class Interrupted(Exception):
    """The session ended while the trial was under way."""

    failure_class = "error"
