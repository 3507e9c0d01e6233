"""A scripted agent, in a process of its own: it stands where a real one would be started.

Standard input and output carry lines of JSON. The first line in is the assignment; then the agent writes one call a
line and reads the desk's reply to each; its last line is the answer, which the desk confirms. It plays every model:
each does the work as ``SCRIPTS`` says, but for what ``LAPSES`` says that it gets wrong, always in the same way.
"""

import json
import os
import sys
from itertools import count
from typing import Any, NamedTuple

KEYS = {"gpt": "OPENAI_API_KEY", "openrouter": "OPENROUTER_API_KEY", "claude": "ANTHROPIC_API_KEY"}
NUMBERS = count(1)  # of the calls of this process
LOST, MISCONFIGURED = 75, 78  # exit statuses: of sysexits.h, "try again" and "do not"


class Script(NamedTuple):
    """How a case is done well: the calls in their order, what to do next when the desk says something, the answer."""

    calls: list[str]
    says: str
    when: dict[str, list[str]] | None = None


class Lapse(NamedTuple):
    """What a model gets wrong: calls that it leaves out or makes twice, an answer of its own, tokens, or its end."""

    skips: str = "-"
    repeats: str = "-"
    says: str = ""
    tokens: int = 0  # read again and again: so many more with each call
    deaf: bool = False  # does not mind what it is told
    unsourced: bool = False
    dies: int = 0  # in so many attempts
    status: int = LOST


SCRIPTS = {
    "final-response": Script(
        ["read tide table", "write notice"], "The notice says: high water on Saturday is at 06:40 and 19:05."
    ),
    "rich-activity": Script(
        ["search archive", "read results", "draw table", "draw chart", "place photograph", "write text"],
        "The page is made: Heron won before Linnet and Petrel.",
    ),
    "verification-policy": Script(
        ["read report", "check minutes", "write article"],
        "The article says 8 votes to 5, as the minutes do; the report had it wrong.",
    ),
    "governed-interaction": Script(
        ["read police report", "ask family", "write article", "publish article"],
        "The article on the accident at quay 4 is out, without the name.",
    ),
    "steering-causality": Script(
        ["read forecast", "write box"],
        "The box says: west, 22 knots, gusts to 30.",
        {"knots": ["rewrite box"]},
    ),
    "planning-lifecycle": Script(
        ["plan edition", "ask for approval", "write results", "write interviews", "publish edition"],
        "The edition is out as planned.",
    ),
    "review-lifecycle": Script(
        ["read letters", "write obituary", "review obituary", "publish obituary"],
        "The obituary is out; it begins: born 1931.",
        {"years are missing": ["rewrite obituary", "review obituary"]},
    ),
    "delegation-return": Script(
        ["read price list", "hand to fact checker", "wait for job 12", "write fares"],
        "The fares are in: adults 4.20, children 2.00.",
    ),
    "completion-robustness": Script(
        ["read inbox", "write choir", "write flea market", "write lost dog", "close edition"],
        "Choir, flea market and lost dog are in, and the edition is closed.",
    ),
    "restart-recovery": Script(
        ["set page one", "set page two", "set page three", "set page four"], "All four pages are set."
    ),
    "cancellation-permissions": Script(
        ["read reports", "write edition", "hand edition to editor"],
        "The special edition was called off and is put away.",
        {"called off": ["put edition away"]},
    ),
    "trace-lineage": Script(
        ["read press release", "read floor plan", "ask curator"]
        + [f"write sentence {number}" for number in ("one", "two", "three")],
        "The hall opens on 3 May. It has 640 square metres. Under its ceiling hangs a whaling boat.",
    ),
}

# What is done in the chaos lane, whose cases are about what goes wrong on the way.
ROUTINE = Script(
    ["read inbox", "ask editor", "write notice", "ask for approval", "publish notice"], "The notice is published."
)

KIMI, GLM = "openrouter/moonshotai/kimi-k2.5", "openrouter/z-ai/glm-4.6"
GPT_OSS, GLM_FLASH = "openrouter/openai/gpt-oss-20b", "openrouter/z-ai/glm-4.5-air"

# By model, case and repetition, None for every one of them.
LAPSES = {
    (GPT_OSS, "verification-policy", None): Lapse(skips="check", says="The pier was approved by 9 votes to 4."),
    (GPT_OSS, "delegation-return", None): Lapse(skips="wait", says="The fares are in: adults 4.00, children 2.00."),
    (GPT_OSS, "restart-recovery", None): Lapse(tokens=15_000),
    (GPT_OSS, "trace-lineage", None): Lapse(unsourced=True),
    (KIMI, "governed-interaction", 1): Lapse(skips="ask", says="Jonas Dahl fell from a ladder at quay 4."),
    (KIMI, "trace-lineage", None): Lapse(dies=2),
    (GLM, "cancellation-permissions", None): Lapse(deaf=True, says="The special edition is ready."),
    (GLM, "delegation-return", None): Lapse(dies=1, status=MISCONFIGURED),
    (GLM_FLASH, "review-lifecycle", None): Lapse(skips="read"),
    (GLM_FLASH, "rich-activity", 2): Lapse(tokens=12_000),
    (GLM_FLASH, "restart-recovery", None): Lapse(repeats="set"),
    (GLM_FLASH, "completion-robustness", 0): Lapse(repeats="close"),
    ("gpt-5.6-sol", "rich-activity", 0): Lapse(dies=1),
    ("gpt-5.6-luna", "steering-causality", None): Lapse(unsourced=True),
    ("claude-sonnet-5", "planning-lifecycle", None): Lapse(skips="ask"),
}


def main() -> None:
    """Play one assignment."""
    task = json.loads(sys.stdin.readline())
    model, case, rep = task["model"], task["case"], task["rep"]
    own = next(name for vendor, name in KEYS.items() if model.startswith(vendor))
    if not os.environ.get(own):
        sys.exit(MISCONFIGURED)
    lapse = LAPSES.get((model, case, rep)) or LAPSES.get((model, case, None)) or Lapse()
    say({"model": model, "sees": sorted(name for name in os.environ if name.endswith(("_KEY", "_TOKEN")))})
    script = SCRIPTS.get(case, ROUTINE)
    work(script, lapse, task)
    say({"says": lapse.says or script.says, "usage": usage(0, lapse)})
    sys.stdin.readline()  # it is over when the desk has taken the answer


def work(script: Script, lapse: Lapse, task: dict[str, Any]) -> None:
    """Make the calls of a script, but for those that were made before the process was started again."""
    done = {} if lapse.repeats != "-" else {what: number for number, what in task["done"]}
    todo = [call for call in script.calls if not call.startswith(lapse.skips)]
    known = list(done.values())
    while todo:
        call = todo.pop(0)
        if call in done:
            continue
        for _ in range(2 if call.startswith(lapse.repeats) else 1):
            if len(known) == 1 and task["attempt"] <= lapse.dies:
                sys.exit(lapse.status)
            sources = [] if lapse.unsourced else known
            reply = ask({"call": call, "sources": sources, "usage": usage(len(known), lapse)})
            known = [*known, *(reply[name] for name in ("receipt", "told_receipt") if name in reply)]
            news = f"{reply.get('gives')} {reply.get('told')}"
            for sign, next_calls in (script.when or {}).items():
                if sign in news and not lapse.deaf:
                    todo = [*next_calls, *(() if "called off" in news else todo)]


def ask(line: dict[str, Any]) -> dict[str, Any]:
    """Make a call, and return its reply; one that came before, and comes again, is passed over."""
    id_ = f"{os.getpid()}-{next(NUMBERS)}"
    say({"id": id_, **line})
    while (reply := json.loads(sys.stdin.readline()))["id"] != id_:
        pass
    return reply


def usage(calls_before: int, lapse: Lapse) -> dict[str, int]:
    """Return what a turn costs: some new tokens, and all that was said before, which comes out of the cache."""
    return {
        "input_tokens": 1800 + lapse.tokens,
        "cache_read_input_tokens": 1800 * calls_before,
        "output_tokens": 240,
    }


def say(line: dict[str, Any]) -> None:
    """Write one line to the desk."""
    print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
