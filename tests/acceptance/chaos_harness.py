"""The conftest of a user whose small harness takes part in the chaos lane, in all eight scenarios.

The harness runs errands. It has a guard for each kind of fault; those that the file ``unguarded`` names are off.
"""

CONFTEST = r'''
import json, os, signal, subprocess, sys, threading
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
OFF = (ROOT / "unguarded").read_text().split() if (ROOT / "unguarded").exists() else []
ERRAND = """
import os, sys
open(sys.argv[1], "a").write("begun\\n")
if sys.argv[2] == "die":
    os.kill(os.getpid(), 9)
open(sys.argv[1], "a").write("final\\n")
"""


def note(word, case, ctx):
    with open(ROOT / "spend.log", "a") as file:
        file.write(f"{word} {case.id} rep{ctx.rep} {ctx.variant}\n")


def restart(fault, guarded, ctx):
    log = ctx.workspace / "log"

    def errand(how):
        process = subprocess.Popen([sys.executable, "-SEc", ERRAND, str(log), how])
        return process.pid, process.wait()

    pid, status = errand("die")
    if status == -signal.SIGKILL:
        fault.fire(f"pid-{pid}")
    errand("resume")
    if not guarded:
        errand("resume")
    return {"one final record": log.read_text().split().count("final") == 1}


def duplicate_delivery(fault, guarded, ctx):
    effects, known = [], set()
    for copy in range(fault.parameters["copies"]):
        if not (guarded and "event-1" in known):
            effects.append("paid")
        known.add("event-1")
        fault.fire(f"event-1 copy {copy}")
    return {"paid once": effects == ["paid"]}


def trace_interruption(fault, guarded, ctx):
    outcome = "answered"
    try:
        fault.fire(fault.parameters["reason"])
        raise OSError(fault.parameters["reason"])
    except OSError:
        outcome = outcome if guarded else "failed"
    return {"same outcome": outcome == "answered"}


def trace_truncation(fault, guarded, ctx):
    cap, trace = fault.parameters["cap_bytes"], b"x" * fault.parameters["trace_bytes"]
    stored = trace[:cap] if guarded else trace
    fault.fire(len(trace))
    return {"within its cap": len(stored) <= cap}


def stale_checkpoint(fault, guarded, ctx):
    state, final = "finished", True
    state = "running"
    fault.fire("revision 3")
    if guarded and final:
        state = "finished"
    return {"not active": state == "finished"}


def retry_exhaustion(fault, guarded, ctx):
    tries = 0
    while tries < (3 if guarded else 9):
        tries += 1
        fault.fire(f"try {tries}")
    return {"bounded": tries <= 3, "owned": True}


def interaction_timeout(fault, guarded, ctx):
    fault.fire("question-1")
    threading.Event().wait(min(0.02, fault.remaining() / 2))
    pending = {"question-1": "editor"} if guarded else {}
    return {"visible and owned": pending == {"question-1": "editor"}}


def wake_race(fault, guarded, ctx):
    won, inputs, meet, lock = [], [], threading.Barrier(2), threading.Lock()

    def wake(name):
        meet.wait(30)
        with lock:
            inputs.append(name)
            if not (guarded and won):
                won.append(name)
        fault.fire(name)

    threads = [threading.Thread(target=wake, args=(name,)) for name in "ab"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return {"one winner": len(won) == 1, "all input": sorted(inputs) == ["a", "b"]}


def strike(case, ctx):
    note("run", case, ctx)
    if ctx.fault is None:
        return {"output": "done"}
    checks = globals()[ctx.fault.kind](ctx.fault, ctx.fault.kind not in OFF, ctx)
    return {
        "output": checks,
        "transcript": [{"role": "assistant", "content": f"{ctx.fault.kind} at {ctx.fault.phase}"}],
        "usage": {"input_tokens": 3, "output_tokens": 1},
    }


def arm(fault, ctx):
    return f"armed {fault.kind}"


def pytest_hillclimb_inject_fault(fault, ctx):
    return arm(fault, ctx)


def pytest_hillclimb_run_case(case, ctx):
    return strike(case, ctx)


def pytest_hillclimb_check_invariant(fault, run, ctx):
    assert fault.receipt == f"armed {fault.kind}"
    return run.output


def pytest_hillclimb_grade_case(case, run, ref, ctx):
    note("grade", case, ctx)
    return ref is None
'''

KINDS = (
    "restart",
    "duplicate_delivery",
    "trace_interruption",
    "trace_truncation",
    "stale_checkpoint",
    "retry_exhaustion",
    "interaction_timeout",
    "wake_race",
)
IDS = [f"chaos-{kind.replace('_', '-')}" for kind in KINDS]
