"""The cost of usage: by exact model names, from whatever shape a usage has, and never 0 for what is not known."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_hillclimb.errors import RefusedError
from pytest_hillclimb.model.prices import PriceTable, RowCost, summed, total_tokens

MADE_UP: dict[str, Any] = {
    "unit": "US dollars per million tokens; made-up numbers",
    "model-a": {
        "in": 3.0,
        "out": 15.0,
        "cache_write_5m": 3.75,
        "cache_write_1h": 6.0,
        "cache_read": 0.3,
        "web_search_per_1000": 10.0,
    },
    "plain": {"in": 3, "out": 15},
    "tiers": {"in": 10, "out": 50, "batch": 0.4, "fast": 2, "us_inference": 1.1},
    "bands": {"in": 1, "out": 5, "long_prompt": {"above": 1000, "in": 5, "out": 25}},
}
TABLE = PriceTable.built_in().with_prices(MADE_UP, "made up")
TEN = {"input_tokens": 10, "output_tokens": 10}


def cost(usage: object, model: object = "model-a") -> float | None:
    return TABLE.cost(usage, model)


@pytest.mark.parametrize(
    ("usage", "dollars"),
    [
        ({"input_tokens": 1000, "output_tokens": 200}, 0.006),
        (
            {
                "input_tokens": 100,
                "output_tokens": 50,
                "cache_read_input_tokens": 10000,
                "cache_creation_input_tokens": 2000,
            },
            0.01155,
        ),
        (
            {
                "input_tokens": 100,
                "output_tokens": 50,
                "cache_read_input_tokens": 0,
                "cache_creation_input_tokens": 2000,
                "cache_creation": {"ephemeral_5m_input_tokens": 1500, "ephemeral_1h_input_tokens": 500},
            },
            0.009675,
        ),
        (
            {
                **TEN,
                "cache_read_input_tokens": None,
                "cache_creation_input_tokens": None,
                "cache_creation": None,
                "server_tool_use": None,
            },
            0.00018,
        ),
        ({**TEN, "server_tool_use": {"web_search_requests": 3, "web_fetch_requests": 0}}, 0.03018),
    ],
)
def test_usage_is_priced_by_the_table(usage: object, dollars: float) -> None:
    assert cost(usage) == pytest.approx(dollars, abs=1e-9)


@pytest.mark.parametrize("usage", [None, {}, [], 0, "10", {"input_tokens": 10}, {"output_tokens": 10}])
def test_what_tells_too_little_is_not_priced(usage: object) -> None:
    assert cost(usage) is None


@pytest.mark.parametrize("value", ["10", -1, True, 1.0, float("nan"), float("inf"), [1], {}, 10**400])
@pytest.mark.parametrize(
    "name", ["input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens"]
)
def test_a_count_that_is_no_count_is_not_priced(name: str, value: object) -> None:
    assert cost({**TEN, name: value}) is None
    assert total_tokens({**TEN, name: value}) is None


@pytest.mark.parametrize(
    ("more", "named"),
    [
        ({"cache_creation": 5}, "cache_creation"),
        ({"cache_creation": {"ephemeral_1d_input_tokens": 5}}, "cache_creation.ephemeral_1d_input_tokens"),
        ({"cache_creation": {"ephemeral_1h_input_tokens": "5"}}, "ephemeral_1h_input_tokens"),
        ({"server_tool_use": "3"}, "server_tool_use"),
        ({"server_tool_use": {"web_search_requests": "3"}}, "server_tool_use.web_search_requests"),
        ({"server_tool_use": {"web_search_requests": -1}}, "server_tool_use.web_search_requests"),
        ({"server_tool_use": {"code_execution_requests": 1}}, "server_tool_use.code_execution_requests"),
        ({"service_tier": "priority"}, "service_tier 'priority'"),
        ({"service_tier": ["batch"]}, "service_tier"),
        ({"speed": "fast"}, "speed 'fast'"),
        ({"inference_geo": "us"}, "inference_geo 'us'"),
        ({"audio_tokens": 1}, "audio_tokens"),
        ({"iterations": [{"type": "message"}, {"type": "compaction", "input_tokens": 9}]}, "iterations of type"),
        ({"iterations": {"type": "message"}}, "iterations"),
    ],
)
def test_a_charge_that_the_table_has_no_price_for_is_not_priced(more: dict[str, Any], named: str) -> None:
    assert cost({**TEN, **more}) is None
    assert named in str(TABLE.why_unpriced({**TEN, **more}, "model-a"))


def test_searches_need_a_price_of_their_own() -> None:
    assert cost({**TEN, "server_tool_use": {"web_search_requests": 1}}, "plain") is None
    assert cost({**TEN, "server_tool_use": {"web_search_requests": 0}}, "plain") == pytest.approx(0.00018)


@pytest.mark.parametrize(
    "more",
    [
        {"service_tier": "standard", "speed": "standard", "inference_geo": "global"},
        {"service_tier": None, "speed": None, "inference_geo": None, "iterations": None},
        {"inference_geo": "not_available", "iterations": [{"type": "message", "input_tokens": 10}]},
        {"total_tokens": 20, "prompt_tokens": 10, "completion_tokens": 10, "audio_tokens": 0},
        {"output_tokens_details": {"thinking_tokens": 4}, "server_tool_use": {"web_fetch_requests": 2}},
    ],
)
def test_what_changes_no_price_changes_no_cost(more: dict[str, Any]) -> None:
    assert cost({**TEN, **more}) == pytest.approx(0.00018)


def test_prices_of_the_cache_follow_from_that_of_input() -> None:
    million = 1_000_000
    base = {"input_tokens": 0, "output_tokens": 0}
    assert cost({**base, "cache_read_input_tokens": million}, "plain") == pytest.approx(0.3)
    assert cost({**base, "cache_creation_input_tokens": million}, "plain") == pytest.approx(3.75)
    by_lifetime = {"ephemeral_1h_input_tokens": million}
    assert cost({**base, "cache_creation": by_lifetime}, "plain") == pytest.approx(6)
    both = {**base, "cache_creation": by_lifetime, "cache_creation_input_tokens": 2 * million}
    assert cost(both, "plain") == pytest.approx(9.75)


def test_reasoning_tokens_cost_as_much_as_output() -> None:
    assert cost({**TEN, "reasoning_tokens": 10}, "plain") == cost({"input_tokens": 10, "output_tokens": 20}, "plain")


@pytest.mark.parametrize(
    ("more", "factor"),
    [
        ({"service_tier": "batch"}, 0.4),
        ({"speed": "fast"}, 2),
        ({"inference_geo": "us"}, 1.1),
        ({"speed": "fast", "inference_geo": "us"}, 2.2),
    ],
)
def test_factors_multiply_the_prices_of_tokens(more: dict[str, Any], factor: float) -> None:
    assert cost({**TEN, **more}, "tiers") == pytest.approx(0.0006 * factor)


def test_a_batch_halves_tokens_and_not_searches() -> None:
    usage = {**TEN, "server_tool_use": {"web_search_requests": 1}, "service_tier": "batch"}
    assert cost(usage) == pytest.approx(0.00009 + 0.01)


def test_a_long_prompt_has_its_own_rates_for_the_whole_call() -> None:
    assert cost({"input_tokens": 1000, "output_tokens": 100}, "bands") == pytest.approx(0.0015)
    assert cost({"input_tokens": 1001, "output_tokens": 100}, "bands") == pytest.approx(0.007505)
    cached = {"input_tokens": 1, "output_tokens": 0, "cache_read_input_tokens": 1000}
    assert cost(cached, "bands") == pytest.approx((5 + 500) / 1e6)


def test_of_several_calls_each_has_the_rates_of_its_own_prompt() -> None:
    short, long = {"input_tokens": 900, "output_tokens": 100}, {"input_tokens": 1100, "output_tokens": 100}
    several = {"input_tokens": 2700, "output_tokens": 300, "calls": [short] * 3}
    assert cost(several, "bands") == pytest.approx(3 * cost(short, "bands"))
    mixed = {"input_tokens": 2000, "output_tokens": 200, "calls": [short, long]}
    assert cost(mixed, "bands") == pytest.approx(cost(short, "bands") + cost(long, "bands"))
    parts = {"by_model": {"bands": several, "model-a": THOUSAND}}
    assert cost(parts, "bands") == pytest.approx(cost(several, "bands") + cost(THOUSAND, "model-a"))


@pytest.mark.parametrize(
    "calls", [None, [], "x", [None], [{}], [{"input_tokens": 900, "output_tokens": 100}], {"a": 1}]
)
def test_calls_that_do_not_amount_to_the_sum_are_not_believed(calls: object) -> None:
    whole = {"input_tokens": 2700, "output_tokens": 300}
    assert cost({**whole, "calls": calls}, "bands") == cost(whole, "bands")


@pytest.mark.parametrize("model", ["model-b", "model-a-20260101", "model", "MODEL-A", " model-a", "", None, 5, ["x"]])
def test_models_are_found_by_their_exact_name_alone(model: object) -> None:
    assert cost(TEN, model) is None
    assert TABLE.why_unpriced(TEN, model) is not None
    assert model not in TABLE


def test_the_built_in_table_is_read_once() -> None:
    assert PriceTable.built_in() is PriceTable.built_in()


@pytest.mark.parametrize(
    ("model", "rates"),
    [
        ("claude-fable-5-2", (8, 40, 0.2, 10, 16)),
        ("claude-opus-5-5", (4, 20, 0.2, 5, 8)),
        ("claude-sonnet-5-5", (2, 10, 0.1, 2.5, 4)),
        ("claude-sonnet-4-5-20250929", (3, 15, 0.3, 3.75, 6)),
        ("claude-haiku-5-5", (0.1, 0.5, 0.01, 0.125, 0.2)),
        ("claude-haiku-4-5-20251001", (1, 5, 0.1, 1.25, 2)),
    ],
)
def test_built_in_prices(model: str, rates: tuple[float, ...]) -> None:
    price = PriceTable.built_in()[model]
    found = (price.input, price.output, price.cache_read, price.cache_write_5m, price.cache_write_1h)
    assert found == pytest.approx(rates)
    assert price.as_of is not None
    assert price.as_of.startswith("2026-")


def test_an_undated_name_costs_what_its_dated_one_costs() -> None:
    for model in ("claude-opus-4-5-20251101", "claude-sonnet-4-5-20250929", "claude-haiku-4-5-20251001"):
        assert TABLE[model] == TABLE[model.rpartition("-")[0]]


def test_a_users_price_replaces_the_built_in_one_as_a_whole() -> None:
    mine = PriceTable.built_in().with_prices({"claude-opus-5-5": {"in": 1, "out": 2}}, "mine")
    assert mine["claude-opus-5-5"].cache_read == pytest.approx(0.1)
    assert mine["claude-opus-5-5"].web_search_per_1000 is None
    assert PriceTable.built_in()["claude-opus-5-5"].input == 4
    assert mine.with_prices(None, "mine") is mine


@pytest.mark.parametrize(
    ("prices", "said"),
    [
        ([], "_state.json: prices must be a mapping"),
        ({"m": 3}, "_state.json: prices: m must be a price such as"),
        ({"unit": {"in": 1}}, "_state.json: prices: unit: out: field required"),
        ({"m": {"in": 3}}, "_state.json: prices: m: out: field required"),
        ({"m": {"in": 3, "out": None}}, "_state.json: prices: m: out: field required"),
        ({"m": {"in": "3", "out": 1}}, "_state.json: prices: m: in: "),
        ({"m": {"in": True, "out": 1}}, "_state.json: prices: m: in: "),
        ({"m": {"in": -1, "out": 1}}, "_state.json: prices: m: in: "),
        ({"m": {"in": 10**400, "out": 1}}, "_state.json: prices: m: in: "),
        ({"m": {"in": float("nan"), "out": 1}}, "_state.json: prices: m: in: "),
        ({"m": {"in": 1, "out": float("inf")}}, "_state.json: prices: m: out: "),
        ({"m": {"in": 1, "out": 1, "cache-read": 2}}, "_state.json: prices: m: cache-read is no key of a price"),
        ({"m": {"in": 1, "out": 1, "long_prompt": {"in": 2, "out": 2}}}, "m: long_prompt.above: field required"),
    ],
)
def test_prices_that_cannot_be_used_are_refused_by_source_model_and_field(prices: object, said: str) -> None:
    with pytest.raises(RefusedError) as refusal:
        TABLE.with_prices(prices, "_state.json: prices")
    assert said in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_prices_of_an_ini_file_are_lines() -> None:
    table = TABLE.with_lines(["", " vendor/model:free in=.5 out=1e1", "m in=0 out=0 cache_read=0.1"], "ini")
    assert (table["vendor/model:free"].input, table["vendor/model:free"].output) == (0.5, 10)
    assert table.cost(TEN, "m") == 0


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("m in=3", "prices in pytest.ini: m: out: field required"),
        ("m in=3 out", "prices in pytest.ini: m: expected name=number, such as in=3, got 'out'"),
        ("m in=3 out=1_0", "got 'out=1_0'"),
        ("m in=3 out=\u0663", "got 'out=\u0663'"),
        ("m in=nan out=3", "m: in: "),
        ("m", "m: in: field required"),
    ],
)
def test_a_line_that_is_no_price_is_refused(line: str, said: str) -> None:
    with pytest.raises(RefusedError) as refusal:
        TABLE.with_lines([line], "prices in pytest.ini")
    assert said in str(refusal.value)


def test_two_lines_for_one_model_are_refused() -> None:
    with pytest.raises(RefusedError) as refusal:
        TABLE.with_lines(["m in=3 out=15", "other in=1 out=1", "  m in=1 out=2"], "prices in pytest.ini")
    assert str(refusal.value) == "prices in pytest.ini: m has two lines; put all that it costs into one"
    assert TABLE.with_lines(["model-a in=1 out=1"], "ini")["model-a"].input == 1, "a built-in price is replaced"


@pytest.mark.parametrize(
    ("usage", "tokens"),
    [
        (TEN, 20),
        ({**TEN, "cache_read_input_tokens": 5, "cache_creation_input_tokens": 3, "reasoning_tokens": 2}, 30),
        ({**TEN, "cache_creation": {"ephemeral_1h_input_tokens": 4}}, 24),
        ({**TEN, "total_tokens": 99}, 20),
        ({**TEN, "service_tier": 5, "iterations": "odd", "server_tool_use": []}, 20),
        ({"total_tokens": 99}, 99),
        ({"input_tokens": 10, "total_tokens": 99}, 99),
        ({"input_tokens": 10}, None),
        ({"total_tokens": "99"}, None),
        ({}, None),
        (None, None),
        ("99", None),
    ],
)
def test_tokens_for_a_budget(usage: object, tokens: int | None) -> None:
    assert total_tokens(usage) == tokens


def row(**more: Any) -> dict[str, Any]:
    return {"prompt_id": "a", "rep": 0, **more}


THOUSAND = {"input_tokens": 1000, "output_tokens": 0}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (row(model="model-a", usage=THOUSAND), RowCost(0.003, None, 0)),
        (row(model="model-a", usage=THOUSAND, judge_model="bands", judge_usage=TEN), RowCost(0.003, 0.00006, 0)),
        (row(), RowCost(None, None, 0)),
        (row(model="model-a", usage=None, judge_usage=None), RowCost(None, None, 0)),
        (row(model="model-a", usage={}), RowCost(None, None, 1)),
        (row(model="other", usage=THOUSAND), RowCost(None, None, 1)),
        (row(model={"name": "m"}, usage=THOUSAND), RowCost(None, None, 1)),
        (row(usage="many", judge_usage=[1]), RowCost(None, None, 2)),
        (row(model="model-a", usage=THOUSAND, judge_usage=TEN), RowCost(0.003, None, 1)),
        (row(model="model-a", usage=THOUSAND, meta={"retry_usage": [THOUSAND]}), RowCost(0.006, None, 0)),
        (row(model="model-a", usage=THOUSAND, meta=["mine"]), RowCost(0.003, None, 0)),
        (row(model="model-a", usage=THOUSAND, meta={"retry_usage": "none"}), RowCost(0.003, None, 0)),
        (row(model="model-a", usage=THOUSAND, meta={"retry_usage": [3, None]}), RowCost(0.003, None, 0)),
        (
            row(model="other", usage=THOUSAND, meta={"retry_usage": [{**THOUSAND, "model": "model-a"}]}),
            RowCost(0.003, None, 1),
        ),
        (
            row(
                model="model-a",
                usage=THOUSAND,
                judge_model="bands",
                judge_usage=TEN,
                meta={"retry_usage": [{**TEN, "judge_model": "bands"}, {**TEN, "judge_model": None}]},
            ),
            RowCost(0.003, 0.00018, 0),
        ),
        (
            row(
                failure_class="timeout",
                model="model-a",
                usage=THOUSAND,
                retry_usage=[{**THOUSAND, "model": "model-a"}, {**TEN, "judge_model": "nobody"}],
                meta={"retry_usage": [THOUSAND]},
            ),
            RowCost(0.006, None, 1),
        ),
    ],
)
def test_the_cost_of_a_row_counts_every_try_and_keeps_app_and_judge_apart(
    given: dict[str, Any], expected: RowCost
) -> None:
    found = TABLE.row_cost(given)
    assert (found.app, found.judge, found.unpriced) == (
        pytest.approx(expected.app),
        pytest.approx(expected.judge),
        expected.unpriced,
    )


def test_usage_of_a_row_without_a_model_had_the_requested_one() -> None:
    assert TABLE.row_cost(row(usage=THOUSAND), "model-a").app == pytest.approx(0.003)
    assert TABLE.row_cost(row(usage=THOUSAND, model="other"), "model-a") == RowCost(None, None, 1)


def test_costs_add_up_with_what_is_not_known() -> None:
    assert summed([]) == RowCost(None, None, 0)
    both = summed([RowCost(1.0, None, 1), RowCost(None, 0.5, 0), RowCost(2.0, 0.25, 2)])
    assert both == RowCost(3.0, 0.75, 3)
    assert both.total == 3.75
    assert RowCost().total is None


SCALARS = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=4))
SHAPES = st.recursive(
    SCALARS, lambda v: st.lists(v, max_size=2) | st.dictionaries(st.text(max_size=3), v, max_size=2), max_leaves=4
)
NAMES = (
    "input_tokens",
    "output_tokens",
    "cache_read_input_tokens",
    "cache_creation",
    "server_tool_use",
    "service_tier",
    "iterations",
)


@settings(max_examples=60, deadline=None)
@given(st.dictionaries(st.sampled_from(NAMES), SHAPES | st.integers(0, 10**6)))
def test_no_shape_of_usage_raises_or_costs_nothing_unless_all_counts_are_0(usage: dict[str, Any]) -> None:
    dollars = cost(usage, "plain")
    tokens = total_tokens(usage)
    assert tokens is None or tokens >= 0
    assert dollars is None or (dollars > 0) == (tokens != 0)


def test_a_usage_of_several_models_has_the_price_of_each() -> None:
    table = PriceTable({}).with_prices({"big": {"in": 10, "out": 10}, "small": {"in": 1, "out": 1}}, "test")
    million = {"input_tokens": 1_000_000, "output_tokens": 0}
    usage = {"input_tokens": 2_000_000, "output_tokens": 0, "by_model": {"big": million, "small": million}}
    assert table.cost(usage, "big") == 11.0
    assert table.cost({**usage, "by_model": {"big": million, "unknown": million}}, "big") is None
