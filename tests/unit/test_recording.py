"""What the calls of an attempt amount to."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_hillclimb.engine.classify import classify
from pytest_hillclimb.engine.conversations import Spoken
from pytest_hillclimb.engine.recording import Exchange, Recording, ServedAnother, summed
from pytest_hillclimb.model.run import Run, Turn

SOME = {"input_tokens": 3, "output_tokens": 2}


class Made:
    """A call with given facts."""

    def __init__(self, exchange: Exchange | None) -> None:
        self.told = exchange

    def exchange(self) -> Exchange | None:
        return self.told

    def spoken(self, attach: Any, tools: Any) -> Spoken:
        return Spoken((), (Turn(role="assistant", content=str(self.told and self.told.model)),))


def recording(*exchanges: Exchange | None, requested: str | None = None) -> Recording:
    made = Recording(requested=requested)
    for each in exchanges:
        made.follow(Made(each))
    return made


def test_without_calls_a_run_stays_as_it_is() -> None:
    run = Run(output="x")
    assert Recording().complete(run) is run
    assert recording(None).complete(run) is run
    assert Recording().billed() == {}


def test_what_is_added_completes_a_run() -> None:
    made = Recording()
    made.add(turns=[Turn(role="user", content="hi")], usage=SOME, model="m", tool_calls=1)
    made.add(usage=SOME, model="m", stop_reason="end_turn", tool_calls=2, web_searches=1)
    assert made.billed() == {"model": "m", "usage": {"input_tokens": 6, "output_tokens": 4}}
    assert made.complete(Run(output="x")).model_dump(exclude_unset=True) == {
        "output": "x",
        "transcript": [{"role": "user", "content": "hi"}],
        "model": "m",
        "usage": {"input_tokens": 6, "output_tokens": 4},
        "stop_reason": "end_turn",
        "tool_calls": 3,
        "web_searches": 1,
    }


@pytest.mark.parametrize("key", ["transcript", "model", "usage", "stop_reason", "tool_calls", "web_searches"])
def test_a_key_that_was_given_as_none_was_given(key: str) -> None:
    made = Recording()
    made.add(
        turns=[Turn(role="user", content="hi")], usage=SOME, model="m", stop_reason="r", tool_calls=1, web_searches=1
    )
    assert getattr(made.complete(Run.model_validate({key: None})), key) is None
    assert getattr(made.complete(Run()), key) is not None


def test_calls_under_way_and_broken_ones_count_what_they_told() -> None:
    begun = Exchange(requested="m", model="m-1", usage=SOME, whole=False)
    silent = Exchange(requested="m", model="m-1", whole=False)
    done = Exchange(requested="m", model="m-1", usage=SOME, stop_reason="end_turn")
    made = recording(begun, None, silent, done)
    assert made.billed() == {"model": "m-1", "usage": {"input_tokens": 6, "output_tokens": 4}}


def test_an_answer_without_usage_makes_the_sum_unknown() -> None:
    done = Exchange(model="m", usage={**SOME, "cache_read_input_tokens": 5})
    assert recording(done, Exchange(model="m")).billed()["usage"] == {"cache_read_input_tokens": 5}
    assert recording(Exchange(model="m")).billed() == {"model": "m"}


def test_of_many_tokens_each_call_is_kept_for_its_price() -> None:
    big = {"input_tokens": 20_000, "cache_read_input_tokens": 1, "output_tokens": 5}
    one, two = Exchange(model="a-1", usage=big), Exchange(model="b-1", usage=SOME)
    assert "calls" not in recording(one).billed()["usage"], "it is its own sum"
    assert recording(one, one).billed()["usage"] == {
        "input_tokens": 40_000,
        "cache_read_input_tokens": 2,
        "output_tokens": 10,
        "calls": [big, big],
    }
    several = recording(one, two, one, two).billed()["usage"]
    assert "calls" not in several
    assert several["by_model"]["a-1"]["calls"] == [big, big]
    assert "calls" not in several["by_model"]["b-1"], "short calls"


def test_a_model_that_changes_under_one_name_is_a_substitution() -> None:
    made = recording(*(Exchange(requested="m", model=served, usage=SOME) for served in ("m-1", "m-2")))
    with pytest.raises(ServedAnother, match="asked for m: one answer came from m-1, a later one from m-2") as caught:
        made.complete(Run())
    assert (caught.value.model, caught.value.usage and caught.value.usage["input_tokens"]) == ("m-1", 6)
    assert classify(caught.value).failure_class == "serving_substitution"


@pytest.mark.parametrize(("requested", "model"), [("a", "a-1"), ("b", "b-1"), ("c", "b-1"), (None, "b-1")])
def test_of_several_models_the_one_under_test_names_the_run(requested: str | None, model: str) -> None:
    exchanges = [Exchange(requested=name, model=f"{name}-1", usage=SOME) for name in ("a", "b")]
    run = recording(*exchanges, requested=requested).complete(Run())
    assert run.model == model
    assert run.usage == {"input_tokens": 6, "output_tokens": 4, "by_model": {"a-1": SOME, "b-1": SOME}}


@pytest.mark.parametrize(
    ("usages", "total"),
    [
        ([SOME], SOME),
        ([{"input_tokens": 1}], {"input_tokens": 1}),
        ([SOME, SOME, SOME], {"input_tokens": 9, "output_tokens": 6}),
        ([SOME, {"input_tokens": 1}], {"input_tokens": 4}),
        ([SOME, {**SOME, "output_tokens": None}], {"input_tokens": 6}),
        ([SOME, {**SOME, "output_tokens": True}], {"input_tokens": 6}),
        ([{**SOME, "a": 1}, SOME], {"input_tokens": 6, "output_tokens": 4, "a": 1}),
        ([{**SOME, "a": None}, SOME], {"input_tokens": 6, "output_tokens": 4, "a": None}),
        (
            [{**SOME, "a": {"b": 1, "c": None}}, {**SOME, "a": {"b": 2, "d": {"e": 1}}}, {**SOME, "a": None}],
            {"input_tokens": 9, "output_tokens": 6, "a": {"b": 3, "c": None, "d": {"e": 1}}},
        ),
        ([{**SOME, "tier": "x"}, {**SOME, "tier": "x"}], {"input_tokens": 6, "output_tokens": 4, "tier": "x"}),
        ([{**SOME, "tier": "x"}, {**SOME, "tier": "y"}], {"input_tokens": 6, "output_tokens": 4, "tier": "mixed"}),
        ([{**SOME, "a": 1}, {**SOME, "a": "x"}], {"input_tokens": 6, "output_tokens": 4, "a": "mixed"}),
        ([{**SOME, "a": [1]}, {**SOME, "a": [2]}], {"input_tokens": 6, "output_tokens": 4, "a": [1, 2]}),
    ],
)
def test_usages_are_summed_level_by_level(usages: list[dict[str, Any]], total: dict[str, Any]) -> None:
    assert summed(usages) == total


@given(
    st.lists(
        st.fixed_dictionaries({"input_tokens": st.integers(0, 99), "output_tokens": st.integers(0, 99)}), min_size=1
    )
)
def test_sums_do_not_depend_on_how_they_are_grouped(usages: list[dict[str, int]]) -> None:
    assert summed(usages) == summed([summed(usages[:1]), *usages[1:]])
    assert summed(usages)["input_tokens"] == sum(usage["input_tokens"] for usage in usages)


def test_the_run_of_one_call_is_not_what_the_author_says_of_all() -> None:
    made = Recording()
    made.add(turns=[Turn(role="user", content="a")], usage=SOME, model="m", tool_calls=1)
    part = made.complete(Run(output="part"))
    made.made(part)
    made.add(turns=[Turn(role="user", content="b")], usage=SOME, model="m", tool_calls=0)
    whole = made.complete(part)
    assert (whole.usage, whole.tool_calls, len(whole.transcript or ())) == (
        {"input_tokens": 6, "output_tokens": 4},
        1,
        2,
    )
    own = made.complete(Run(output="x", usage=SOME, tool_calls=9, transcript=[]))
    assert (own.tool_calls, own.transcript) == (9, [])


def test_threads_may_add_at_once() -> None:
    made = Recording()

    def add() -> None:
        for _ in range(200):
            made.add(usage=SOME, model="m")
            made.billed()

    threads = [threading.Thread(target=add) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert made.billed()["usage"] == {"input_tokens": 2400, "output_tokens": 1600}
