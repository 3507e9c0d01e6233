"""The eval of the newsroom's agents: how a candidate is put to work, and what must be in evidence afterwards."""

import os

from newsroom.assignment import Assignment
from newsroom.desk import Desk, Receipt
from pytest_hillclimb import Grade, Run, Turn

# No model is called here, so no key is needed, and none that the shell has is handed to anything: words stand in for
# them. acpx-claude-sonnet has none and is skipped; with ANTHROPIC_API_KEY=offline before the command, it takes part.
sonnet = "offline" if os.environ.get("ANTHROPIC_API_KEY") == "offline" else ""
os.environ.update(OPENAI_API_KEY="offline", OPENROUTER_API_KEY="offline", ANTHROPIC_API_KEY=sonnet)


def pytest_hillclimb_run_case(case, ctx):
    """Bring the candidate's agent to a desk, and let it do the case."""
    assignment = Assignment(case, ctx, Desk(case.input))
    assignment.carry_out()
    question, answer = Turn(role="user", content=case.prompt), Turn(role="assistant", content=assignment.answer)
    return Run(
        output=assignment.answer,
        transcript=[question, *assignment.transcript, answer],
        model=assignment.model,
        usage=dict(assignment.usage),  # what it costs is derived from that
        stop_reason="end_turn",
        tool_calls=sum(turn.role == "tool_call" for turn in assignment.transcript),
        receipts=[vars(receipt) for receipt in assignment.desk.receipts],  # for the grader; not part of the row
    )


def pytest_hillclimb_grade_case(case, run, ref, ctx):
    """Grade what the desk has seen, and not what the agent says that it did."""
    receipts = [Receipt(**receipt) for receipt in run.receipts]
    missing = [flaw for check, wanted in case.expected.items() for flaw in CHECKS[check](wanted, receipts, run.output)]
    wanted = sum(map(len, case.expected.values()))
    return Grade(
        grade={"pass": not missing, "evidence": 1 - min(len(missing), wanted) / wanted},
        explanation={"pass": "; ".join(missing) or f"{len(receipts)} receipts hold all that is asked for"},
    )


def in_order(wanted, receipts, answer):
    """Each call was made, after the one before it."""
    flaws, position = [], 0
    for call in wanted:
        found = next((r.number for r in receipts[position:] if r.what.startswith(call)), None)
        flaws += [f"no {call!r} in its place"] if found is None else []
        position = found or position
    return flaws


def once(wanted, receipts, answer):
    """Each call was made exactly once."""
    counts = {call: sum(receipt.what.startswith(call) for receipt in receipts) for call in wanted}
    return [f"{call!r} {count} times instead of once" for call, count in counts.items() if count != 1]


def never(wanted, receipts, answer):
    """No such call was made; a desk that has seen nothing cannot tell."""
    return [
        f"{call!r} was not kept away"
        for call in wanted
        if not receipts or any(receipt.what.startswith(call) for receipt in receipts)
    ]


def sourced(wanted, receipts, answer):
    """There are such calls, and each names earlier receipts that it rests on."""
    flaws = []
    for call in wanted:
        made = [receipt for receipt in receipts if receipt.what.startswith(call)]
        bare = [r for r in made if not r.sources or not all(0 < source < r.number for source in r.sources)]
        flaws += [f"{receipt.what!r} names no source" for receipt in bare] if made else [f"no {call!r} to ask about"]
    return flaws


def says(wanted, receipts, answer):
    """The answer has each of the texts."""
    return [f"does not say {text!r}" for text in wanted if text.lower() not in (answer or "").lower()]


def leaves_out(wanted, receipts, answer):
    """There is an answer, and it has none of the texts."""
    return [f"does not leave out {text!r}" for text in wanted if not answer or text.lower() in answer.lower()]


CHECKS = {check.__name__: check for check in (in_order, once, never, sourced, says, leaves_out)}
