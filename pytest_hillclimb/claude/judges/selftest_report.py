"""What the self-test of a judge found."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pytest_hillclimb.report.terminal import one_line, plural

_SHOWN_CHARS = 160


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeResult:
    """What a judge made of one probe of one case.

    ``probe`` is ``empty``, ``gives up``, ``other question``, ``instruction`` or ``expected``; ``passed`` has one
    verdict for each repeat that could be measured, ``errors`` what kept the others from being so.
    """

    case_id: str
    probe: str
    must_pass: bool
    passed: tuple[bool, ...]
    errors: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether every repeat could be measured and came out as it must."""
        return bool(self.passed) and not self.errors and all(each == self.must_pass for each in self.passed)

    @property
    def agreement(self) -> float | None:
        """The share of repeats with the most frequent verdict, None for less than two repeats."""
        count = len(self.passed)
        return max(sum(self.passed), count - sum(self.passed)) / count if count > 1 else None


@dataclass(frozen=True, slots=True, kw_only=True)
class SelfTestReport:
    """What the self-test of a judge found; ``str()`` is for people.

    ``judge_models`` as served; ``judge_usage`` is the sum of all calls, failed ones included, None where nothing was
    billed; ``stopped`` says why the test was ended early, such as an invalid key; ``notes`` are waits and the like.
    """

    results: tuple[ProbeResult, ...]
    repeats: int
    judge_models: tuple[str, ...] = ()
    judge_usage: dict[str, Any] | None = None
    stopped: str | None = None
    notes: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether every probe came out as it must, each time."""
        return self.stopped is None and bool(self.results) and not self.wrong

    @property
    def wrong(self) -> tuple[ProbeResult, ...]:
        """The probes that came out otherwise, or could not be measured each time."""
        return tuple(result for result in self.results if not result.ok)

    @property
    def agreement(self) -> float | None:
        """The mean agreement of the probes over their repeats, None when none had two."""
        shares = [result.agreement for result in self.results if result.agreement is not None]
        return sum(shares) / len(shares) if shares else None

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        good, verdict = len(self.results) - len(self.wrong), "passed" if self.ok else "FAILED"
        counted = f"{good} of {plural(len(self.results), 'probe')} came out as they must"
        yield f"judge self-test {verdict}: {counted}, {plural(self.repeats, 'repeat')} each"
        if self.stopped is not None:
            yield f"  stopped early: {one_line(self.stopped, _SHOWN_CHARS)}"
        for result in self.wrong:
            yield from _of_probe(result)
        if self.agreement is not None:
            yield f"  agreement over repeats: {self.agreement:.1%}{self._unsteady()}"
        models = ", ".join(one_line(model, _SHOWN_CHARS) for model in self.judge_models) or "not known"
        yield f"  judge: {models}; {_tokens(self.judge_usage)}"
        for note in self.notes:
            yield f"  note: {one_line(note, _SHOWN_CHARS)}"

    def _unsteady(self) -> str:
        unsteady = [r for r in self.results if r.agreement is not None and r.agreement < 1]
        return f" (not unanimous: {', '.join(map(_name, unsteady))})" if unsteady else ""


def _of_probe(result: ProbeResult) -> Iterator[str]:
    measured, wanted = len(result.passed), "pass" if result.must_pass else "fail"
    wrong = sum(each != result.must_pass for each in result.passed)
    if wrong:
        yield f"  {_name(result)}: must {wanted}, {'failed' if result.must_pass else 'passed'} {wrong} of {measured}"
    if result.errors:
        yield f"  {_name(result)}: {plural(len(result.errors), 'repeat')} could not be measured"
        yield from (f"    {one_line(error, _SHOWN_CHARS)}" for error in dict.fromkeys(result.errors))
    elif not measured:
        yield f"  {_name(result)}: not tried"


def _name(result: ProbeResult) -> str:
    return f"{result.probe} / {one_line(result.case_id, _SHOWN_CHARS)}"


def _tokens(usage: dict[str, Any] | None) -> str:
    if usage is None:
        return "nothing is known to have been billed"
    told = [f"{usage[key]} {key.removesuffix('_tokens')}" for key in ("input_tokens", "output_tokens") if key in usage]
    return f"{' and '.join(told)} tokens" if told else "tokens not told"
