"""The eval of the support assistant: how a case is run, and how the reply is graded."""

import json
import random
from datetime import date
from typing import NamedTuple

from app.assistant import answer
from app.rules import load_rules
from pytest_hillclimb import Grade, Run, Turn

TODAY = date(2025, 6, 16)


def pytest_hillclimb_run_case(case, ctx):
    """Let the assistant answer the customer's message with the rules of this round."""
    result = answer(case.prompt, rules=load_rules(ctx.variant), today=TODAY, rng=random.Random(ctx.seed))
    transcript = [Turn(role="user", content=case.prompt)]
    for step in result.steps:
        transcript.append(Turn(role="tool_call", name=step.tool, content=pretty(step.arguments)))
        transcript.append(Turn(role="tool_result", name=step.tool, content=pretty(step.result)))
    transcript.append(Turn(role="assistant", content=result.text))
    return Run(
        output=result.text,
        transcript=transcript,
        model="triage-rules-1",
        # No model, no tokens: whitespace-separated words are counted in their place.
        usage={"input_tokens": len(case.prompt.split()), "output_tokens": len(result.text.split())},
        stop_reason="end_turn",
        tool_calls=len(result.steps),
    )


def pytest_hillclimb_grade_case(case, run, ref, ctx):
    """Grade the reply by the facts it must state, and against the frozen reply of the baseline."""
    mine = check(run.output, case.expected)
    # In the baseline there is nothing to compare with: 0.5, which also stands for "as good as the baseline".
    win = 0.5 if ref is None else compare(mine, check(ref, case.expected))
    return Grade(
        grade={"pass": mine.passed, "coverage": mine.coverage, "win": win},
        explanation={"pass": mine.why, "coverage": f"{mine.coverage:.0%} of the required facts are in the reply"},
    )


def pytest_hillclimb_expected_answer(case):
    """State the facts: a reply that the grader must pass, for ``--hillclimb-oracle``."""
    return "; ".join(case.expected["facts"])


def pytest_hillclimb_perf(case, run):
    """Keep the length of the reply beside the grades."""
    return {"reply_characters": len(run.output)}


class Check(NamedTuple):
    """What a reply is worth."""

    passed: bool
    coverage: float
    why: str


def check(reply: str, expected: dict) -> Check:
    """Look for the facts that *reply* must state, and for what it must not say."""
    text = reply.lower()
    missing = [fact for fact in expected["facts"] if fact.lower() not in text]
    wrong = [phrase for phrase in expected.get("never", []) if phrase.lower() in text]
    reasons = [f"does not say {fact!r}" for fact in missing] + [f"says {phrase!r}" for phrase in wrong]
    return Check(
        passed=not reasons,
        coverage=(len(expected["facts"]) - len(missing)) / len(expected["facts"]),
        why="; ".join(reasons) or "says all it must, and nothing it must not",
    )


def compare(mine: Check, baseline: Check) -> float:
    """Return 1 for better than the baseline, 0 for worse, 0.5 for the same."""
    ours, theirs = (mine.passed, mine.coverage), (baseline.passed, baseline.coverage)
    return 0.5 if ours == theirs else float(ours > theirs)


def pretty(value: object) -> str:
    """Return the arguments or the result of a tool as a transcript shows them."""
    return json.dumps(value, indent=2, default=str)
