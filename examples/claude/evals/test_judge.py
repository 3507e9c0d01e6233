"""Whether the judge can be trusted, before a campaign is paid for: ``pytest examples/claude -m judge``."""

import asyncio
from pathlib import Path

import pytest
import yaml

from pytest_hillclimb import Case
from pytest_hillclimb.claude import judges


@pytest.mark.judge
def test_the_judge_fails_what_must_fail(pytestconfig):
    """Give the grader of the conftest answers that must fail, and those that must pass, for two cases."""
    catalog = yaml.safe_load(Path(__file__).with_name("catalog.yaml").read_text(encoding="utf-8"))
    cases = [Case(**case) for case in catalog if "claims" in case][:2]
    hook = pytestconfig.hook.pytest_hillclimb_grade_case

    def grade(case, run, ref, ctx):
        return hook(case=case, run=run, ref=ref, ctx=ctx)

    report = asyncio.run(judges.selftest(grade, cases, repeats=2, expected_passes=True))
    assert report.ok, str(report)
    print(report)
