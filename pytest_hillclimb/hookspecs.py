"""The hooks that the conftest of an eval implements.

They are called by the engine, many at a time, on its own threads (``def``) or on its event loop (``async def``); never
on pytest's main thread, except ``pytest_hillclimb_load_cases``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pytest_hillclimb import Case, Context, Fault, Run

MAIN_HOOKS = ("pytest_hillclimb_run_case", "pytest_hillclimb_grade_case")
CHAOS_HOOKS = ("pytest_hillclimb_run_case", "pytest_hillclimb_inject_fault", "pytest_hillclimb_check_invariant")


@pytest.hookspec
def pytest_hillclimb_load_cases(config: pytest.Config) -> Iterable[Case | Mapping[str, Any]] | None:
    """Return the cases of the eval: mappings like the entries of a catalog file, or ``Case`` objects.

    Optional beside or instead of a catalog file. Called once, on the main thread, before collection; the order is kept.
    Must not spend anything: it is called for ``--collect-only`` too. ::

        def pytest_hillclimb_load_cases(config):
            return [{"id": path.stem, "prompt": path.read_text()} for path in sorted(PROMPTS.glob("*.txt"))]
    """


@pytest.hookspec(firstresult=True)
def pytest_hillclimb_run_case(case: Case, ctx: Context) -> Run | Mapping[str, Any] | None:
    """Run the app under test on one case and return its output, transcript, model and usage.

    ``async def`` works too. Raise what your client raises: transient errors are retried, all others become an errors
    row. ``ctx.remaining()`` tells the seconds to the deadline. ::

        async def pytest_hillclimb_run_case(case, ctx):
            reply = await my_app.answer(case.prompt, model=ctx.model)
            return {"output": reply.text, "model": reply.model, "usage": reply.usage, "stop_reason": reply.stop_reason}
    """


@pytest.hookspec(firstresult=True)
def pytest_hillclimb_grade_case(case: Case, run: Run, ref: str | None, ctx: Context) -> Any:
    """Grade what the app gave: a ``Grade``, a mapping, a bool or a number.

    ``async def`` works too. ``ref`` is the frozen output of the baseline for this case, None in the baseline itself. A
    judge that was billed before it failed should put ``judge_model`` and ``judge_usage`` on its exception. ::

        def pytest_hillclimb_grade_case(case, run, ref, ctx):
            return {"pass": case.expected in run.output, "brevity": 1 / (1 + len(run.output))}
    """


@pytest.hookspec
def pytest_hillclimb_perf(case: Case, run: Run) -> Mapping[str, Any] | None:
    """Return further numbers for the row, such as ``{"cost_usd": 0.002}``. Optional; every implementation counts."""


@pytest.hookspec(firstresult=True)
def pytest_hillclimb_expected_answer(case: Case) -> Any:
    """Return the answer that the grader must pass, for ``--hillclimb-oracle``; optional.

    Needed where ``case.expected`` is not itself an answer. None says that there is none, and skips the case. ::

        def pytest_hillclimb_expected_answer(case):
            return f"Your order arrives on {case.expected['date']}."
    """


@pytest.hookspec(firstresult=True)
def pytest_hillclimb_inject_fault(fault: Fault, ctx: Context) -> Any:
    """Make the harness ready to fail, in the chaos lane; called before ``run_case`` of each attempt.

    Return anything but None, such as the id of what was armed; None says that the harness does not support the fault,
    and skips the scenario. Whoever sees the fault take effect, here or in ``run_case``, calls ``ctx.fault.fire(id)``
    with the id of what shows it. A fault that did not fire, or left no evidence, is never a pass. ::

        def pytest_hillclimb_inject_fault(fault, ctx):
            if fault.kind == "restart":
                return my_harness.kill_at(fault.phase, on_kill=lambda pid: fault.fire(f"pid-{pid}"))
    """


@pytest.hookspec(firstresult=True)
def pytest_hillclimb_check_invariant(fault: Fault, run: Run, ctx: Context) -> Mapping[str, bool] | None:
    """Return the checks of a scenario's invariant after its fault has fired, as ``{check: bool}``.

    All must be True for the scenario to pass. ``fault.invariant`` says in words what must hold. ::

        def pytest_hillclimb_check_invariant(fault, run, ctx):
            if fault.kind == "restart":
                return {"one final record": len(my_harness.final_records()) == 1}
    """
