# SPDX-License-Identifier: BSD-3-Clause
"""PyTorch programs whose tensors the service moves."""

import re

import pytest
from conftest import PROGRAMS, ROOT, SEED, captured, succeeded
from torch_support import environment, free_port, interpreter, other_torch, run_ranks


def test_the_backend_does_what_torch_promises():
    assert [words.splitlines()[-1] for words in run_ranks("torch_group.py", 2, str(SEED))] == [
        f"rank {rank} of 2: the same" for rank in range(2)
    ]


@pytest.mark.parametrize("launcher", ["torchrun", "mpirun"])
def test_launchers_find_the_ranks(launcher):
    """As users start programs: nothing but the launcher says who is who."""
    # PyTorch 1.13 under Python 3.11 does not know the way of output that is its default.
    torchrun = ["-m", "torch.distributed.run", "--nproc_per_node", "2", "--redirects", "2", "--tee", "1"]
    command = [*torchrun, "--master_port", str(free_port())] if launcher == "torchrun" else []
    before = ["mpirun.mpich", "-np", "2"] if launcher == "mpirun" else []
    done = succeeded(captured(
        [*before, interpreter(), *command, str(PROGRAMS / "torch_group.py"), str(SEED), "launched"], env=environment()
    ))
    assert all(f"rank {rank} of 2: the same" in done.stdout for rank in range(2))


def test_a_rank_that_dies_is_an_error_of_the_others():
    said = run_ranks("torch_group.py", 3, str(SEED), "dies")
    for rank in (0, 2):
        assert f"rank {rank}: " in said[rank] and "lost" in said[rank]


def test_a_program_may_end_while_works_are_not_over():
    assert [words.splitlines() for words in run_ranks("torch_leaves.py", 2)] == [[f"rank {r}: left"] for r in range(2)]


def test_futures_are_told_whatever_others_wait_for():
    assert [words.splitlines()[-1] for words in run_ranks("torch_futures.py", 2)] == ["rank 0: told", "rank 1: told"]


@pytest.mark.parametrize("what, ranks", [("grid", 4), ("again", 2), ("alone", 2)])
def test_groups_meet_whatever_was_before(what, ranks, tmp_path):
    said = run_ranks("torch_groups.py", ranks, what, str(tmp_path / "state"))
    assert [words.splitlines()[-1] for words in said] == [f"rank {rank}: met" for rank in range(ranks)]


def test_executors_make_batches_and_validations_as_the_program_would(tmp_path):
    assert run_ranks("torch_training.py", 1, str(tmp_path)) == ["the same\n"]


def test_what_executors_cannot_do_is_done_here_or_says_why():
    assert run_ranks("torch_misfits.py", 1, "here") == ["right\n"]


@pytest.mark.parametrize(
    "there, words",
    [
        ("no service", ["the service's executors cannot be used", "NoServiceError"]),
        ("another torch", ["they have", "PyTorch 0.4.1", "this process has"]),
        pytest.param("no torch", ["ImportError", "torch"], marks=pytest.mark.nightly),
    ],
)
def test_executors_that_are_not_as_the_program_is(there, words, tmp_path):
    """Samples are made and validations done in place, after one line that says why."""
    if there == "no service":
        env = {"OFFPATH_SERVICE_PATH": str(tmp_path / "nowhere")}
    else:
        env = {"OFFPATH_TASK_PYTHON": str(other_torch(tmp_path, there))}
    assert run_ranks("torch_misfits.py", 1, there, *words, env=env) == ["right\n"]


def test_the_guides_programs_run(tmp_path):
    programs = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "guide-torch.md").read_text(), re.DOTALL)
    paths = [tmp_path / f"program{number}.py" for number in range(len(programs))]
    for path, text in zip(paths, programs, strict=True):
        path.write_text(text)
    gradients, _, pictures = paths  # the middle one wants a newer PyTorch: test_torch_sharded.py
    said = run_ranks(str(gradients), 2)
    assert [words.splitlines()[-1] for words in said] == [f"rank {rank} of 2: [3.0, 3.0]" for rank in range(2)]
    (tmp_path / "pictures.py").write_text(pictures.read_text().partition("# train.py\n")[0])
    (tmp_path / "train.py").write_text(pictures.read_text().partition("# train.py\n")[2])
    (said,) = run_ranks(str(tmp_path / "train.py"), 1)
    assert said.splitlines()[-1].startswith("validated: [")
