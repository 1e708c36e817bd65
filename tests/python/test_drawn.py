# SPDX-License-Identifier: BSD-3-Clause
"""What `make test` leaves out for a change is run for another one, and what exists once is always run."""

import re

from conftest import ROOT
from drawn import left_out

ONCE = ["api.Team.Splits", "engine_test.tcp", "interpose.mpich.real.many", "interpose.none.real.plain"]
GROUPS = ["interpose.MPI.real.calls", "interpose.MPI.real.rma", "interpose.MPI.fake.faults"]
TWINS = [group.replace("MPI", mpi) for group in GROUPS for mpi in ("openmpi", "mpich")]
AGAIN = [f"api.{how}.{suite}" for how in ("agent", "workers") for suite in ("team", "window", "atomic")]


def drawn(number):
    return set(ONCE + TWINS + AGAIN) - set(left_out(ONCE + TWINS + AGAIN, number))


def test_what_exists_once_is_always_run_and_of_twins_one():
    for number in range(50):
        assert drawn(number) >= set(ONCE)
        ran = [re.sub("openmpi|mpich", "MPI", name) for name in drawn(number) & set(TWINS)]
        assert sorted(ran) == sorted(GROUPS)
        assert len(drawn(number) & set(AGAIN)) == 3


def test_other_changes_run_the_others_and_the_same_one_the_same():
    assert set().union(*map(drawn, range(50))) == set(ONCE + TWINS + AGAIN)
    assert drawn(1) == drawn(1) and any(drawn(1) != drawn(other) for other in range(2, 9))


def test_make_test_leaves_that_out_and_make_nightly_does_not():
    assert "left_out=$(.venv/bin/python tests/python/drawn.py build/release)" in (ROOT / "tools/test").read_text()
    assert '-E "$left_out"' in (ROOT / "tools/test").read_text()
    assert "left_out" not in (ROOT / "tools/nightly").read_text()
