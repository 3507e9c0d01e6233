"""Claude as a judge, for ``grade_case``: claims judged true or false, or two answers compared blindly.

A rubric of concrete claims::

    from pytest_hillclimb.claude import judges

    async def pytest_hillclimb_grade_case(case, run, ref, ctx):
        claims = ["names the refund deadline of 30 days", "does not promise an exception"]
        return await judges.rubric(ctx, case, run, claims, model="claude-sonnet-5-5", score="all")

Which answer is better, this round's or the frozen one of the baseline::

    async def pytest_hillclimb_grade_case(case, run, ref, ctx):
        criteria = "Prefer the answer that solves the customer's problem with fewer questions."
        return await judges.pairwise(ctx, case, run, ref, model="claude-sonnet-5-5", criteria=criteria)

Both at once: ``judges.combined(await judges.rubric(...), await judges.pairwise(...))``. Their grades carry the reasons
(``explanation``), the model that judged, as served (``judge_model``), and what it was billed (``judge_usage``).

What can be relied on:

- A verdict that cannot be read raises ``JudgeError``, with what was billed; there is no default score.
- A model does not judge its own answers unless ``allow_self_judge=True`` says so.
- What is judged is fenced as data: it cannot close its fence, and instructions in it are not followed by a judge that
  keeps to its own. Whether yours does, ``judges.selftest`` tells before money is spent on a campaign::

    report = asyncio.run(judges.selftest(pytest_hillclimb_grade_case, cases))
    assert report.ok, str(report)

Outside of a trial, such as where verdicts are compared with human labels, ``judges.standalone_context(case)`` stands
for the ``ctx`` that these functions take.

The SDK is loaded on first use of a name.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pytest_hillclimb.claude.judges.combining import combined
    from pytest_hillclimb.claude.judges.comparison import pairwise
    from pytest_hillclimb.claude.judges.errors import JudgeError
    from pytest_hillclimb.claude.judges.probing import selftest
    from pytest_hillclimb.claude.judges.scoring import rubric
    from pytest_hillclimb.claude.judges.selftest_report import ProbeResult, SelfTestReport
    from pytest_hillclimb.claude.judges.standalone import standalone_context

_HOMES = {
    "JudgeError": "errors",
    "ProbeResult": "selftest_report",
    "SelfTestReport": "selftest_report",
    "combined": "combining",
    "pairwise": "comparison",
    "rubric": "scoring",
    "selftest": "probing",
    "standalone_context": "standalone",
}

__all__ = [
    "JudgeError",
    "ProbeResult",
    "SelfTestReport",
    "combined",
    "pairwise",
    "rubric",
    "selftest",
    "standalone_context",
]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f"{__name__}.{home}"), name)
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
