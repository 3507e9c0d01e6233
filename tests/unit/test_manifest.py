"""Reading a candidate manifest: what is kept as typed, and how what is wrong is named."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matrix_files import GOLDEN, nightly, read, refusal

from pytest_hillclimb.errors import ManifestError
from pytest_hillclimb.model.candidate import Budget, Candidate, Manifest, Qualification, ScheduleRules
from pytest_hillclimb.schedule.manifest import read_manifest

SECRET = "s" + "k-A1b2C3d4E5f6G7h8"  # in parts, so that no scanner takes this file for a leak


def one(directory: Path, fields: str, *, name: str = "m.yaml") -> Candidate:
    """Return the only candidate of a manifest in which it has these *fields*."""
    return read(directory, f"slots: [{{id: s, candidates: [{{{fields}}}]}}]", name).candidates[0]


def test_the_nightly_manifest_is_read_in_its_order() -> None:
    manifest = nightly()
    assert [slot.id for slot in manifest.slots] == [slot["slot_id"] for slot in GOLDEN["manifest"]]
    wanted = [dict(candidate) for slot in GOLDEN["manifest"] for candidate in slot["candidates"]]
    for candidate, fields in zip(manifest.candidates, wanted, strict=True):
        required, profile = tuple(fields.pop("required_environment")), fields.pop("profile")
        assert candidate.model_dump(exclude={"settings", "qualification"}) == fields
        assert candidate.qualification == Qualification(required_env=required, profile=profile)
    assert manifest.required_env == {"OPENAI_API_KEY", "OPENROUTER_API_KEY", "ANTHROPIC_API_KEY"}
    assert manifest.source == "nightly.yaml"
    assert manifest.schedule == ScheduleRules(repeats=dict.fromkeys(manifest.schedule.repeats, 3))


def test_a_candidate_needs_an_id_and_a_model_and_limits_nothing_else(tmp_path: Path) -> None:
    manifest = read(tmp_path, "slots:\n- id: s\n  candidates:\n  - id: a\n    model: m\n")
    assert manifest.candidates == (Candidate(id="a", slot_id="s", model="m"),)
    assert manifest.candidates[0].budget == Budget()
    assert manifest.schedule == ScheduleRules(pair_offset=3, candidates_per_case=2, cycle=7, id_prefix="rwe-")


def test_keys_that_are_null_count_as_absent_but_settings_keep_them(tmp_path: Path) -> None:
    candidate = one(tmp_path, "id: a, model: m, tier: ~, budget: , qualification: null, settings: {x: null, y: [null]}")
    assert candidate == Candidate(id="a", slot_id="s", model="m", settings={"x": None, "y": [None]})


@pytest.mark.parametrize("text", ["1.50", "no", "true", "0x1F", "2024-01-01", "1e3", "007"])
def test_texts_are_what_was_typed(tmp_path: Path, text: str) -> None:
    fields = f"id: {text}, model: {text}, adapter: {text}, provider: {text}, tier: {text}, reasoning_effort: {text}"
    candidate = one(tmp_path, f"{fields}, qualification: {{profile: {text}}}, settings: {{id: 1.50}}")
    free = (candidate.model, candidate.adapter, candidate.provider, candidate.tier, candidate.reasoning_effort)
    assert (candidate.id, *free, candidate.qualification.profile) == (text,) * 7
    assert candidate.settings == {"id": 1.5}


def test_json_is_read_too_and_its_numbers_become_texts_where_texts_are_wanted(tmp_path: Path) -> None:
    candidate = {"id": 7, "slot_id": 5, "model": 4.5, "settings": {"id": 1, "deep": [{"t": True}]}}
    schedule = {"repeats": {"id": 2}, "id_prefix": 9}
    text = json.dumps({"slots": [{"id": 5, "phase": -1, "candidates": [candidate]}], "schedule": schedule})
    manifest = read(tmp_path, text, "m.json")
    settings = {"id": 1, "deep": [{"t": True}]}
    assert manifest.candidates == (Candidate(id="7", slot_id="5", model="4.5", settings=settings),)
    assert manifest.slots[0].phase == -1
    assert manifest.schedule == ScheduleRules(repeats={"id": 2}, id_prefix="9")


def test_a_manifest_travels_to_other_processes() -> None:
    manifest = nightly()
    assert pickle.loads(pickle.dumps(manifest)) == manifest
    assert Manifest.model_validate(json.loads(manifest.model_dump_json())) == manifest


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ("id: a", "candidate 'a': model is missing; it must be the name of a model"),
        ("model: m", "candidate 1: id is missing; it must be a letter or digit, then"),
        ("id: a, model: ' '", "candidate 'a': model must be the name of a model, got ' '"),
        ("id: a, model: [m]", "candidate 'a': model must be the name of a model, got a list"),
        ("id: a, modle: m", "candidate 'a': modle is no key of a manifest here; did you mean 'model'?"),
        ("id: a, model: m, zzz: 1", "candidate 'a': zzz is no key of a manifest here; known are id, slot_id, model,"),
        ("id: a, model: m, source: x", "candidate 'a': source is no key"),
        ("id: a/b, model: m", "candidate 'a/b': id must be a letter or digit, then letters, digits, '.', '_' and '-'"),
        ("id: .a, model: m", "candidate '.a': id must be"),
        ('id: "a\\n", model: m', "candidate 'a\\n': id must be"),
        ("id: \u00e4, model: m", "candidate '\u00e4': id must be"),
        (
            f"id: {'a' * 41}, model: m",
            "id must be a letter or digit, then letters, digits, '.', '_' and '-', at most 40",
        ),
        ("id: [], model: m", "candidate 1: id must be a letter"),
        ("id: a, model: m, slot_id: t", "candidate 'a': slot_id is 't', but the candidate is listed in slot 's'"),
        ('id: a, model: "\\ud800"', "candidate 'a': model must be the name of a model, got '\\ud800'"),
        ("id: a, model: m, tier: {}", "candidate 'a': tier must be a text, got a mapping without members"),
        ("id: a, model: m, settings: [1]", "candidate 'a': settings must be a mapping, got a list"),
        (
            "id: a, model: m, settings: {x: [1, 1e999]}",
            "candidate 'a': settings.x[1] must be a finite number, got inf",
        ),
        ("id: a, model: m, qualification: {env: X}", "qualification.env is no key of a manifest here; known are"),
        ("id: a, model: m, qualification: {required_env: X}", "qualification.required_env must be a list of names"),
        (
            "id: a, model: m, qualification: {required_env: [$X]}",
            "qualification.required_env[0] must be the name of an",
        ),
        (
            "id: a, model: m, qualification: {required_env: [~]}",
            "qualification.required_env[0] must be the name of an",
        ),
        ("id: a, model: m, budget: 3", "budget must be a mapping with any of max_latency_ms, max_attempts,"),
        (
            "id: a, model: m, budget: {max_cost: 3}",
            "budget.max_cost is no key of a manifest here; did you mean 'max_cost",
        ),
    ],
)
def test_a_flaw_of_a_candidate_names_file_line_slot_candidate_and_field(
    tmp_path: Path, fields: str, problem: str
) -> None:
    error = refusal(tmp_path, f"slots:\n- id: s\n  candidates:\n  - {{{fields}}}\n")
    assert error.message.startswith("evals/m.yaml, line 4: slot 's', candidate ")
    assert problem in error.message


def test_the_error_carries_where_it_is(tmp_path: Path) -> None:
    text = "slots:\n- id: s\n  candidates:\n  - id: a\n    model: m\n    budget:\n      max_attempts: 0\n"
    error: Any = refusal(tmp_path, text)
    expected = (7, "s", "a", "budget.max_attempts")
    assert (error.line, error.slot, error.candidate, error.field) == expected
    again = pickle.loads(pickle.dumps(error))
    assert (again.message, again.field) == (error.message, error.field)


@pytest.mark.parametrize("limit", ["max_latency_ms", "max_attempts", "max_cost_usd", "max_total_tokens"])
@pytest.mark.parametrize("value", ["-1", "1e999", ".nan", "'1'", "true", "[1]", "1_000", "$1"])
def test_a_limit_is_a_number_that_limits(tmp_path: Path, limit: str, value: str) -> None:
    text = f"slots: [{{id: s, candidates: [{{id: a, model: m, budget: {{{limit}: {value}}}}}]}}]"
    assert f"candidate 'a': budget.{limit} must be " in refusal(tmp_path, text).message


@pytest.mark.parametrize("limit", ["max_latency_ms", "max_attempts", "max_total_tokens"])
def test_a_limit_of_0_is_refused(tmp_path: Path, limit: str) -> None:
    text = f"slots: [{{id: s, candidates: [{{id: a, model: m, budget: {{{limit}: 0}}}}]}}]"
    assert "from 1" in (message := refusal(tmp_path, text).message) or "above 0" in message
    assert message.endswith("leave it out for no limit, got 0")


def test_a_cost_of_0_forbids_paid_use(tmp_path: Path) -> None:
    assert one(tmp_path, "id: a, model: m, budget: {max_cost_usd: 0}").budget == Budget(max_cost_usd=0.0)


@pytest.mark.parametrize("constant", ["NaN", "Infinity", "-Infinity"])
def test_the_constants_that_only_python_reads_are_refused_in_json(tmp_path: Path, constant: str) -> None:
    head = '{"slots": [{"id": "s", "candidates": [{"id": "a", "model": "m", '
    limit = refusal(tmp_path, f'{head}"budget": {{"max_cost_usd": {constant}}}}}]}}]}}', "m.json")
    assert "slot 's', candidate 'a': budget.max_cost_usd must be US dollars" in limit.message
    setting = refusal(tmp_path, f'{head}"settings": {{"x": {constant}}}}}]}}]}}', "m.json")
    assert "settings.x must be a finite number" in setting.message


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "slots is missing"),
        ("schedule: {}", "slots is missing"),
        (
            "slots: []",
            "line 1: slots must be a list of slots, each with an id and a list of candidates, got a list with",
        ),
        ("slots: {s: [{id: a, model: m}]}", "line 1: slots must be a list of slots"),
        ("- id: s", "must be a mapping with slots and schedule, got a list"),
        ("just text", "must be a mapping with slots and schedule, got 'just text'"),
        ("slots: [{id: s}]\nsource: x", "line 2: source is no key of a manifest here; known are slots, schedule"),
        ("slotz: []", "line 1: slotz is no key of a manifest here; did you mean 'slots'?"),
        ("slots: [s]", "line 1: slot 1: must be a mapping with an id, got 's'"),
        ("slots: [{candidates: [{id: a, model: m}]}]", "slot 1: id is missing"),
        ("slots: [{id: s}]", "slot 's': candidates is missing; it must be a list of one or more candidates"),
        ("slots: [{id: s, candidates: []}]", "slot 's': candidates must be a list of one or more candidates"),
        ("slots: [{id: s, candidates: [a]}]", "slot 's', candidate 1: must be a mapping with an id, got 'a'"),
        ("slots: [{id: s, phase: 1.5, candidates: [{id: a, model: m}]}]", "slot 's': phase must be a whole number"),
        ("slots: [{id: a b, candidates: [{id: a, model: m}]}]", "slot 'a b': id must be a letter or digit, then"),
    ],
)
def test_a_flaw_of_the_whole_or_of_a_slot_is_named(tmp_path: Path, text: str, problem: str) -> None:
    assert problem in refusal(tmp_path, text).message


@pytest.mark.parametrize(
    ("rules", "problem"),
    [
        ("pair_offset: 0", "schedule.pair_offset must be a whole number from 1, got 0"),
        ("candidates_per_case: 1.0", "schedule.candidates_per_case must be a whole number from 1, got 1.0"),
        ("cycle: 1001", "schedule.cycle must be a whole number from 1 to 1000, got 1001"),
        ("cycle: true", "schedule.cycle must be a whole number from 1 to 1000, got true"),
        ("repeats: [a]", "schedule.repeats must be a mapping of case ids"),
        ("repeats: {final: 0}", "schedule.repeats.final must be a whole number from 1 to 10000, got 0"),
        ("repeats: {'a b': x}", "schedule.repeats['a b'] must be a whole number"),
        ("id_prefix: 'a:'", "schedule.id_prefix must be letters, digits"),
        (f"id_prefix: {'a' * 41}", "schedule.id_prefix must be letters, digits"),
        ("pair_ofset: 1", "schedule.pair_ofset is no key of a manifest here; did you mean 'pair_offset'?"),
    ],
)
def test_a_flaw_of_the_schedule_is_named(tmp_path: Path, rules: str, problem: str) -> None:
    text = f"slots: [{{id: s, candidates: [{{id: a, model: m}}]}}]\nschedule:\n  {rules}\n"
    assert refusal(tmp_path, text).message.startswith(f"evals/m.yaml, line 3: {problem}")


@pytest.mark.parametrize(("other", "why"), [("a1", "is used twice"), ("A1", "differs from 'a1' only in letter case")])
def test_ids_are_used_once_in_any_letter_case(tmp_path: Path, other: str, why: str) -> None:
    text = "slots:\n- id: s\n  candidates:\n  - {id: a1, model: m}\n"
    text += f"- id: t\n  candidates: [{{id: {other}, model: m}}]\n"
    message = refusal(tmp_path, text).message
    assert message.startswith(f"evals/m.yaml, line 6: slot 't', candidate '{other}': id {why}: the other is ")
    assert "slots[0].candidates[0].id (line 4); rename one" in message
    slots = "slots:\n- {id: a1, candidates: [{id: x, model: m}]}\n"
    slots += f"- {{id: {other}, candidates: [{{id: y, model: m}}]}}\n"
    assert f"line 3: slot '{other}': id {why}: the other is slots[0].id (line 2)" in refusal(tmp_path, slots).message


def test_doubled_keys_are_refused(tmp_path: Path) -> None:
    text = "slots:\n- id: s\n  id: t\n"
    assert "line 3: the key 'id' appears twice" in refusal(tmp_path, text).message
    message = refusal(tmp_path, '{"slots": [{"id": "s", "id": "t"}]}', "m.json").message
    assert "slots[0].id: the key appears twice" in message


@pytest.mark.parametrize(
    "place",
    [
        "slots: [{id: s, candidates: [{id: a, model: SECRET}]}]",
        "slots: [{id: s, candidates: [{id: SECRET, model: m}]}]",
        "slots: [{id: s, candidates: [{id: a, model: m, slot_id: SECRET}]}]",
        "slots: [{id: SECRET, candidates: [{id: a, model: m}]}]",
        "slots: [{id: SECRET, phase: x, candidates: []}]",
        "slots: [{id: s, candidates: [{id: a, model: m, qualification: {required_env: [SECRET]}}]}]",
        "slots: [{id: s, candidates: [{id: a, model: m, settings: {deep: [{x: 'key SECRET end'}]}}]}]",
        "slots: [{id: s, candidates: [{id: a, model: m, settings: {deep: [{SECRET: 1}]}}]}]",
        "slots: [{id: s, candidates: [{id: a, model: m, SECRET: 1}]}]",
        "slots: [{id: s, candidates: [{id: a, model: m}]}]\nschedule: {repeats: {SECRET: 1}}",
        "slots: [{id: s, candidates: [{id: a, model: m}]}]\nschedule: {id_prefix: SECRET}",
        "slots: [{id: s, candidates: [{id: a, model: m, budget: {max_cost_usd: SECRET}}]}]",
        "SECRET",
        "SECRET: 1",
        "[SECRET]",
    ],
)
@pytest.mark.parametrize("secret", [SECRET, "B" + "earer A1b2C3d4E5f6G7h8x", "A" + "KIAZZZZZZZZZZZZZZZZ"])
def test_what_looks_like_a_credential_is_refused_and_not_shown(tmp_path: Path, place: str, secret: str) -> None:
    error = refusal(tmp_path, place.replace("SECRET", secret))
    assert "looks like a credential" in error.message
    assert "qualification.required_env" in error.message
    assert secret not in repr(vars(error))
    assert secret[-8:] not in error.message


def test_a_doubled_key_that_looks_like_a_credential_is_not_shown(tmp_path: Path) -> None:
    error = refusal(tmp_path, f"{SECRET}: 1\n{SECRET}: 2\n")
    assert "line 2" in error.message
    assert SECRET[-8:] not in error.message


@pytest.mark.parametrize(
    ("text", "name", "problem"),
    [
        ("slots: [", "m.yaml", "not valid YAML"),
        ("{", "m.json", "not valid JSON"),
        ("", "m.json", "not valid JSON"),
        ("slots: []", "m.toml", "the suffix '.toml' is none of .yaml, .yml, .json"),
        (b"slots: \xff", "m.yaml", "line 1: the byte 0xff is not UTF-8"),
        ("&a [*a]", "m.yaml", "is nested too deeply, or contains itself"),
        ("[" * 5000, "m.json", "is nested too deeply"),
    ],
)
def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path, text: str | bytes, name: str, problem: str) -> None:
    assert problem in refusal(tmp_path, text, name).message


def test_a_file_that_is_missing_is_refused(tmp_path: Path) -> None:
    (tmp_path / "m.yaml").mkdir()
    assert "is not a regular file" in refusal_of_what_is_there(tmp_path / "m.yaml")
    assert "cannot be read: No such file" in refusal_of_what_is_there(tmp_path / "other.yaml")


def refusal_of_what_is_there(path: Path) -> str:
    with pytest.raises(ManifestError) as caught:
        read_manifest(path, path.name)
    return caught.value.message


KEYS = [
    "slots",
    "schedule",
    "id",
    "candidates",
    "model",
    "settings",
    "budget",
    "max_cost_usd",
    "repeats",
    "a\x1b\n",
    "",
]
scalars = st.none() | st.booleans() | st.integers(-2, 10**20) | st.floats() | st.text(max_size=5)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=4),
    max_leaves=12,
)


@settings(derandomize=True, deadline=None, max_examples=150)
@given(st.fixed_dictionaries({}, optional={"slots": st.lists(values, max_size=2), "schedule": values, "x\x1b": values}))
def test_whatever_a_file_holds_it_is_a_manifest_or_refused_in_one_line(
    tmp_path_factory: pytest.TempPathFactory, data: dict[str, Any]
) -> None:
    path = tmp_path_factory.getbasetemp() / "any.json"
    path.write_text(json.dumps(data), encoding="utf-8")
    try:
        found: Any = read_manifest(path, "any.json")
    except ManifestError as error:
        found = error.message
    assert found.startswith("any.json: ") and found.isprintable() if isinstance(found, str) else found.candidates
