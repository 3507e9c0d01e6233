"""How candidates meet cases in a session: node ids, execution ids, rows, selection, and the plan."""

from __future__ import annotations

import re
import shutil
from datetime import UTC, datetime

import pytest
from eval_project import Project, refused, reports
from matrix_files import GOLDEN, HERE
from matrix_project import Matrix, candidate, case, counts, nodes

from pytest_hillclimb.schedule.rotation import week_of

PAIRED = {"pair_offset": 1}


@pytest.fixture
def matrix(project: Project) -> Matrix:
    """Cases a (tags x, y) and b; luna in the first slot, kimi (tier cheap) and glm in the second."""
    matrix = Matrix(project, case("a", tags=["x", "y"]), case("b"))
    matrix.candidates(candidate("luna", tier="strong"), second=[candidate("kimi", tier="cheap"), candidate("glm")])
    return matrix


@pytest.fixture
def nightly(project: Project, monkeypatch: pytest.MonkeyPatch) -> Matrix:
    """The twelve cases and seven candidates that the golden schedules belong to, all of them qualified."""
    for name in ("OPENAI_API_KEY", "OPENROUTER_API_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.setenv(name, "k")
    matrix = Matrix(project, *({"id": id_} for id_ in GOLDEN["cases"]))
    shutil.copy(HERE / "nightly_candidates.yaml", project.path / "nightly.yaml")
    return matrix


def answers(result: pytest.RunResult) -> dict[str, str]:
    """Return what the coverage says of each of its goals."""
    found = [re.fullmatch(r" {11}(yes|no) +(.*)", line) for line in result.outlines]
    return {each[2]: each[1] for each in found if each is not None}


# --- what is planned --------------------------------------------------------------------------------------------------


def test_full_is_every_case_with_every_candidate_and_repetition(matrix: Matrix) -> None:
    result = matrix.run("-v", "--hillclimb-reps=2")
    assert result.ret == 0
    wanted = [f"{c}::{who}/rep{rep}" for c in "ab" for who in ("luna", "kimi", "glm") for rep in (0, 1)]
    assert nodes(result) == wanted
    assert set(matrix.rows()) == {name.replace("::", ".").replace("/", "_") for name in wanted}
    assert "2 cases, 3 active candidates, schedule full = 12 executions, 12 selected" in result.stdout.str()


def test_a_row_says_where_in_the_matrix_it_stands(matrix: Matrix) -> None:
    result = matrix.run("--hillclimb-seed=s", "--junitxml=junit.xml")
    row = matrix.rows()["b.glm_rep0"]
    place = {"case_id": "b", "candidate_id": "glm", "slot_id": "second", "classification": "completed"}
    id_ = row["meta"].pop("execution_id")
    assert row["meta"] == place
    assert re.fullmatch(r"rwe-[0-9a-f]{16}", id_)
    assert row["model"] == "glm-1"
    _, properties = matrix.junit()["b glm/rep0"]
    assert {**place, "execution_id": id_}.items() <= properties.items()
    told = dict(reports(result)["b::glm/rep0"].user_properties)
    assert told["hillclimb.execution_id"] == id_
    for file in ("traces/b.glm_rep0.json", "ref/b.glm"):
        has = (matrix.project.flow / "baseline" / file).exists()
        assert has == file.startswith("ref"), "the app gives no transcript"


def test_references_belong_to_a_case_and_a_candidate(matrix: Matrix) -> None:
    matrix.run()
    assert matrix.run("--hillclimb-variant=v1").ret == 0
    told = {name: row["explanation"]["score"] for name, row in matrix.rows("v1").items()}
    assert told["a.luna_rep0"] == "against luna on a"
    assert told["b.kimi_rep0"] == "against kimi on b"


@pytest.mark.parametrize("rotation", range(7))
def test_the_plan_of_the_nightly_schedule_is_the_golden_one(nightly: Matrix, rotation: int) -> None:
    arguments = ["--hillclimb-candidates=nightly.yaml", "--hillclimb-schedule=balanced", "--hillclimb-seed=nightly-v1"]
    result = nightly.project.approved(*arguments, f"--hillclimb-rotation={rotation - 7}", "--hillclimb-plan")
    golden = [line.split() for line in GOLDEN["rows"][str(rotation)]]
    wanted = [f"{c}::{who}/rep{rep}  rwe-{id_}" for c, who, *ids in golden for rep, id_ in enumerate(ids)]
    planned = [line.split("::", 1)[1] for line in result.outlines if "evals/catalog.json::" in line]
    assert planned == wanted
    assert len(wanted) == 40
    text = result.stdout.str()
    assert f"schedule balanced, rotation {rotation} = 40 executions" in text
    cost = GOLDEN["schedules"]["nightly-v1"][rotation]["worst_case_usd"]
    assert f"worst case {cost:.2f} USD, no cost ceiling" in text


def test_the_plan_shows_coverage_with_its_gaps(nightly: Matrix) -> None:
    result = nightly.project.approved(
        "--hillclimb-candidates=nightly.yaml", "--hillclimb-schedule=balanced", "--hillclimb-plan"
    )
    assert answers(result) == {
        "every slot is used in every rotation": "yes",
        "every tier is used in every rotation": "yes",
        "every candidate is used in the cycle": "yes",
        "every case meets every slot": "yes",
        "every case meets every candidate": "no",
    }
    gaps = [line.split(maxsplit=1)[1] for line in result.outlines if line.startswith("gap ")]
    assert gaps == [
        "final-response never meets opencode-glm-flash",
        "steering-causality never meets opencode-glm",
        "planning-lifecycle never meets opencode-glm-flash",
        "restart-recovery never meets opencode-glm",
        "cancellation-permissions never meets opencode-glm-flash",
    ]


def test_the_full_schedule_covers_everything(matrix: Matrix) -> None:
    result = matrix.run("--hillclimb-plan")
    assert list(answers(result).values()) == ["yes"] * 5
    assert "coverage   of a cycle of 1 rotation" in result.outlines


def test_a_plan_spends_nothing_and_says_what_is_recorded_or_skipped(
    matrix: Matrix, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("GLM_KEY", raising=False)
    matrix.candidates(candidate("luna", max_cost_usd=2), second=[candidate("glm", env="GLM_KEY", max_cost_usd=3)])
    matrix.run("--hillclimb-case=a")
    before, spent = matrix.project.files(), matrix.calls()
    result = matrix.run("--hillclimb-plan", "--hillclimb-max-cost=1")
    assert result.ret == 0
    states = [line.split()[:-1] for line in result.outlines if "evals/catalog.json::" in line]
    assert states == [
        ["recorded", "evals/catalog.json::a::luna/rep0"],
        ["skipped", "evals/catalog.json::a::glm/rep0"],
        ["to", "run", "evals/catalog.json::b::luna/rep0"],
        ["skipped", "evals/catalog.json::b::glm/rep0"],
    ]
    text = result.stdout.str()
    assert "worst case 2.00 USD, cost ceiling 1 USD; it may end before all are run" in text
    assert "4 selected: 1 recorded, 2 skipped, 1 to run" in text
    assert "note: not qualified: glm needs GLM_KEY" in text
    assert (matrix.project.files(), matrix.calls()) == (before, spent)


# --- rotations --------------------------------------------------------------------------------------------------------


def test_balanced_pairs_by_rotation(matrix: Matrix) -> None:
    matrix.candidates(candidate("luna"), schedule={**PAIRED, "repeats": {"a": 2}, "id_prefix": "t-"})
    asked = ["--hillclimb-schedule=balanced", "--hillclimb-plan"]
    even, odd = (nodes(matrix.run(*asked, f"--hillclimb-rotation={rotation}")) for rotation in (0, 1))
    assert even == [
        *(f"a::{who}/rep{rep}" for who in ("luna", "kimi") for rep in (0, 1)),
        "b::kimi/rep0",
        "b::luna/rep0",
    ]
    assert odd == [*(f"a::{who}/rep{rep}" for who in ("glm", "luna") for rep in (0, 1)), "b::luna/rep0", "b::glm/rep0"]
    result = matrix.run("--hillclimb-schedule=balanced", "--hillclimb-rotation=8")
    assert result.ret == 0
    assert sorted(matrix.rows()) == sorted(name.replace("::", ".").replace("/", "_") for name in odd)
    shown = [line.split(" ")[0] for line in result.outlines if line.startswith(("candidate ", "luna ", "glm "))]
    assert shown == ["candidate", "luna", "glm"], "the order is the author's"
    assert {row["meta"]["execution_id"][:2] for row in matrix.rows().values()} == {"t-"}


def test_the_rotation_of_today_is_the_week(matrix: Matrix) -> None:
    matrix.candidates(candidate("luna"), schedule=PAIRED)
    before = week_of(datetime.now(UTC)) % 7
    texts = [
        matrix.run("--hillclimb-schedule=balanced", "--hillclimb-plan", *more).stdout.str()
        for more in ([], ["--hillclimb-rotation=today"])
    ]
    weeks = {before, week_of(datetime.now(UTC)) % 7}
    assert all(any(f"schedule balanced, rotation {week} =" in text for week in weeks) for text in texts)


@pytest.mark.parametrize(
    ("given", "rotation"),
    [("2026-08-27", 2), ("2026-08-26T23:59:59Z", 1), ("2026-08-27T01:00+02:00", 1), ("1969-12-24", 5), ("-8", 6)],
)
def test_a_date_gives_its_week(matrix: Matrix, given: str, rotation: int) -> None:
    result = matrix.run(f"--hillclimb-rotation={given}", "--hillclimb-plan")
    assert f"schedule full, rotation {rotation} = 4 executions" in result.stdout.str()
    assert {name.split("::")[1] for name in nodes(result)} == {"luna/rep0", f"{('kimi', 'glm')[rotation % 2]}/rep0"}


@pytest.mark.parametrize("given", ["soon", "2026-02-30", "2026-08-27T06:00", "1.5", ""])
def test_what_is_no_rotation_is_refused(matrix: Matrix, given: str) -> None:
    assert "--hillclimb-rotation: expected" in refused(matrix.run(f"--hillclimb-rotation={given}"))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--hillclimb-schedule=weekly"], ["--hillclimb-schedule", "'full' or 'balanced'"]),
        (["--hillclimb-schedule=balanced"], ["candidates.json: schedule.pair_offset is 2", "write 1"]),
    ],
)
def test_a_schedule_that_is_not_possible_is_refused(matrix: Matrix, arguments: list[str], words: list[str]) -> None:
    matrix.candidates(candidate("luna"), schedule={"pair_offset": 2})
    told = refused(matrix.run(*arguments))
    for word in words:
        assert word in told


def test_balanced_needs_candidates(project: Project) -> None:
    project.cases({"id": "a"})
    assert "name a manifest" in refused(project.approved("--hillclimb-schedule=balanced"))


def test_the_ini_may_set_schedule_rotation_and_seed(matrix: Matrix) -> None:
    matrix.candidates(candidate("luna"), schedule=PAIRED)
    asked = ["--hillclimb-schedule=balanced", "--hillclimb-rotation=3", "--hillclimb-seed=x"]
    wanted = [line for line in matrix.run(*asked, "--hillclimb-plan").outlines if "::" in line]
    matrix.project.ini(
        hillclimb_enabled="true", hillclimb_schedule="balanced", hillclimb_rotation="3", hillclimb_seed="x"
    )
    assert [line for line in matrix.run("--hillclimb-plan").outlines if "::" in line] == wanted
    other = [line for line in matrix.run("--hillclimb-plan", "--hillclimb-seed=y").outlines if "::" in line]
    assert [line.split()[:-1] for line in other] == [line.split()[:-1] for line in wanted]
    assert not {line.split()[-1] for line in other} & {line.split()[-1] for line in wanted}


# --- selection --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "wanted"),
    [
        (["-k", "x"], ["a::luna", "a::kimi", "a::glm"]),
        (["-k", "luna"], ["a::luna", "b::luna"]),
        (["-k", "second and not glm"], ["a::kimi", "b::kimi"]),
        (["-k", "cheap or strong"], ["a::luna", "a::kimi", "b::luna", "b::kimi"]),
        (["--hillclimb-candidate=glm"], ["a::glm", "b::glm"]),
        (["--hillclimb-candidate=glm", "--hillclimb-candidate=luna", "--hillclimb-case=b"], ["b::luna", "b::glm"]),
        (["--hillclimb-limit=4"], ["a::luna", "a::kimi", "a::glm", "b::luna"]),
        (["--hillclimb-candidate=glm", "--hillclimb-limit=1", "-k", "not x"], ["b::glm"]),
        (["evals/catalog.json::b"], ["b::luna", "b::kimi", "b::glm"]),
        (["evals/catalog.json::b::kimi/rep0", "evals/catalog.json::a::luna/rep0"], ["b::kimi", "a::luna"]),
        (["--deselect=evals/catalog.json::a", "--deselect=evals/catalog.json::b::glm/rep0"], ["b::luna", "b::kimi"]),
        (["evals/catalog.json::a", "--hillclimb-candidate=kimi"], ["a::kimi"]),
    ],
)
def test_selections_compose(matrix: Matrix, arguments: list[str], wanted: list[str]) -> None:
    result = matrix.run("--collect-only", "-q", *arguments)
    assert result.ret == 0
    assert [name.removesuffix("/rep0") for name in nodes(result)] == wanted


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--hillclimb-candidate=sol"], ["no candidate is called 'sol'", "'luna', 'kimi', 'glm'"]),
        (["--hillclimb-rotation=1", "--hillclimb-candidate=kimi"], ["'kimi' is not active", "'luna', 'glm'"]),
        (["--hillclimb-case=c"], ["no case is called 'c'", "'a', 'b'"]),
        (["--hillclimb-limit=0"], ["--hillclimb-limit", "from 1"]),
    ],
)
def test_names_that_do_not_exist_are_refused_with_those_that_do(
    matrix: Matrix, arguments: list[str], words: list[str]
) -> None:
    told = refused(matrix.run(*arguments))
    for word in words:
        assert word in told
    assert matrix.calls() == []


def test_a_selection_without_executions_is_refused(matrix: Matrix) -> None:
    matrix.candidates(candidate("luna"), schedule={**PAIRED, "candidates_per_case": 1})
    chosen = ["--hillclimb-schedule=balanced", "--hillclimb-rotation=0"]
    told = refused(matrix.run(*chosen, "--hillclimb-case=a", "--hillclimb-candidate=kimi"))
    assert "--hillclimb-candidate 'kimi' --hillclimb-case 'a': no planned execution has these" in told
    assert matrix.run("-k", "nothing-like-it").ret == 5


def test_a_candidate_without_a_manifest_is_refused(project: Project) -> None:
    project.cases({"id": "a"})
    assert "needs a candidate manifest" in refused(project.approved("--hillclimb-candidate=luna"))


def test_failed_executions_are_run_again_by_lf(matrix: Matrix) -> None:
    matrix.project.cases(case("a", kimi={"grade": False}), case("b", glm={"raises": "kaput"}))
    assert counts(matrix.run("-p", "cacheprovider")) == {"passed": 4, "failed": 1, "errors": 1}
    again = matrix.run("-p", "cacheprovider", "--lf", "-v")
    assert nodes(again)[:2] == ["a::kimi/rep0", "b::glm/rep0"]
    assert counts(again) == {"failed": 1, "errors": 1, "deselected": 4}
    assert len(matrix.calls()) == 7


def test_a_resume_runs_what_is_missing(matrix: Matrix) -> None:
    matrix.run("--hillclimb-candidate=luna")
    result = matrix.run()
    assert "6 selected: 2 recorded, 4 to run" in result.stdout.str()
    assert len(matrix.calls()) == 6
    assert len(matrix.run("--hillclimb-fresh").reprec.getreports("pytest_runtest_logreport")) == 18
    assert len(matrix.calls()) == 12
    assert len(matrix.rows()) == 6
