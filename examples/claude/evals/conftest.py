"""The eval of the help desk: the app is called as it is, and Claude judges what no comparison of texts can tell."""

import pytest
from anthropic import AsyncAnthropic

from helpdesk.assistant import answer
from pytest_hillclimb import Grade, claude
from pytest_hillclimb.claude import judges

# Whatever the app asks this client, and is answered, goes to the row and the transcript of the case it is for. The
# SDK's own retries are off: those of the trial are the only ones, and are counted.
CLIENT = claude.record(AsyncAnthropic(max_retries=0))

JUDGE = "claude-sonnet-5-5"  # not the model of the app: that would be refused
CRITERIA = [
    "The better reply spares the customer another message: it has the dates, hours, prices and codes that are needed.",
    "It says what to do next, if there is anything to do.",
]


async def pytest_hillclimb_run_case(case, ctx):
    """Let the app answer, by the instructions of this round. Transcript, usage and model come from the client."""
    if not (CLIENT.api_key or CLIENT.auth_token or CLIENT.credentials):
        pytest.exit("set ANTHROPIC_API_KEY, or try this without one: python examples/claude/offline.py", returncode=4)
    return {"output": await answer(case.prompt, client=CLIENT, model=ctx.model, prompt=ctx.variant)}


async def pytest_hillclimb_grade_case(case, run, ref, ctx):
    """Grade the reply by itself (``pass``), and against the frozen reply of the baseline (``win``)."""
    if not run.output.strip():
        return Grade(grade={"pass": 0, "win": 0.5 if ref is None else 0}, explanation={"pass": "there is no reply"})
    if claims := case.model_extra.get("claims"):
        grade = await judges.rubric(ctx, case, run, claims, model=JUDGE, name="pass", score="all")
    else:
        grade = stated(case.facts, run.output)
    return judges.combined(grade, await judges.pairwise(ctx, case, run, ref, model=JUDGE, criteria=CRITERIA))


def pytest_hillclimb_expected_answer(case):
    """Return the reply that the grader must pass, for ``--hillclimb-oracle``, which has no key for a judge."""
    if "claims" in case.model_extra:
        pytest.skip("only the judge can tell, which is what test_judge.py is for")
    return case.expected


def stated(facts, reply):
    """Return the grade of a reply that must contain all facts."""
    missing = [fact for fact in facts if fact not in reply]
    why = "; ".join(f"does not say {fact!r}" for fact in missing) or "says all it must"
    return Grade(grade={"pass": float(not missing)}, passed=not missing, explanation={"pass": why})
