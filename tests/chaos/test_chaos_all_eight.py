"""Each scenario is injected into the plugin itself, with its guards and without one of them."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from pytest_hillclimb.chaos.scenarios import SCENARIOS


def test_each_scenario_has_a_twin_without_guard() -> None:
    green, red = Counter[str](), Counter[str]()
    for file in Path(__file__).parent.glob("test_chaos_*.py"):
        for test in file.read_text(encoding="utf-8").split("\ndef test_")[1:]:
            for scenario in SCENARIOS:
                if f'fault("{scenario.id}"' in test:
                    (green if "== set()" in test else red)[scenario.id] += 1
    assert set(green) == set(red) == {scenario.id for scenario in SCENARIOS}


def test_each_guard_is_taken_out_by_a_test() -> None:
    here = Path(__file__).parent
    tests = "".join(file.read_text(encoding="utf-8") for file in here.glob("test_chaos_*.py"))
    assert [file.stem for file in here.glob("guards_off/*.py") if file.stem not in tests] == []
    assert [file.stem for file in here.glob("faults/*.py") if file.stem not in tests] == []
