"""The path-safe form of ids, the spelling of ids that are no text, and the seed of a trial."""

from __future__ import annotations

import hashlib
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_hillclimb.model.ids import id_text, path_safe, trial_seed

quick = settings(derandomize=True, deadline=None, max_examples=300)
any_text = st.text(st.characters(), max_size=200) | st.text("ab/ .", max_size=200)


@pytest.mark.parametrize(
    ("raw", "safe"),
    [
        ("plain-id_1.2", "plain-id_1.2"),
        ("", ""),
        ("case_1", "case_1"),
        ("case/1", "case_1-aad44ef5"),
        ("case/2", "case_2-0ec62dae"),
        ("A b", "A_b-a760b0e1"),
        ("a b", "a_b-c8687a08"),
        ("a\n", "a_-87428fc5"),
        ("trail ", "trail_-59413e90"),
        ("\U0001f600", "__-f0443a34"),
        ("tr\u00e8s-bien", "tr_s-bien-9ef17e38"),
        ("\u65e5\u672c\u8a9e", "___-77710aed"),
        ("../../etc/x", ".._.._etc_x-56da1a2e"),
        ("x" * 129, "x" * 129),
    ],
)
def test_known_forms(raw: str, safe: str) -> None:
    assert path_safe(raw) == safe


def test_a_long_id_is_cut_to_120_and_a_digest() -> None:
    raw = "y" * 130
    assert path_safe(raw) == "y" * 120 + "-" + hashlib.sha256(raw.encode()).hexdigest()[:8]


@pytest.mark.parametrize("digit", ["\uff11", "\u0663"])
def test_digits_of_other_scripts_are_not_safe(digit: str) -> None:
    assert path_safe(digit).startswith("_-")


@quick
@given(any_text)
def test_the_form_is_safe_short_and_stable(raw: str) -> None:
    safe = path_safe(raw)
    assert re.fullmatch(r"[A-Za-z0-9_.-]{0,129}", safe)
    assert path_safe(safe) == safe


@quick
@given(any_text)
def test_an_id_is_cleaned_by_utf16_units(raw: str) -> None:
    units = len(raw.encode("utf-16-le", "surrogatepass")) // 2
    safe = path_safe(raw)
    assert safe == raw or len(safe) == min(units, 120) + 9


@quick
@given(st.text(st.characters(codec="utf-8"), max_size=40), st.text(st.characters(codec="utf-8"), max_size=40))
def test_distinct_ids_stay_distinct(one: str, other: str) -> None:
    assert (path_safe(one) == path_safe(other)) == (one == other)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("007", "007"),
        (1, "1"),
        (1.0, "1"),
        (-0.0, "0"),
        (1.5, "1.5"),
        (100000.0, "100000"),
        (1e20, "100000000000000000000"),
        (1e21, "1e+21"),
        (1.5e300, "1.5e+300"),
        (1e-6, "0.000001"),
        (1e-7, "1e-7"),
        (-2.5e-9, "-2.5e-9"),
        (True, "true"),
        (False, "false"),
        (None, "null"),
        (float("nan"), "NaN"),
        (float("-inf"), "-Infinity"),
    ],
)
def test_ids_that_are_no_text_are_spelled_as_in_javascript(value: object, text: str) -> None:
    assert id_text(value) == text


@quick
@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_spelled_float_reads_back(value: float) -> None:
    assert float(id_text(value)) == value


@quick
@given(any_text, st.integers(0, 1000))
def test_a_seed_depends_on_case_and_rep_alone(case_id: str, rep: int) -> None:
    seed = trial_seed(case_id, rep)
    assert 0 <= seed < 2**32
    assert seed == trial_seed(case_id, rep) != trial_seed(case_id, rep + 1)
