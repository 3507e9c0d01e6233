"""The table of options: what is registered, what values are taken, and which source wins."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any

import pytest

from pytest_hillclimb.errors import OptionError
from pytest_hillclimb.options import OPTIONS, given_run_options, parse_value, register, resolve

DEFAULTS = {
    "hillclimb": False,
    "flow": ".claude/hillclimb/flow",
    "variant": "baseline",
    "model": None,
    "reps": 1,
    "concurrency": 4,
    "timeout": 1800.0,
    "approve_harness": False,
    "plan": False,
    "fresh": False,
    "fail_on": "grade",
    "candidates": None,
    "candidate": (),
    "case": (),
    "limit": None,
    "schedule": "full",
    "rotation": None,
    "seed": "hillclimb-v1",
    "require_qualified": False,
    "max_cost": None,
    "trial_cost": None,
    "lane": "main",
    "null": False,
    "oracle": False,
    "canary": None,
}
INI_KEYS = {
    "hillclimb_flow",
    "hillclimb_variant",
    "hillclimb_model",
    "hillclimb_reps",
    "hillclimb_concurrency",
    "hillclimb_timeout",
    "hillclimb_fail_on",
    "hillclimb_candidates",
    "hillclimb_schedule",
    "hillclimb_rotation",
    "hillclimb_seed",
    "hillclimb_require_qualified",
    "hillclimb_max_cost",
    "hillclimb_trial_cost",
    "hillclimb_lane",
    "hillclimb_canary",
    "hillclimb_prices",
    "hillclimb_redact",
    "hillclimb_max_trace_bytes",
    "hillclimb_enabled",
    "hillclimb_paths",
    "hillclimb_catalogs",
}


class Parser(argparse.ArgumentParser):
    """Stands for pytest's parser, which hands its options to argparse too."""

    def __init__(self) -> None:
        super().__init__(prog="pytest", allow_abbrev=False)
        self.ini: dict[str, Any] = {}

    def getgroup(self, name: str, description: str = "") -> Parser:
        return self

    def addoption(self, *names: str, **attrs: Any) -> None:
        self.add_argument(*names, **attrs)

    def addini(self, name: str, help: str, type: Any = None, default: Any = None) -> None:
        self.ini[name] = default


@pytest.fixture
def parser() -> Parser:
    parser = Parser()
    register(parser)
    return parser


def resolved(
    parser: Parser, line: str = "", ini: Mapping[str, str] | None = None, environ: Mapping[str, str] | None = None
) -> Mapping[str, Any]:
    return resolve(parser.parse_args(line.split()), (ini or {}).get, "pytest.ini", environ or {})


def test_without_any_setting_every_option_has_its_documented_default(parser: Parser) -> None:
    assert resolved(parser) == DEFAULTS


def test_only_lasting_settings_have_ini_keys(parser: Parser) -> None:
    assert set(parser.ini) == INI_KEYS
    assert parser.ini["hillclimb_enabled"] is False
    assert parser.ini["hillclimb_catalogs"] == [
        "catalog.yaml",
        "catalog.yml",
        "catalog.json",
        "catalog.jsonl",
        "catalog.csv",
    ]


@pytest.mark.parametrize(
    ("name", "ini", "line", "from_ini", "from_line"),
    [
        ("flow", "a/flow", "--hillclimb-flow b", "a/flow", "b"),
        ("variant", "v1", "--hillclimb-variant=v12", "v1", "v12"),
        ("model", "m-1", "--hillclimb-model m-2", "m-1", "m-2"),
        ("reps", "2", "--hillclimb-reps 3", 2, 3),
        ("concurrency", "8", "--hillclimb-concurrency 64", 8, 64),
        ("timeout", "0", "--hillclimb-timeout 1.5", 0.0, 1.5),
        ("fail_on", "error", "--hillclimb-fail-on grade", "error", "grade"),
    ],
)
def test_the_command_line_wins_over_the_ini_file_and_that_over_the_default(
    parser: Parser, name: str, ini: str, line: str, from_ini: object, from_line: object
) -> None:
    key = f"hillclimb_{name}"
    assert resolved(parser, "", {key: ini}) == {**DEFAULTS, name: from_ini}
    assert resolved(parser, line, {key: ini}) == {**DEFAULTS, name: from_line}


@pytest.mark.parametrize("key", sorted(option.dest for option in OPTIONS if option.ini))
def test_an_empty_value_in_the_ini_file_is_refused_and_not_taken_for_absent(parser: Parser, key: str) -> None:
    with pytest.raises(OptionError, match=rf"^{key} in pytest\.ini: expected .*, got ''$"):
        resolved(parser, "", {key: ""})


@pytest.mark.parametrize("name", ["approve_harness", "plan", "fresh", "case", "limit"])
def test_settings_of_one_run_are_not_read_from_the_ini_file(parser: Parser, name: str) -> None:
    assert resolved(parser, "", {f"hillclimb_{name}": "1"}) == DEFAULTS


def test_flags_and_repeated_options_are_read(parser: Parser) -> None:
    line = "--hillclimb --hillclimb-approve-harness --hillclimb-plan --hillclimb-fresh --hillclimb-limit 7"
    line += " --hillclimb-case a/b --hillclimb-case c"
    chosen = {"hillclimb": True, "approve_harness": True, "plan": True, "fresh": True, "limit": 7}
    assert resolved(parser, line) == {**DEFAULTS, **chosen, "case": ("a/b", "c")}


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("variant", "baseline", "baseline"),
        ("variant", "v100", "v100"),
        ("reps", "10", 10),
        ("limit", "1", 1),
        ("timeout", "0", 0.0),
        ("timeout", "0.25", 0.25),
        ("timeout", "2147483", 2147483.0),
        ("fail-on", "error", "error"),
        ("model", "vendor/model:1", "vendor/model:1"),
    ],
)
def test_values_that_are_taken(name: str, text: str, value: object) -> None:
    assert parse_value(option(name), text, "origin") == value


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        *(
            ("reps", text, "a whole number from 1")
            for text in ("0", "-1", "1.5", "", "many", "\uff11", "1_0", " 2", "1\n")
        ),
        ("concurrency", "0", "a whole number from 1"),
        ("limit", "0", "a whole number from 1"),
        *(("timeout", text, "seconds from 0") for text in ("-1", "nan", "inf", "1e400", "2147484", "0x10", "1_0", "")),
        *(
            ("variant", text, "'baseline' or 'v<N>'")
            for text in ("v0", "v01", "V1", "baseline ", "v1\n", "v", "../v1", "v\uff11", "Baseline", "")
        ),
        ("fail-on", "errors", "'grade' or 'error'"),
        ("flow", "", "a text that is not empty"),
        ("model", " ", "a text that is not empty"),
        ("case", "", "a text that is not empty"),
    ],
)
def test_values_that_are_refused_name_origin_expectation_and_value(name: str, text: str, expected: str) -> None:
    with pytest.raises(OptionError) as caught:
        parse_value(option(name), text, "here")
    message = str(caught.value)
    assert message.startswith(f"here: expected {expected}")
    assert message.endswith(f"got {text!r}")


def test_a_bad_ini_value_names_key_and_file(parser: Parser) -> None:
    with pytest.raises(
        OptionError, match=r"^hillclimb_reps in pytest\.ini: expected a whole number from 1 to 10000, got 'x'$"
    ):
        resolved(parser, "", {"hillclimb_reps": "x"})


def test_a_bad_command_line_value_names_the_option(parser: Parser) -> None:
    with pytest.raises(OptionError, match=r"^--hillclimb-variant: "):
        resolved(parser, "--hillclimb-variant v0")


def test_an_empty_value_on_the_command_line_is_refused_and_not_taken_for_absent(parser: Parser) -> None:
    with pytest.raises(OptionError, match="--hillclimb-model"):
        resolved(parser, "--hillclimb-model=", {"hillclimb_model": "m"})


def test_options_that_were_typed_are_listed_by_flag(parser: Parser) -> None:
    line = "--hillclimb-reps 2 --hillclimb-plan"
    assert given_run_options(parser.parse_args(line.split())) == ["--hillclimb-reps", "--hillclimb-plan"]
    assert given_run_options(parser.parse_args([])) == []


def option(name: str) -> Any:
    return next(o for o in OPTIONS if o.name == name)


@pytest.mark.parametrize(
    ("line", "environ", "ini", "usd"),
    [
        ("", {}, {}, None),
        ("", {}, {"hillclimb_max_cost": "3"}, 3.0),
        ("", {"HILLCLIMB_MAX_COST_USD": "2"}, {"hillclimb_max_cost": "3"}, 2.0),
        ("--hillclimb-max-cost 1", {"HILLCLIMB_MAX_COST_USD": "2"}, {"hillclimb_max_cost": "3"}, 1.0),
    ],
)
def test_a_ceiling_comes_from_the_command_line_else_the_environment_else_the_ini_file(
    parser: Parser, line: str, environ: dict[str, str], ini: dict[str, str], usd: float | None
) -> None:
    assert resolved(parser, line, ini, environ)["max_cost"] == usd


def test_a_bad_ceiling_in_the_environment_names_the_variable(parser: Parser) -> None:
    with pytest.raises(OptionError, match="HILLCLIMB_MAX_COST_USD: expected US dollars"):
        resolved(parser, environ={"HILLCLIMB_MAX_COST_USD": ""})


@pytest.mark.parametrize(("text", "value"), [("true", True), ("1", True), ("no", False), ("False", False)])
def test_a_flag_may_have_an_ini_key(parser: Parser, text: str, value: bool) -> None:
    assert resolved(parser, ini={"hillclimb_require_qualified": text})["require_qualified"] is value


def test_a_flag_in_the_ini_file_is_true_or_false(parser: Parser) -> None:
    with pytest.raises(OptionError, match=r"hillclimb_require_qualified in pytest\.ini: expected true or false"):
        resolved(parser, ini={"hillclimb_require_qualified": "maybe"})
