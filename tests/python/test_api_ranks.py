# SPDX-License-Identifier: BSD-3-Clause
"""Teams of processes, started in all the ways that offpath.init() knows."""

import shutil
import subprocess
import sys

import pytest
from api_support import LAUNCHERS, environment, finish, ranks, start  # noqa: F401
from conftest import PROGRAMS, captured, succeeded
from test_api_rendezvous import free_port


def assert_all_is_right(text, size):
    for rank in range(size):
        assert f"rank {rank} of {size}: " in text, text


def all_of(processes):
    out = [finish(process) for process in processes]
    assert [process.returncode for process in processes] == [0] * len(processes), out
    assert_all_is_right("".join(text for text, _ in out), len(processes))


@pytest.mark.parametrize("mpi, size", [("openmpi", 3), ("mpich", 4)])
def test_under_mpirun(mpi, size, environment):  # noqa: F811
    result = succeeded(captured(
        [*LAUNCHERS[mpi], "-np", str(size), sys.executable, "team.py"], env=environment, cwd=PROGRAMS
    ))
    assert_all_is_right(result.stdout, size)


def test_with_mpi4py(environment):  # noqa: F811
    """Debian's, which is Open MPI's and for Debian's Python; NumPy is ours."""
    if subprocess.run(["/usr/bin/python3", "-c", "import mpi4py"], capture_output=True).returncode != 0:
        pytest.skip("there is no mpi4py")
    folders = [path for path in sys.path if path.endswith("site-packages")]
    debian = environment | {"PYTHONPATH": ":".join([environment["PYTHONPATH"], *folders])}
    command = [*LAUNCHERS["openmpi"], "-np", "3", "/usr/bin/python3", "team.py", "mpi4py"]
    result = succeeded(captured(command, env=debian, cwd=PROGRAMS))
    assert_all_is_right(result.stdout, 3)


def test_as_torchrun_starts_them(environment):  # noqa: F811
    all_of(ranks(environment, 2, "team.py"))


def test_by_tcp_and_by_a_store_of_the_program(environment, tmp_path):  # noqa: F811
    nodes = {"LOCAL_WORLD_SIZE": "", "MASTER_PORT": str(free_port() - 1), "OFFPATH_JOB_SECRET": "sixteen or more!"}
    all_of(ranks(environment, 2, "team.py", **nodes))
    plain = [start(environment, "team.py", "store", str(tmp_path / "meet"), str(rank), "2") for rank in range(2)]
    all_of(plain)


def test_alone(environment):  # noqa: F811
    all_of([start(environment, "team.py")])


def test_who_does_not_come_is_named(environment):  # noqa: F811
    one = ranks(environment, 3, "-c", "import offpath; offpath.init(timeout=10)")
    one[1].kill()
    for process in (one[0], one[2]):
        _, error = finish(process)
        assert "offpath.api.failures.WaitTimeout: rank 1 of 3 did not come within 10 s" in error, error
    finish(one[1])


DIES = """
import os, sys, time, numpy, offpath
team = offpath.init()
team.barrier()
if team.rank == 1:
    os.kill(os.getpid(), 9)
try:
    while True:
        team.allreduce(numpy.ones(1000))
except offpath.LostError as error:
    print(type(error).__name__, error)
# Whoever ends first is lost to the other one, too.
assert team.broken and team.lost()[1] == "process" and set(team.lost().values()) == {"process"}, team.lost()
try:
    team.barrier()
except offpath.NotStartedError as error:
    print(error)
"""


def test_a_member_that_dies(environment):  # noqa: F811
    processes = ranks(environment, 3, "-c", DIES)
    out = [finish(process) for process in processes]
    assert [process.returncode for process in processes] == [0, -9, 0], out
    for text, _ in (out[0], out[2]):
        assert "LostError allreduce #" in text or "NotStartedError" in text
        assert "barrier on member" in text


ENDS = """
import sys, time, numpy, offpath
team = offpath.init()
op = team.iallreduce(numpy.ones(100000))
if team.rank == 1 and "raise" in sys.argv:
    raise KeyError("of the program")
if team.rank == 0:
    time.sleep(0.2)
op.wait()
print("well")
"""


def test_a_program_that_just_ends_waits_for_the_others(environment):  # noqa: F811
    for text, error in [finish(process) for process in ranks(environment, 2, "-c", ENDS)]:
        assert (text, error) == ("well\n", "")


def test_a_program_that_fails_waits_for_nobody(environment):  # noqa: F811
    """The others hear that it was lost."""
    (_, first), (_, second) = [finish(process) for process in ranks(environment, 2, "-c", ENDS, "raise")]
    assert "KeyError: 'of the program'" in second
    assert first == "" or "LostError" in first or "NotStartedError" in first, first


def test_without_numpy(environment, tmp_path):  # noqa: F811
    """What needs no arrays of its own works in a Python that has none."""
    code = (
        "import sys; sys.modules['numpy'] = None\nimport offpath, array\n"
        "with offpath.init() as team:\n    got = array.array('d', bytes(8))\n"
        "    team.allreduce(array.array('d', [2.5]), got); print(got[0])\n"
        "    team.split(0).barrier()\n"
    )
    text, error = finish(start(environment, "-c", code))
    assert text == "2.5\n", error


@pytest.mark.skipif(shutil.which("python3.9") is None, reason="there is no Python 3.9")
def test_on_the_oldest_python(environment):  # noqa: F811
    code = "import offpath, array; x = array.array('i', [3])\nwith offpath.init() as t: t.allreduce(x, x); print(x[0])"
    result = captured(["python3.9", "-c", code], env=environment)
    if "command not found" in result.stderr:
        pytest.skip("there is no Python 3.9")
    assert result.stdout == "3\n", result.stderr
