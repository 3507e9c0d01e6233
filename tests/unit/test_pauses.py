"""The file by which workers tell one another of a server's pause."""

from __future__ import annotations

from pathlib import Path

from pytest_hillclimb.wiring.pauses import SharedPause


def test_what_one_process_tells_the_others_know() -> None:
    owner = SharedPause()
    other = SharedPause(str(owner.path))
    assert other.left() == 0
    owner.tell(50)
    assert 40 < other.left() <= 50
    other.tell(10)
    assert owner.left() > 40, "the longest wait counts"
    other.close()
    assert owner.left() > 40, "whoever made the file removes it"
    owner.close()
    assert not owner.path.parent.exists()
    assert other.left() == 0


def test_a_process_elsewhere_finds_no_file_and_is_not_disturbed(tmp_path: Path) -> None:
    elsewhere = SharedPause(str(tmp_path / "not here" / "until"))
    elsewhere.tell(50)
    assert elsewhere.left() == 0


def test_what_is_no_time_is_no_pause(tmp_path: Path) -> None:
    (tmp_path / "until").write_text("soon")
    assert SharedPause(str(tmp_path / "until")).left() == 0
    (tmp_path / "until").write_text("1e300")
    assert SharedPause(str(tmp_path / "until")).left() == 3600
