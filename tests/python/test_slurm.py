# SPDX-License-Identifier: BSD-3-Clause
"""Offpath under a Slurm of two nodes: around srun, inside it, in batch scripts; jobs beside each other, and ended."""

import json
import os
import re
import secrets
import shlex
import shutil
import socket
import subprocess
import uuid
from pathlib import Path

import pytest
import slurm_support
import torch_support
from conftest import PROGRAMS, ROOT, SEED, captured, require, requires_root, succeeded
from offpath.base.errors import UserError
from offpath.base.paths import paths
from offpath.lab import slurm
from offpath.launch import stats
from offpath.launch.mpis import TITLES
from slurm_support import until

OFFPATH = [str(ROOT / "offpath"), "run", "--policy", "*:dpu"]
SHARE = [*OFFPATH, "--share"]
QUEUE = ["slurm", "run", "--", "squeue", "--noheader"]
# Debian's Open MPI speaks PMIx only, its MPICH the protocol of pmi2 only.
PMI = {"openmpi": "pmix", "mpich": "pmi2"}


@pytest.fixture(scope="module")
def cluster():
    with slurm_support.running() as cluster:
        yield cluster


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """Folder of checked-MPI and signalled-MPI."""
    folder = tmp_path_factory.mktemp("slurm")
    for mpi in PMI:
        require(paths().lib / f"liboffpath_mpi_{mpi}.so")
        for name in ("checked", "signalled"):
            command = [f"mpicc.{mpi}", "-w", "-O1", str(PROGRAMS / f"{name}.c"), "-o", str(folder / f"{name}-{mpi}")]
            subprocess.run(command, check=True)
    return folder


def srun(mpi, *command, nodes="2", tasks="2"):
    return ["srun", "--quiet", f"--mpi={PMI[mpi]}", "-N", nodes, "-n", tasks, *command]


def text(*commands):
    """Commands as lines of a script."""
    return "\n".join(" ".join(f"'{word}'" if "*" in word else word for word in words) for words in commands)


def assert_offloaded(result, statistics, mpi, jobs=1):
    """Right results, and both ranks of each job had collectives and windows offloaded; one line for each job."""
    assert result.returncode == 0, result.stdout + result.stderr
    assert sorted(result.stdout.splitlines()) == sorted(["0 of 2: right", "1 of 2: right"] * jobs), result.stderr
    said = f"offpath: 2 ranks on 2 nodes ({TITLES[mpi]}"
    assert result.stderr.count(said) == result.stderr.count("offpath") == jobs, result.stderr
    ranks = stats.read(statistics)
    assert len(ranks) == 2 * jobs
    assert all(rank["offloaded_count"] == 6 and rank["windows"]["operations_count"] > 0 for rank in ranks), ranks


def around_and_inside(form, mpi, built, statistics):
    command = [*SHARE, "--stats", str(statistics), "--"]
    program = str(built / f"checked-{mpi}")
    return [*command, *srun(mpi, program)] if form == "around" else srun(mpi, *command, program)


@pytest.mark.parametrize("form, mpi", (("around", "openmpi"), ("inside", "mpich")))
def test_around_or_inside_srun(cluster, built, form, mpi, tmp_path):
    """Inside, MPICH's ranks talk to srun over a descriptor that they inherit through `offpath run`."""
    result = cluster.run(around_and_inside(form, mpi, built, tmp_path / "s"), tmp_path)
    assert_offloaded(result, tmp_path / "s", mpi)
    cluster.assert_clean()


@pytest.mark.nightly
@pytest.mark.parametrize("form, mpi", (("around", "mpich"), ("inside", "openmpi")))
def test_the_other_form_each(cluster, built, form, mpi, tmp_path):
    test_around_or_inside_srun(cluster, built, form, mpi, tmp_path)


@pytest.mark.grid(1)
@pytest.mark.parametrize("mpi", PMI)
def test_each_mpis_own_mpirun_in_a_job(cluster, built, mpi, tmp_path):
    command = [*SHARE, "--stats", "s", "--", f"mpirun.{mpi}", "-np", "2", str(built / f"checked-{mpi}")]
    cluster.batch(text(command), tmp_path, "-N2", "-n2", "--output=out", "--error=err")
    result = subprocess.CompletedProcess(command, 0, (tmp_path / "out").read_text(), (tmp_path / "err").read_text())
    assert_offloaded(result, tmp_path / "s", mpi)
    cluster.assert_clean()


def test_steps_after_and_beside_each_other_and_array_jobs(cluster, built, tmp_path):
    """Each step has services of its own, also beside others on the same nodes."""
    step = [*SHARE, "--stats", "$SLURM_ARRAY_TASK_ID.s", "--"]
    steps = [[*step, *srun(mpi, str(built / f"checked-{mpi}"))] for mpi in PMI]
    beside = [[*step, *srun("mpich", "--overlap", str(built / "checked-mpich")), "&"]] * 2
    script = text(*steps, *beside, ["wait"])
    cluster.batch(script, tmp_path, "-N2", "-n2", "--array=0-1", "--output=%a.out", "--error=%a.err")
    for task in "01":
        said, errors = ((tmp_path / f"{task}.{name}").read_text() for name in ("out", "err"))
        assert sorted(said.splitlines()) == sorted(["0 of 2: right", "1 of 2: right"] * 4), errors
        assert errors.count("offpath: 2 ranks on 2 nodes") == errors.count("offpath") == 4, errors
        assert len(set(re.findall(r", step (\d+\.\d+)\): 12 collectives, 12 offloaded", errors))) == 4, errors
        ranks = stats.read(tmp_path / f"{task}.s")
        assert len(ranks) == 8 and len({rank["service_pid"] for rank in ranks}) == 8
        assert all(rank["offloaded_count"] == 6 for rank in ranks)
    cluster.assert_clean()


def test_a_second_start_disturbs_nobody(cluster, tmp_path):
    """Neither of a Slurm that is up nor of one that is on its way."""
    configuration = slurm.home(cluster.lab.plan) / "slurm.conf"
    for said in ("Slurm is up", "was begun"):
        with pytest.raises(UserError, match=said):
            slurm.up(cluster.lab)
        if said == "Slurm is up":
            configuration.rename(tmp_path / "slurm.conf")
    (tmp_path / "slurm.conf").rename(configuration)
    assert cluster.run(["srun", "--quiet", "-N2", "-n2", "true"], tmp_path).returncode == 0


def test_a_pytorch_program_that_srun_starts(cluster, tmp_path):
    """offpath.torch.init_process_group() finds its ranks on two nodes; nothing but Slurm says where they are. Their
    secret lets them meet."""
    program = [torch_support.interpreter(), str(PROGRAMS / "torch_group.py"), str(SEED), "launched"]
    wanted = ("PYTHONPATH", "OMP_NUM_THREADS", "OFFPATH_SERVICE_SHARE")
    own = {name: torch_support.environment()[name] for name in wanted} | {"GLOO_SOCKET_IFNAME": "eth0"}
    own["OFFPATH_JOB_SECRET"] = secrets.token_hex(16)
    result = succeeded(cluster.run(["srun", "--quiet", "-N2", "-n2", *program], tmp_path, own))
    assert sorted(result.stdout.splitlines()) == [f"rank {rank} of 2: the same" for rank in range(2)], result.stderr
    cluster.assert_clean()


def test_tune_in_a_job_and_a_run_that_uses_it(cluster, built, tmp_path):
    """Slurm says which cluster it is. The rows hold for the MPI they were measured with, and for jobs there only."""
    tune = [str(ROOT / "offpath"), "tune", "--launch", "'srun --quiet --mpi=pmi2'", "--mpi", "mpich", "--share",
            "--runs", "1", "--repeats", "1", "--collectives", "ialltoall", "--sizes", "4K"]  # fmt: skip
    kept = tmp_path / "offpath" / "clusters" / cluster.lab.name / "mpich" / "policy"
    use = [str(ROOT / "offpath"), "run", "--share", "--", *srun("mpich", str(built / "checked-mpich"))]
    script = text(tune, ["cp", str(kept), "rows"], ["echo", "'*:dpu'", f">{kept}"], use)
    environment = f"export XDG_CONFIG_HOME={tmp_path} OFFPATH_POLICY_FILE=\n"
    cluster.batch(environment + script, tmp_path, "-N2", "-n2", "--output=out", "--error=err")
    said = (tmp_path / "err").read_text()
    assert f"measuring on 2 nodes of cluster {cluster.lab.name}: node1, node2" in said
    assert "12 collectives, 12 offloaded" in said, said
    rows = (tmp_path / "rows").read_text().splitlines()
    assert f"# cluster {cluster.lab.name}: 2 x 1 ranks" in rows[1] and "MPICH" in rows[1], rows
    assert "ialltoall:0-inf:nodes=2:host" in rows
    cluster.assert_clean()


@pytest.mark.nightly
def test_calibrate_in_a_job(cluster, built, tmp_path):
    for mpi, pmi in PMI.items():
        launch = f"srun --quiet --mpi={pmi} --cpu-bind=none"
        command = [str(ROOT / "offpath"), "calibrate", "--launch", launch, "--mpi", mpi, "--share", "--launches", "1"]
        result = cluster.run(["salloc", "-N2", "-n2", *command], tmp_path, {"XDG_CONFIG_HOME": str(tmp_path)})
        assert result.returncode == 0, result.stderr
        found = json.loads((tmp_path / "offpath/clusters" / cluster.lab.name / mpi / "machine.json").read_text())
        assert found["environment"]["node_names"] == ["node1", "node2"] and found["native"]["family"] == mpi
    inside = cluster.run(srun(mpi, *command, nodes="1", tasks="1"), tmp_path)
    assert inside.returncode != 0 and "inside a step of the job" in inside.stderr, inside.stderr
    one = cluster.run(["salloc", "-N1", "-n1", *command], tmp_path)
    assert one.returncode != 0 and "Ask for two nodes" in one.stderr, one.stderr
    many = cluster.run(srun(mpi, *command), tmp_path)
    assert many.returncode != 0 and "once for each rank" in many.stderr, many.stderr
    cluster.assert_clean()


DOCUMENTED = re.findall(
    r"^```sh\n(#!/bin/bash\n#SBATCH.*?)^```", (ROOT / "docs" / "job-scripts.md").read_text(), re.DOTALL | re.MULTILINE
)


def test_the_documented_job_scripts(cluster, built, tmp_path):
    """Of docs/job-scripts.md, with one rank a node, and a core for each that the service takes."""
    scripts = [script for script in DOCUMENTED if "offpath run" in script]
    assert len(scripts) >= 3
    for number, script in enumerate(scripts):
        folder = tmp_path / str(number)
        folder.mkdir()
        script = re.sub(r"--ntasks-per-node=\d+", "--ntasks-per-node=1", script)
        script = script.replace("./my_mpi_program", str(built / "checked-mpich")).replace("mpirun", "mpirun.mpich")
        script = script.replace("offpath run", text([*SHARE, "--stats", "s"]))
        cluster.batch(script.removeprefix("#!/bin/bash\n"), folder, "--output=out", "--error=err")
        said = [(folder / name).read_text() if (folder / name).exists() else "" for name in ("out", "err")]
        result = subprocess.CompletedProcess(script, 0, said[0], re.sub(r"offpath: \d+ operations.*\n", "", said[1]))
        assert_offloaded(result, folder / "s", "mpich")
    cluster.assert_clean()


def start_waiting(cluster, built, folder, mpi, *options):
    """A job whose ranks are attached and wait for ever; its number."""
    (folder / "out").touch()
    command = [*SHARE, "--", *srun(mpi, str(built / f"signalled-{mpi}"), "for ever")]
    job = cluster.batch(text(command).replace("for ever", "forever"), folder, "-N2", "-n2", "--output=out", *options,
                        wait=False)  # fmt: skip
    until(lambda: (folder / "out").read_text().count("ready") == 2, (folder / "out").read_text)
    assert len(cluster.services()) == len(cluster.sockets()) == 2
    return job


def files(folder):
    return sorted(file.name for file in folder.iterdir())


@pytest.mark.parametrize("signal, mpi", (("TERM", "openmpi"), pytest.param("KILL", "mpich", marks=pytest.mark.nightly)))
def test_an_ended_job_leaves_no_process_and_no_file_for_long(cluster, built, signal, mpi, tmp_path):
    """As by scancel. With control groups nothing of ours may live on to remove a file: the next job does."""
    job = start_waiting(cluster, built, tmp_path, mpi)
    assert cluster.run(["scancel", *(["--signal=KILL"] if signal == "KILL" else []), job], tmp_path).returncode == 0
    cluster.await_end()
    succeeded(cluster.run([*SHARE, "--", *srun("mpich", str(built / "checked-mpich"))], tmp_path))
    cluster.assert_clean()
    assert files(tmp_path) == ["job.sh", "out"]


@pytest.fixture
def epilog(tmp_path):
    """That of the guide."""
    guide = (ROOT / "docs" / "guide-slurm.md").read_text()
    file = tmp_path / "epilog"
    file.write_text(re.findall(r"```sh\n(.*?)```", guide, re.DOTALL)[1])
    file.chmod(0o755)
    return file


@requires_root
def test_the_epilog_removes_nothing_of_anybody_else(epilog, tmp_path):
    """It runs as root, and a user may lead it to another folder."""
    user = 10**9 + secrets.randbelow(10**9)
    folder, other = Path(f"/tmp/offpath-{user}"), tmp_path / "other"
    other.mkdir()

    def left(where):
        (where / "dead.sock").touch()
        subprocess.run([epilog], env=os.environ | {"SLURM_JOB_UID": str(user)}, check=True)
        return sorted(file.name for file in where.iterdir())

    folder.symlink_to(other)
    try:
        assert left(other) == ["dead.sock"]
    finally:
        folder.unlink()
    folder.mkdir()
    try:
        os.chown(folder, user, -1)
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listening:
            listening.bind(str(folder / "live.sock"))
            assert left(folder) == ["live.sock"]
    finally:
        shutil.rmtree(folder)


@pytest.mark.nightly
def test_a_job_that_runs_out_of_time_is_ended_and_an_epilog_removes_its_sockets(built, epilog, tmp_path):
    (tmp_path / "work").mkdir()
    with slurm_support.running([f"Epilog={epilog}"]) as cluster:
        start_waiting(cluster, built, tmp_path / "work", "openmpi", "--time=0:01")  # Slurm's shortest is a minute
        cluster.await_end()
        until(lambda: not cluster.sockets(), lambda: f"sockets are left: {cluster.sockets()}")  # an epilog comes last
    assert "DUE TO TIME LIMIT" in (tmp_path / "work" / "out").read_text()


@pytest.mark.grid(1)
@pytest.mark.parametrize("form, mpi", (("around", "openmpi"), ("inside", "mpich")))
def test_a_signal_reaches_the_program_and_disturbs_nobody(cluster, built, form, mpi, tmp_path):
    program = str(built / f"signalled-{mpi}")
    command = [*SHARE, "--", *srun(mpi, program)] if form == "around" else srun(mpi, *SHARE, "--", program)
    (tmp_path / "out").touch()
    job = cluster.batch(text(command), tmp_path, "-N2", "-n2", "--output=out", wait=False)
    until(lambda: (tmp_path / "out").read_text().count("ready") == 2, (tmp_path / "out").read_text)
    assert cluster.run(["scancel", "--signal=USR1", job], tmp_path).returncode == 0
    cluster.assert_clean()
    said = (tmp_path / "out").read_text()
    assert said.count("saved") == 2 and "4 collectives, 4 offloaded" in said, said
    assert files(tmp_path) == ["job.sh", "out"]


def cores_said(result):
    """The service's cores on the first rank's node, and the line at the end."""
    found = re.search(r"service cores of node1: ([\d,]+)", result.stderr)
    closing = [line for line in result.stderr.splitlines() if line.startswith("offpath: ")]
    return found[1] if found else None, closing[0] if len(closing) == 1 else result.stderr


def test_the_service_has_the_cores_that_the_step_leaves(cluster, built, tmp_path):
    told, program = {"OFFPATH_LOG": "info"}, str(built / "checked-mpich")
    if cluster.has_groups:
        result = cluster.run(srun("mpich", *OFFPATH, "--cores", "1", "--", program), tmp_path)
        assert "cannot run on cores 1" in result.stderr and result.stdout.count("right") == 2, result.stderr
    whole = ["salloc", "--quiet", "-N2", "-n2", "--exclusive"]
    for allocation, options in (([], ["-c2"]), (whole, [])):
        step = srun("mpich", *options, *OFFPATH, "--", program)
        said, line = cores_said(cluster.run([*allocation, *step], tmp_path, told))
        assert said == "1" and "12 offloaded" in line, (options, line)
    inside = [*OFFPATH, "--", program]
    for command in (srun("mpich", *inside), [*OFFPATH, "--", *srun("mpich", program)],
                    srun("mpich", "--core-spec=1", *inside)):  # fmt: skip
        said, line = cores_said(cluster.run(command, tmp_path, told))
        assert said is None and "12 native: no spare core on host node1" in line, line
    cluster.assert_clean()


def test_what_srun_does_not_hand_on(cluster, built, tmp_path):
    step = srun("openmpi", "--export=PATH", str(built / "checked-openmpi"))
    result = cluster.run([*SHARE, "--stats", "s", "--", *step], tmp_path, {"XDG_RUNTIME_DIR": "/run/user/4711"})
    assert_offloaded(result, tmp_path / "s", "openmpi")


def test_several_programs_in_one_step(cluster, built, tmp_path):
    (tmp_path / "programs").write_text(f"0 {built}/checked-mpich of the first\n1 {built}/checked-mpich other\n")
    result = cluster.run([*SHARE, "--stats", "s", "--", *srun("mpich", "--multi-prog", "programs")], tmp_path)
    assert_offloaded(result, tmp_path / "s", "mpich")


@pytest.mark.grid(1)
@pytest.mark.parametrize("form", ("around", "inside"))
def test_ranks_that_do_not_find_each_other_are_told(cluster, built, form, tmp_path):
    """MPICH over PMIx, which it does not speak."""
    command = around_and_inside(form, "mpich", built, tmp_path / "s")
    result = cluster.run(["--mpi=pmix" if word == "--mpi=pmi2" else word for word in command], tmp_path)
    assert sorted(result.stdout.splitlines()) == ["0 of 1: right"] * 2, result.stderr
    assert "2 processes ran as 2 jobs of one rank each" in result.stderr and "srun --mpi=pmi2" in result.stderr


@pytest.mark.nightly
@pytest.mark.parametrize("around", (True, False))
def test_open_mpi_without_its_pmi_ends_as_without_us(cluster, built, around, tmp_path):
    step = ["srun", "--quiet", "--mpi=pmi2", "-N2", "-n2", str(built / "checked-openmpi")]
    result = cluster.run([*SHARE, "--", *step] if around else step, tmp_path)
    assert result.returncode != 0 and "right" not in result.stdout
    assert ("no rank reported" in result.stderr and "srun --mpi=list" in result.stderr) == around


@pytest.mark.nightly
def test_more_ranks_than_a_node_has(cluster, built, tmp_path):
    program = str(built / "checked-mpich")
    result = cluster.run([*SHARE, "--", *srun("mpich", program, nodes="1", tasks="3")], tmp_path)
    assert result.returncode != 0 and "node configuration is not available" in result.stderr
    step = srun("mpich", "--overcommit", program, nodes="1", tasks="3")
    result = cluster.run([*SHARE, "--", *step], tmp_path)
    assert result.returncode == 0 and "3 ranks on 1 node" in result.stderr, result.stderr
    cluster.assert_clean()


@pytest.mark.nightly
def test_without_control_groups(built, tmp_path):
    """The process that starts the ranks is not bound to the job's cores then; the service keeps to them, too."""
    settings = ["ProctrackType=proctrack/linuxproc", "TaskPlugin=task/affinity"]
    with slurm_support.running(settings) as cluster:
        cluster.has_groups = False
        test_the_service_has_the_cores_that_the_step_leaves(cluster, built, tmp_path)
        test_an_ended_job_leaves_no_process_and_no_file_for_long(cluster, built, "TERM", "mpich", tmp_path)


@pytest.mark.nightly
def test_a_heterogeneous_job(built, tmp_path):
    """Its parts are one MPI job, also as programs of one step that have options of their own."""
    settings = ["SchedulerType=sched/backfill", "SchedulerParameters=bf_interval=1,sched_interval=1"]
    job, share = ["salloc", "--quiet", "-n1", ":", "-n1"], [*SHARE, "--stats", "s", "--"]
    step, program = ["srun", "--quiet", "--mpi=pmi2", "--het-group=0,1"], str(built / "checked-mpich")
    alone = ["srun", "--quiet", "--mpi=pmi2", "-n1", program, ":", "-n1", "--export=HOME"]
    with slurm_support.running(settings) as cluster:
        for number, command in enumerate(([*job, *share, *step], [*job, *step, *share], [*share, *alone])):
            folder = tmp_path / str(number)
            folder.mkdir()
            result = cluster.run([*command, program], folder)
            assert_offloaded(result, folder / "s", "mpich")
        cluster.assert_clean()


@pytest.mark.nightly
def test_a_job_may_have_a_tmp_of_its_own(built, tmp_path):
    """job_container/tmpfs, on three nodes."""
    base = f"AutoBasePath=true\nBasePath={tmp_path}/containers\n"
    settings = ["JobContainerType=job_container/tmpfs", "PrologFlags=Contain"]
    with slurm_support.running(settings, {"job_container.conf": base}, nodes=3) as cluster:
        for form, mpi in (("around", "openmpi"), ("inside", "mpich")):
            (tmp_path / mpi).mkdir()
            result = cluster.run(around_and_inside(form, mpi, built, tmp_path / mpi / "s"), tmp_path / mpi)
            assert_offloaded(result, tmp_path / mpi / "s", mpi)
        cluster.assert_clean()


@pytest.mark.nightly
def test_the_guide_runs(built, tmp_path):
    """All of its commands, in its order, on a lab of our own."""
    guide = (ROOT / "docs" / "guide-slurm.md").read_text()
    name = f"t{uuid.uuid4().hex[:6]}"
    script = re.search(r"```sh\n(.*?)```", guide, re.DOTALL)[1]
    script = script.replace("offpath run", f"{ROOT}/offpath run")  # PATH is not exported, either
    (tmp_path / "job.sh").write_text(script)
    (tmp_path / "my_mpi_program").symlink_to(built / "checked-mpich")
    (tmp_path / "offpath").symlink_to(ROOT / "offpath")
    environment = os.environ | slurm_support.AS_ROOT | {"PATH": f"{ROOT}:{os.environ['PATH']}"}

    def run(words):
        result = captured(words, cwd=tmp_path, env=environment)
        assert result.returncode == 0, (words, result.stderr)
        return result.stdout + result.stderr

    def of_lab(*words):
        named = [name] if words[-1] == "down" or words[-2:] == ("slurm", "up") else ["--name", name]
        place = words.index("--") if "--" in words else len(words)
        return run([str(ROOT / "offpath"), "lab", *words[:place], *named, *words[place:]])

    commands = re.findall(r"^    (\S.*)$", re.sub(r"```.*?```", "", guide, flags=re.DOTALL), re.MULTILINE)
    assert len(commands) == 16
    # The first ones need the lab, too.
    lab, others = ([command for command in commands if command.startswith("./") == is_lab] for is_lab in (True, False))
    try:
        of_lab("up")
        of_lab("slurm", "up")
        for command in others:
            (tmp_path / "job.out").unlink(missing_ok=True)
            said, expected = of_lab("slurm", "run", "--", "sh", "-c", command), 1
            if command.startswith("sbatch"):
                until(lambda: not of_lab(*QUEUE).strip(), lambda: "the job does not end")
                said, expected = (tmp_path / "job.out").read_text(), 8 if "--array" in command else 4
            assert said.count("0 of 2: right") == said.count("2 ranks on 2 nodes (MPICH") == expected, (command, said)
        of_lab("down")
        for command in lab:
            of_lab(*shlex.split(command)[2:])
    finally:
        subprocess.run([str(ROOT / "offpath"), "lab", "down", name], capture_output=True)
