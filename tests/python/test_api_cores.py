# SPDX-License-Identifier: BSD-3-Clause
"""On which cores the service of a C or Python program is: those that no rank of its job here is bound to."""

import os
import sys

import pytest
from api_support import environment  # noqa: F401
from conftest import PROGRAMS, captured, succeeded

CORES = sorted(os.sched_getaffinity(0))
pytestmark = pytest.mark.skipif(len(CORES) < 2, reason="needs two cores")
NONE = "no core is left"


@pytest.mark.parametrize(
    "ranks, served",
    [
        (["0,1"], "1"),  # one that is not bound: it has the first
        (["0"], "1"),
        (["1"], "0"),
        (["0", "0"], "1"),
        (["0", "1"], NONE),  # each takes the core that the other is not bound to, if it does not look
        (["0", "+1"], NONE),
        (["/0", "/0"], "1"),
        (["0,1", "0"], NONE),
        (["0,1", "0,1"], NONE),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_cores_of_the_service(ranks, served, environment):  # noqa: F811
    two = ",".join(map(str, CORES[:2]))
    named = ["".join(str(CORES[int(c)]) if c.isdigit() else c for c in rank) for rank in ranks]
    env = {name: value for name, value in environment.items() if name != "OFFPATH_SERVICE_SHARE"}
    words = [sys.executable, str(PROGRAMS / "cores.py"), two, *named]
    done = succeeded(captured(words, env=env))
    found = [NONE if NONE in line else line for line in done.stdout.splitlines()]
    assert found == [served if served == NONE else str(CORES[int(served)])], done.stdout
