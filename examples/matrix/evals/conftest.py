"""The eval of the newsroom's agents: how a candidate is put to work, and what must be in evidence afterwards."""

import os

from newsroom.assignment import Assignment
from newsroom.desk import RESTART, TOLD, Desk, Receipt
from newsroom.faults import SUPPORTED, FaultyDesk
from pytest_hillclimb import Grade, Run, Turn

# No model is called here, so no key is needed, and none that the shell has is handed to anything: words stand in for
# them. acpx-claude-sonnet has none and is skipped; with ANTHROPIC_API_KEY=offline before the command, it takes part.
sonnet = "offline" if os.environ.get("ANTHROPIC_API_KEY") == "offline" else ""
os.environ.update(OPENAI_API_KEY="offline", OPENROUTER_API_KEY="offline", ANTHROPIC_API_KEY=sonnet)


def pytest_hillclimb_run_case(case, ctx):
    """Bring the candidate's agent to a desk, and let it do the case."""
    desk = Desk(case.input or {}) if ctx.fault is None else FaultyDesk(ctx.fault)
    assignment = Assignment(case, ctx, desk)
    assignment.carry_out()
    output = desk.answer or f"still waits for: {', '.join(wait['call'] for wait in desk.pending)}"
    question, answer = Turn(role="user", content=case.prompt), Turn(role="assistant", content=output)
    return Run(
        output=output,
        transcript=[question, *assignment.transcript, answer],
        model=assignment.model,
        usage=dict(assignment.usage),  # what it costs is derived from that
        stop_reason="end_turn",
        tool_calls=sum(turn.role == "tool_call" for turn in assignment.transcript),
        # For the grader alone; no part of the row.
        receipts=[vars(receipt) for receipt in desk.receipts],
        pending=desk.pending,
        duplicates=desk.duplicates,
    )


def pytest_hillclimb_grade_case(case, run, ref, ctx):
    """Grade what the desk has seen, and not what the agent says that it did."""
    receipts = receipts_of(run)
    missing = [flaw for check, wanted in case.expected.items() for flaw in CHECKS[check](wanted, receipts, run.output)]
    wanted = sum(map(len, case.expected.values()))
    return Grade(
        grade={"pass": not missing, "evidence": 1 - min(len(missing), wanted) / wanted},
        explanation={"pass": "; ".join(missing) or f"{len(receipts)} receipts hold all that is asked for"},
    )


def pytest_hillclimb_expected_answer(case):
    """Return no answer: none is enough by itself here, since the grader asks for what was done."""


def pytest_hillclimb_inject_fault(fault, ctx):
    """Accept the faults that a desk can have; the others skip their scenario."""
    return fault.phase if fault.kind in SUPPORTED else None


def pytest_hillclimb_check_invariant(fault, run, ctx):
    """Check what must hold although the fault has struck."""
    calls = [receipt for receipt in receipts_of(run) if receipt.what not in (TOLD, RESTART)]
    names = [call.what for call in calls]
    if fault.kind == "interaction_timeout":
        return {
            "wait_is_owned": [(wait["id"], wait["owner"]) for wait in run.pending] == [(*fault.evidence, "editor")],
            "nothing_after": names[-1:] == [wait["call"] for wait in run.pending],
            "not_called_done": "waits" in run.output and "published" not in run.output,
        }
    checks = {"once_each": len(set(names)) == len(names), "finished": names[-1:] == ["publish notice"]}
    if fault.kind == "duplicate_delivery":
        copies = fault.parameters["copies"] - 1 if fault.phase == "call" else 0
        checks["copies_known"] = run.duplicates == list(fault.evidence) * copies
        checks["lineage_kept"] = all(call.sources == tuple(range(1, call.number)) for call in calls)
    return checks


def receipts_of(run):
    """Return what the desk has seen; nothing, for an answer that came by no desk."""
    return [Receipt(r["number"], r["what"], tuple(r["sources"])) for r in getattr(run, "receipts", ())]


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
