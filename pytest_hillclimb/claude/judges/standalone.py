"""Judging without a run of pytest: the context of an attempt that belongs to no flow."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from time import monotonic

from pytest_hillclimb.engine.app import App, Context
from pytest_hillclimb.model.case import Case
from pytest_hillclimb.model.run import Run
from pytest_hillclimb.model.settings import Settings
from pytest_hillclimb.schedule.plan import Execution

TIMEOUT_S = 600.0
_VARIANT = "v1"  # a later round, which has references

GradeCase = Callable[[Case, Run, str | None, Context], object]
"""A function like ``pytest_hillclimb_grade_case``, sync or async."""


def standalone_context(
    case: Case, *, model: str | None = None, rep: int = 0, variant: str = _VARIANT, timeout: float = TIMEOUT_S
) -> Context:
    """Return a ``ctx`` for judges outside of a trial, such as where verdicts are compared with human labels.

    Nothing of it is stored, and nothing is retried: an exception of the SDK is the caller's.

    :param model: the model under test, if its answers must not be judged by itself
    :param rep: the repetition, on which ``ctx.seed`` depends
    :param timeout: seconds from now until ``ctx.remaining()`` is 0
    """
    deadline = monotonic() + timeout
    app = judged_app(None, _no_grader, None, _settings(model, variant, timeout))
    return Context(execution=Execution(case, rep, 0), app=app, attempt=1, deadline=lambda: deadline)


def later_round(model: str | None, timeout: float) -> Settings:
    """Return the options of a round after the baseline."""
    return _settings(model, _VARIANT, timeout)


def judged_app(output: object, grade_case: GradeCase, reference: str | None, settings: Settings) -> App:
    """Return an app that answers everything with *output*; *reference* is what the baseline had answered."""
    return App(
        run_case=lambda case, ctx: Run(output=output),
        grade_case=grade_case,
        perf=lambda case, run: [],
        grade_is_async=True,  # awaits what can be awaited, and takes the rest as it is
        reference=lambda safe_id: reference,
        signal=lambda error: None,
        settings=settings,
        state={},
    )


def _settings(model: str | None, variant: str, timeout: float) -> Settings:
    return Settings(flow="", flow_base=Path.cwd(), variant=variant, model=model, timeout=timeout)


def _no_grader(case: Case, run: Run, ref: str | None, ctx: Context) -> object:
    raise NotImplementedError("a context outside of a trial has no grader")
