"""Workers behind ssh, which share nothing with the controller but the code that pytest-xdist sends them."""

from __future__ import annotations

import getpass
import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from time import monotonic, sleep

import pytest
from worker_project import NewWorkerProject, assert_orderly, case, cases, ids, wait_for, wait_for_end

SERVER = """\
Port {port}
ListenAddress 127.0.0.1
HostKey {directory}/host
AuthorizedKeysFile {directory}/user.pub
PidFile none
StrictModes no
UsePAM no
PasswordAuthentication no
PermitRootLogin prohibit-password
"""

CLIENT = """\
Host eval-machine
  HostName 127.0.0.1
  Port {port}
  User {user}
  IdentityFile {directory}/user
  IdentitiesOnly yes
  BatchMode yes
  StrictHostKeyChecking no
  UserKnownHostsFile /dev/null
  LogLevel ERROR
"""


@pytest.fixture(scope="module")
def ssh_config(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Run an ssh server on loopback; return the configuration of a client that may log in."""
    sshd = shutil.which("sshd") or shutil.which("sshd", path="/usr/sbin:/usr/local/sbin")
    if sshd is None or not shutil.which("ssh") or not shutil.which("ssh-keygen"):
        pytest.skip("there is no ssh server here")
    directory = tmp_path_factory.mktemp("ssh")
    for name in ("host", "user"):
        command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(directory / name)]
        subprocess.run(command, check=True, stdin=subprocess.DEVNULL)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    facts = {"port": port, "directory": directory, "user": getpass.getuser()}
    (directory / "sshd_config").write_text(SERVER.format(**facts))
    (directory / "config").write_text(CLIENT.format(**facts))
    if os.geteuid() == 0:
        # The empty directory that a server of the superuser changes its root to; its service would have made it.
        with suppress(OSError):
            Path("/run/sshd").mkdir(mode=0o755)
    command = [sshd, "-D", "-e", "-f", str(directory / "sshd_config")]
    with (directory / "sshd.log").open("wb") as log:
        server = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    try:
        if not _can_log_in(server, directory / "config"):
            pytest.skip(f"an ssh server may not run here: {(directory / 'sshd.log').read_text()[-300:]}")
        yield directory / "config"
    finally:
        server.terminate()
        server.wait()


def _can_log_in(server: subprocess.Popen[bytes], config: Path) -> bool:
    end = monotonic() + 10
    while monotonic() < end and server.poll() is None:
        command = ["ssh", "-F", str(config), "eval-machine", "true"]
        if subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False).returncode == 0:
            return True
        sleep(0.2)
    return False


def _tx(config: Path, directory: Path) -> str:
    return f"--tx=2*ssh=eval-machine//ssh_config={config}//python={sys.executable}//chdir={directory}"


def test_workers_on_another_machine(new_project: NewWorkerProject, ssh_config: Path, tmp_path: Path) -> None:
    project = new_project()
    well = cases(6, seconds=0.2)
    project.write_cases(*well, case("missed", "miss"), case("broken", "fail"))
    away = tmp_path / "away"
    done = project.run("-d", _tx(ssh_config, away), "--rsyncdir=evals")
    assert_orderly(done)
    assert done.status == 1, done.text
    project.assert_complete(*ids(well), "missed")
    assert [row["prompt_id"] for row in project.errors()] == ["broken"]
    # The copy of the conftest was run, not the file that it was made of.
    assert not project.calls()
    pids = {line.split("\t")[2] for line in (away / "spend.log").read_text().splitlines()}
    assert len(pids) == 2
    assert {path.name for path in away.iterdir()} == {"pytest", "_pytest", "evals", "spend.log"}


def test_workers_end_with_a_killed_controller(new_project: NewWorkerProject, ssh_config: Path, tmp_path: Path) -> None:
    project = new_project()
    many = cases(12, seconds=0.5)
    project.write_cases(*many)
    session = project.start("-d", _tx(ssh_config, tmp_path / "away"))
    wait_for(lambda: len(project.rows()) >= 2)
    known = len(project.calls())
    session.signal(signal.SIGKILL)
    session.end()
    wait_for_end(project.pids())
    assert len(project.calls()) <= known + 2, "workers went on with what they had queued"
