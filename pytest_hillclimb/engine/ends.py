"""Exceptions by which the engine itself ends a trial."""

from __future__ import annotations


class Fenced(BaseException):
    """The trial has ended while its lane was elsewhere: the lane unwinds, and its work is dropped."""


class EngineEnd(Exception):
    """Base of the reasons that are not an exception of user code; their type tells a user nothing."""

    failure_class: str


class TrialTimeout(EngineEnd):
    """The deadline of the execution has passed."""

    failure_class = "timeout"


class Substituted(EngineEnd):
    """Another model answered than the one that was asked for."""

    failure_class = "serving_substitution"


class Interrupted(EngineEnd):
    """The session ended while the trial was under way."""

    failure_class = "error"


class WorkerLost(EngineEnd):
    """The process died in which the trial was under way."""

    failure_class = "worker_lost"
