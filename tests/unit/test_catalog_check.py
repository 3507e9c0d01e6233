"""Checks of a whole set of cases and of the split lists."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from pytest_hillclimb.catalog import CatalogEntry, check_cases, check_splits
from pytest_hillclimb.errors import CatalogError, StateError
from pytest_hillclimb.model.case import Case
from pytest_hillclimb.model.ids import path_safe
from pytest_hillclimb.model.state import LoopState


def entries(*ids: str) -> list[CatalogEntry]:
    return [CatalogEntry(Case(id=id_), "cases.jsonl", f"line {n}") for n, id_ in enumerate(ids, 1)]


def refusal(*ids: str) -> str:
    with pytest.raises(CatalogError) as caught:
        check_cases(entries(*ids))
    return caught.value.message


@pytest.mark.parametrize(
    "ids",
    [
        [],
        ["a", "b"],
        ["case/1", "case_1"],
        ["a b", "A B"],
        ["..."],
        ["foo.html", "foo.txt"],
        ["foo", "foo.md"],
        ["foo/x", "foo/x.html"],
    ],
)
def test_ids_that_share_nothing_pass(ids: list[str]) -> None:
    check_cases(entries(*ids))


@pytest.mark.parametrize(
    ("one", "other", "why"),
    [
        ("x1", "x1", "used twice"),
        ("Refund-1", "refund-1", "letter case"),
        ("case/1", path_safe("case/1"), "same name on disk"),
        ("case/1", path_safe("case/1").upper(), "letter case"),
        ("foo", "foo.html", "reference file"),
        ("foo.txt", "foo", "reference file"),
        ("Foo", "foo.JSON", "reference file"),
    ],
)
def test_two_cases_that_share_a_name_are_refused_with_both_places(one: str, other: str, why: str) -> None:
    message = refusal("first", one, "between", other)
    assert why in message
    assert repr(one) in message
    assert repr(other) in message
    assert "cases.jsonl, line 2" in message
    assert "cases.jsonl, line 4" in message


def test_the_same_id_in_two_files_is_refused_with_both_files() -> None:
    twins = [CatalogEntry(Case(id="a"), "a.yaml", "line 1"), CatalogEntry(Case(id="a"), "conftest.py", "case 3")]
    with pytest.raises(CatalogError, match=r"a\.yaml, line 1 and conftest\.py, case 3"):
        check_cases(twins)


@pytest.mark.parametrize("dots", [".", ".."])
def test_ids_that_are_directories_are_refused(dots: str) -> None:
    assert f"the id {dots!r}" in refusal("a", dots)


def test_long_and_hostile_ids_are_cut_and_quoted() -> None:
    message = refusal("\x1b[2J\n" + "z" * 9000, "\x1b[2J\n" + "z" * 9000)
    assert len(message) < 300
    assert message.isprintable()


def notes(splits: Mapping[str, list[object]], *ids: str) -> list[str]:
    return check_splits(LoopState.parse(splits), entries(*ids))


def test_split_ids_of_loaded_cases_pass() -> None:
    assert notes({"train_ids": [1, "b"], "test_ids": [path_safe("case/2")]}, "1", "b", "case/2") == []


def test_a_split_id_without_a_case_is_noted() -> None:
    [note] = notes({"train_ids": ["1"], "test_ids": ["retired-case"]}, "1")
    assert "'retired-case'" in note
    assert "test_ids" in note


def test_a_split_id_that_is_not_path_safe_is_refused_with_the_one_to_write() -> None:
    with pytest.raises(StateError) as caught:
        notes({"val_ids": ["case/2"]}, "case/2")
    assert "val_ids holds 'case/2'" in caught.value.message
    assert "write 'case_2-0ec62dae'" in caught.value.message
