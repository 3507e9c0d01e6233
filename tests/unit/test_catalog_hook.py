"""Cases that a hook returned."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from catalog_files import fields

from pytest_hillclimb.catalog import entries_from
from pytest_hillclimb.errors import CatalogError
from pytest_hillclimb.model.case import Attachment, Case

SECOND = {"id": "b", "attachments": (Attachment(kind="url", ref="r"),), "note": 1}


def hook_cases() -> Iterator[object]:
    yield {"id": 1, "tags": "x"}
    yield Case.model_validate(SECOND)


def test_cases_come_from_any_iterable_in_its_order() -> None:
    for values in (hook_cases(), list(hook_cases()), tuple(hook_cases()), {"cases": list(hook_cases())}):
        one, two = entries_from(values, "evals/conftest.py")
        assert fields(one.case) == {"id": "1", "tags": ("x",)}
        assert two.case == Case.model_validate(SECOND)
        assert two.where == "evals/conftest.py, case 2"


@pytest.mark.parametrize("values", [None, "abc", b"abc", 3, {}, {"a": {"id": "a"}}, {"cases": None}])
def test_what_holds_no_cases_is_refused(values: object) -> None:
    with pytest.raises(CatalogError, match=r"^conftest\.py: expected a list of cases"):
        entries_from(values, "conftest.py")


def test_an_empty_answer_of_a_hook_is_refused() -> None:
    with pytest.raises(CatalogError, match=r"^conftest\.py: the hook returned no cases$"):
        entries_from(iter(()), "conftest.py")


@pytest.mark.parametrize(
    ("case", "problem"),
    [
        ({"id": "a", "prompt": [object()]}, "prompt[0]: a value of type object"),
        ({"id": "a", "meta": {"x": {1}}}, "meta.x: a value of type set"),
        ({"id": "a", "tags": {"x"}}, "tags: a value of type set"),
        ({"id": "a", "attachments": [b"x"]}, "attachments[0]: a value of type bytes"),
        ({"id": float("nan")}, "id: nan"),
        ({"id": "a", 2: "x"}, "the name of a field must be a text, not a number"),
        (Case(id="a", prompt=object()), "prompt: a value of type object"),
        (Case(id=""), "id is empty"),
    ],
)
def test_what_a_row_cannot_hold_is_refused(case: object, problem: str) -> None:
    with pytest.raises(CatalogError) as caught:
        entries_from([{"id": "good"}, case], "conftest.py")
    assert caught.value.message.startswith(f"conftest.py, case 2: {problem}")


def test_what_no_row_stores_may_be_anything() -> None:
    thing = object()
    [entry] = entries_from([{"id": "a", "input": thing, "expected": {1}, "check": len}], "conftest.py")
    assert entry.case.input is thing
    assert entry.case.expected == {1}
    assert entry.case.model_extra == {"check": len}
    assert entry.case.stored_prompt == "a"


def test_a_subclass_of_case_becomes_a_plain_case_with_its_fields() -> None:
    class Mine(Case):
        limit: int = 3

    [entry] = entries_from([Mine(id="a")], "conftest.py")
    assert type(entry.case) is Case
    assert entry.case.model_extra == {"limit": 3}


def test_an_exception_of_a_generator_is_left_to_the_caller() -> None:
    def broken() -> Iterator[object]:
        yield {"id": "a"}
        raise RuntimeError("no database")

    with pytest.raises(RuntimeError, match="no database"):
        entries_from(broken(), "conftest.py")
