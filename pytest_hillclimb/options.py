"""One table of options and ini keys, registered with pytest and resolved once into ``Settings``.

This module is loaded in every pytest session, evals or not, so it imports nothing but light standard library modules.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from pytest_hillclimb.errors import OptionError

PREFIX = "--hillclimb"
DEFAULT_FLOW = ".claude/hillclimb/flow"
DEFAULT_CATALOGS = ("catalog.yaml", "catalog.yml", "catalog.json", "catalog.jsonl", "catalog.csv")
MAX_TIMEOUT_S = 2147483  # seconds in 2**31 - 1 milliseconds, the limit of the format's other runner

MAX_REPS = 10_000
DEFAULT_SEED = "hillclimb-v1"
TRACE_CAP = "hillclimb_max_trace_bytes"
MAX_COST_ENV = "HILLCLIMB_MAX_COST_USD"

_INTEGER = re.compile(r"\+?[0-9]+")
_DECIMAL = re.compile(r"\+?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?")
_VARIANT = re.compile(r"baseline|v[1-9][0-9]*")


def _text(value: str) -> str:
    if not value.strip():
        raise ValueError("a text that is not empty")
    return value


def _count(value: str) -> int:
    if not _INTEGER.fullmatch(value) or int(value) < 1:
        raise ValueError("a whole number from 1")
    return int(value)


def _reps(value: str) -> int:
    if not _INTEGER.fullmatch(value) or not 1 <= int(value) <= MAX_REPS:
        raise ValueError(f"a whole number from 1 to {MAX_REPS}")
    return int(value)


def _seconds(value: str) -> float:
    number = float(value) if _DECIMAL.fullmatch(value) else math.nan
    if not 0 <= number <= MAX_TIMEOUT_S:
        raise ValueError(f"seconds from 0 (no limit) to {MAX_TIMEOUT_S}")
    return number


def _variant(value: str) -> str:
    if not _VARIANT.fullmatch(value):
        raise ValueError("'baseline' or 'v<N>' with N from 1 and no leading zero, such as v3")
    return value


def _one_of(*words: str) -> Callable[[str], str]:
    def parse(value: str) -> str:
        if value not in words:
            raise ValueError(" or ".join(f"'{word}'" for word in words))
        return value

    return parse


def _usd(value: str) -> float:
    text = value.strip()
    number = float(text) if _DECIMAL.fullmatch(text) else math.nan
    if not 0 < number < math.inf:
        raise ValueError("US dollars as a plain decimal number above 0, such as 12 or 0.5")
    return number


def _yes(value: str) -> bool:
    if value.lower() not in ("true", "false", "1", "0", "yes", "no", "on", "off"):
        raise ValueError("true or false")
    return value.lower() in ("true", "1", "yes", "on")


@dataclass(frozen=True, slots=True)
class Option:
    """One command line option and, unless ``ini`` is false, the ini key of the same name.

    ``env`` names an environment variable that counts where the command line gives nothing.
    """

    name: str
    help: str
    metavar: str | None = None
    kind: Literal["flag", "one", "many"] = "one"
    parse: Callable[[str], Any] = _text
    default: Any = None
    ini: bool = True
    env: str | None = None

    @property
    def flag(self) -> str:
        """The option as typed, such as ``--hillclimb-fail-on``."""
        return f"{PREFIX}-{self.name}" if self.name else PREFIX

    @property
    def dest(self) -> str:
        """The attribute of pytest's namespace, and the ini key."""
        return self.flag.lstrip("-").replace("-", "_")


OPTIONS: tuple[Option, ...] = (
    Option("", "Collect and run evals.", kind="flag", ini=False),
    Option(
        "flow",
        f"Flow directory that holds the variants (default: {DEFAULT_FLOW} in rootdir).",
        "DIR",
        default=DEFAULT_FLOW,
    ),
    Option(
        "variant", "Round of the app: baseline or v<N> (default: baseline).", "ID", parse=_variant, default="baseline"
    ),
    Option("model", "Requested model; every served model is checked against it.", "ID"),
    Option("reps", "Repetitions of each case (default: 1).", "N", parse=_reps, default=1),
    Option("concurrency", "Trials in flight in this process (default: 4).", "N", parse=_count, default=4),
    Option(
        "timeout",
        "Wall-clock limit of one execution in seconds, 0 for none (default: 1800).",
        "S",
        parse=_seconds,
        default=1800.0,
    ),
    Option("approve-harness", "Record the harness as approved, then run.", kind="flag", ini=False),
    Option("plan", "Print what would run, run nothing.", kind="flag", ini=False),
    Option(
        "fresh",
        "Run the selection although it is recorded; write only to a temporary directory.",
        kind="flag",
        ini=False,
    ),
    Option(
        "fail-on",
        "What turns an item red: a grade that did not pass, or only what could not be measured (default: grade).",
        "grade|error",
        parse=_one_of("grade", "error"),
        default="grade",
    ),
    Option("candidates", "Candidate manifest (YAML or JSON): the models or agents under test, in slots.", "FILE"),
    Option("candidate", "Run only this candidate; repeatable.", "ID", kind="many", ini=False),
    Option("case", "Run only this case, by its id or its path-safe id; repeatable.", "ID", kind="many", ini=False),
    Option("limit", "Run only the first N executions of the selection.", "N", parse=_count, ini=False),
    Option(
        "schedule",
        "How candidates meet cases: every case with every candidate, or pairs by rotation (default: full).",
        "full|balanced",
        parse=_one_of("full", "balanced"),
        default="full",
    ),
    Option(
        "rotation",
        "Rotation of the schedule: a number, or the week of today or of a date (default: today, if balanced).",
        "N|today|DATE",
    ),
    Option("seed", f"Seed of execution ids (default: {DEFAULT_SEED}).", "TEXT", default=DEFAULT_SEED),
    Option(
        "require-qualified",
        "Refuse the run when the environment of a candidate is not set, instead of skipping the candidate.",
        kind="flag",
        parse=_yes,
    ),
    Option(
        "max-cost",
        f"Cost ceiling of the run in US dollars (default: ${MAX_COST_ENV}, else none).",
        "USD",
        parse=_usd,
        env=MAX_COST_ENV,
    ),
    Option(
        "trial-cost",
        "US dollars to reserve, and to charge where usage has no price, for an execution without a cost budget.",
        "USD",
        parse=_usd,
    ),
    Option(
        "lane",
        "What is run: the cases, or the chaos scenarios (default: main).",
        "main|chaos",
        parse=_one_of("main", "chaos"),
        default="main",
    ),
    Option("null", "Check the grader: give it empty answers, which it must fail.", kind="flag", ini=False),
    Option("oracle", "Check the grader: give it the expected answers, which it must pass.", kind="flag", ini=False),
    Option(
        "canary",
        "Run the first N executions alone, and the others only if all of these could be measured.",
        "N",
        parse=_count,
    ),
)
APPROVE = "--hillclimb-approve-harness"


class _Group(Protocol):
    def addoption(self, *names: str, **attrs: Any) -> None: ...


class _Parser(Protocol):
    def getgroup(self, name: str, description: str = "") -> _Group: ...

    def addini(self, name: str, help: str, type: Any = None, default: Any = None) -> None: ...


def register(parser: _Parser) -> None:
    """Declare every option and ini key on pytest's *parser*."""
    group = parser.getgroup("hillclimb", "evals (pytest-hillclimb)")
    for option in OPTIONS:
        if option.kind == "flag":
            group.addoption(option.flag, dest=option.dest, action="store_const", const=True, help=option.help)
        else:
            action = "append" if option.kind == "many" else "store"
            group.addoption(option.flag, dest=option.dest, action=action, metavar=option.metavar, help=option.help)
        if option.ini:
            parser.addini(option.dest, f"Default of {option.flag}.", type="string", default=None)
    parser.addini("hillclimb_enabled", "Collect evals in every session.", type="bool", default=False)
    parser.addini("hillclimb_paths", "Where evals lie, relative to the ini file.", type="paths", default=[])
    parser.addini(
        "hillclimb_prices", "Prices of models, lines of 'MODEL in=USD out=USD' per million tokens.", type="linelist"
    )
    parser.addini("hillclimb_redact", "Further patterns of secrets, one regular expression a line.", type="linelist")
    parser.addini(TRACE_CAP, "Cap of one stored transcript in bytes (default: 64 MiB).", type="string", default=None)
    parser.addini("hillclimb_catalogs", "File names of catalogs.", type="args", default=list(DEFAULT_CATALOGS))


def parse_value(option: Option, text: object, origin: str) -> Any:
    """Return the value of one option given as text.

    :param origin: how the user gave it, such as ``--hillclimb-reps`` or ``hillclimb_reps in pytest.ini``
    :raises OptionError: when the text is not what the option takes
    """
    try:
        return option.parse(str(text))
    except ValueError as expected:
        raise OptionError(f"{origin}: expected {expected}, got {str(text)!r}") from None


def given_run_options(namespace: Any) -> list[str]:
    """Return the flags of this plugin that *namespace* holds a value for."""
    return [o.flag for o in OPTIONS if getattr(namespace, o.dest, None) is not None]


def resolve(namespace: Any, ini: Callable[[str], Any], ini_name: str, environ: Mapping[str, str]) -> Mapping[str, Any]:
    """Return every option's value by name with underscores: command line, else environment, else ini, else default.

    :param namespace: pytest's parsed command line
    :param ini: returns the raw value of an ini key, None when absent; an empty one is refused wherever it is given
    :param ini_name: how to name the ini file in an error
    :param environ: the environment variables
    :raises OptionError: for the first value that cannot be used
    """
    values: dict[str, Any] = {}
    for option in OPTIONS:
        key = option.name.replace("-", "_") or "hillclimb"
        typed = getattr(namespace, option.dest, None)
        in_file = ini(option.dest) if option.ini else None
        if option.kind == "many":
            values[key] = tuple(parse_value(option, text, option.flag) for text in typed or ())
        elif option.kind == "flag" and typed:
            values[key] = True
        elif typed is not None:
            values[key] = parse_value(option, typed, option.flag)
        elif option.env is not None and option.env in environ:
            values[key] = parse_value(option, environ[option.env], option.env)
        elif in_file is not None:
            values[key] = parse_value(option, in_file, f"{option.dest} in {ini_name}")
        else:
            values[key] = False if option.kind == "flag" else option.default
    return values
