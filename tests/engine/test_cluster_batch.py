"""Jobs of a queue: what a TOML file becomes, and a run through a queue that is a shell script."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from engine_jobs import timing
from processes import gone, listening

pytest.importorskip("dask_jobqueue", reason="needs the extra cluster")

from distributed.comm import get_address_host_port

from lra.cli.exit_codes import INTERRUPTED
from lra.core.errors import UsageError
from lra.engine.cluster.batch import batch_cluster, make, read_batch
from lra.engine.cluster.connect import is_open, open_cluster
from lra.engine.cluster.grid import Grid
from lra.engine.cluster.shared_folder import share
from lra.store import Store

PATIENCE = 60.0
"""Seconds for what takes a few."""

SLURM = """
system = "slurm"
jobs = 2

[job]
cores = 8
memory = "32 GB"
queue = "gpu"
job_script_prologue = ["module load cuda"]
worker_extra_args = ["--lifetime", 3600]
"""
SLURM_ONE = """system = "slurm"
jobs = 1
[job]
cores = 1
memory = "1 GB"
scheduler_options = {host = "127.0.0.1"}
"""


def written(folder: Path, text: str = SLURM) -> Path:
    file = folder / "slurm.toml"
    file.write_text(text)
    return file


def test_the_file_becomes_the_job_script_of_slurm(tmp_path: Path) -> None:
    batch = read_batch(written(tmp_path))
    assert batch.workers == 2
    with share(tmp_path / "store") as folder, make(batch, folder, "slurm.toml") as cluster:
        script = cluster.job_script()
    lines = script.splitlines()
    logs = (tmp_path / "store" / "logs").resolve()
    for line in (
        "#SBATCH -J lra",
        "#SBATCH -p gpu",
        f"#SBATCH -o {logs}/lra-%J.out",
        "module load cuda",
        "export DASK_DISTRIBUTED__WORKER__PROFILE__ENABLED=False",
    ):
        assert line in lines
    (path,) = (line for line in lines if line.startswith("export PYTHONPATH="))
    assert str(Path(__file__).parents[2]) in path
    command = lines[-1]
    assert command.startswith(f"{sys.executable} -m distributed.cli.dask_worker tcp://")
    assert "--nworkers" not in command and "--nanny" in command and "--lifetime 3600" in command


@pytest.mark.parametrize(
    ("text", "named"),
    [
        (b"system slurm", "line 1"),
        (b"system = '\xff'", "line 1"),
        (b"jobs = 2", "'system'"),
        (b'system = "slurm"\njobs = 0', "jobs = 0"),
        (b'system = "slrum"\njobs = 1', "'slrum'"),
        (b'system = "slurm"\njobs = 1\njbo = {}', "'jbo'"),
        (b'system = "slurm"\njobs = 1\n[job]\ncores = 1\nmemory = "1 GB"\nwall = 2', "'wall'"),
        (b'system = "slurm"\njobs = 1\n[job]\nprocesses = "two"', "[job]: processes = 'two'"),
        (b'system = "slurm"\njobs = 1\n[job]\nscheduler_options = "ib0"', "'ib0'"),
        (b'system = "slurm"\njobs = 1\n[job]\nworker_extra_args = "-v"', "'-v'"),
        (b'system = "slurm"\njobs = 1\n[job]\njob_script_prologue = "a"', "'a'"),
        (b'system = "slurm"\njobs = 1', "cores and memory"),
    ],
)
def test_a_mistake_in_the_file_is_one_line_with_its_name(
    tmp_path: Path, text: bytes, named: str
) -> None:
    file = tmp_path / "slurm.toml"
    file.write_bytes(text)
    with (
        pytest.raises(UsageError) as refused,
        share(tmp_path / "store") as folder,
        batch_cluster(read_batch(file), folder, str(file)),
    ):
        pass
    assert named in str(refused.value) and str(file) in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.filterwarnings("ignore:OAR Job memory")
@pytest.mark.parametrize("system", ["slurm", "pbs", "sge", "lsf", "oar", "moab", "htcondor"])
def test_each_system_has_its_class(tmp_path: Path, system: str) -> None:
    disk = 'disk = "1 GB"\n' if system == "htcondor" else ""
    file = written(tmp_path, SLURM_ONE.replace("slurm", system) + disk)
    with share(tmp_path / "store") as folder, make(read_batch(file), folder, "one") as cluster:
        assert type(cluster).__name__.lower() == f"{system}cluster"


def test_ctrl_c_is_still_pythons_own() -> None:
    """The import of dask-jobqueue makes it an exit without a word."""
    told = subprocess.run(
        [
            sys.executable,
            "-c",
            "import signal\n"
            # A shell starts what runs in the background with the signal ignored.
            "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
            "import lra.engine.cluster.connect as _\n"
            "print(signal.getsignal(signal.SIGINT) is signal.default_int_handler)",
        ],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert told.stdout == "True\n"


@pytest.fixture
def queue(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A Slurm whose one node is here: `sbatch` starts the script, `scancel` ends its group."""
    place = tmp_path / "bin"
    place.mkdir()
    scripts = {
        "sbatch": f'cp "$1" {place}/job.sh; setsid bash {place}/job.sh >>{place}/out 2>&1 '
        f'</dev/null & echo $! >>{place}/jobs; echo "Submitted batch job $!"',
        "scancel": f'echo "$1" >>{place}/cancelled; kill -9 -- "-$1"',
    }
    for name, line in scripts.items():
        (place / name).write_text(f"#!/usr/bin/env bash\n{line}\n")
        (place / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{place}{os.pathsep}{os.environ['PATH']}")
    yield place
    for job in submitted(place):
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(job, signal.SIGKILL)


def submitted(place: Path) -> list[int]:
    file = place / "jobs"
    return [int(line) for line in file.read_text().split()] if file.is_file() else []


def test_cells_run_in_jobs_which_are_cancelled_at_the_end(
    tmp_path: Path, queue: Path, cache: Path
) -> None:
    file = written(tmp_path, SLURM_ONE)
    with (
        Store(tmp_path / "store").locked() as store,
        open_cluster(str(file), store.path, device="cpu") as cluster,
    ):
        (record,) = Grid(store, cluster).run([timing("Toy", cache)])
        assert record.status == "ok"
        assert len(submitted(queue)) == 1
        pids = list(cluster.client.run(os.getpid).values())
    assert (queue / "cancelled").read_text().split() == [str(submitted(queue)[0])]
    assert gone(pids)
    assert any("Toy forward 32" in one.read_text() for one in (store.path / "logs").iterdir())


@pytest.mark.skipif(sys.platform != "linux", reason="looks at /proc")
def test_only_the_scheduler_of_jobs_is_reached_from_other_machines(tmp_path: Path) -> None:
    before = listening([os.getpid()])
    with share(tmp_path) as folder:
        batch = read_batch(written(tmp_path, SLURM_ONE.rpartition("scheduler")[0]))
        with make(batch, folder, "slurm.toml") as cluster:
            made = listening([os.getpid()]) - before
            port = get_address_host_port(cluster.scheduler_address)[1]
            assert is_open(cluster.scheduler_address)
            script = cluster.job_script()
    assert len(made) >= 2
    assert {found for address, found in made if not address.is_loopback} == {port}
    assert "--dashboard-address 127.0.0.1:0" in script


def test_a_run_that_is_ended_in_the_queue_cancels_its_jobs(tmp_path: Path, queue: Path) -> None:
    (queue / "sbatch").write_text(
        f'#!/usr/bin/env bash\necho "Submitted batch job 7"; touch {queue}/asked\n'
    )
    (queue / "scancel").write_text(f'#!/usr/bin/env bash\necho "$1" >>{queue}/cancelled\n')
    file = written(tmp_path, SLURM_ONE)
    asked = ["run", "--impl", "identity", "--device", "cpu", "--task", "listops"]
    with subprocess.Popen(
        [sys.executable, "-m", "lra", *asked, "--cluster", str(file)],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as run:
        try:
            deadline = time.monotonic() + PATIENCE
            while not (queue / "asked").exists():
                assert run.poll() is None and time.monotonic() < deadline
                time.sleep(0.1)
            run.terminate()
            _, told = run.communicate(timeout=PATIENCE)
        finally:
            run.kill()
    assert told.endswith("lra: stopped by SIGTERM\n") and run.returncode == INTERRUPTED
    assert (queue / "cancelled").read_text().split() == ["7"]
    assert not list((tmp_path / "results/runs/default").glob(".cluster-*"))


def test_a_pipe_in_place_of_a_file_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.toml")
    with pytest.raises(UsageError, match="system"):
        read_batch(tmp_path / "a.toml")
