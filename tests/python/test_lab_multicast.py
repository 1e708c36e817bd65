# SPDX-License-Identifier: BSD-3-Clause
"""The algorithm multicast in a lab: each byte leaves its node once; what a queue drops is fetched; without a group it
is a ring."""

import subprocess
import uuid

import pytest
from conftest import LIMIT_S, requires_root
from offpath.lab import Lab
from offpath.lab.counters import link_bytes
from offpath.lab.plan import HEAD, namespace
from offpath.paths import paths

pytestmark = requires_root
NODES = 4
BYTES = 1 << 20
RIGHT_RATE, TOO_FAST = "230000000", "4000000000"


@pytest.fixture(scope="module")
def lab():
    with Lab(nodes=NODES, rate="250mbit", name=f"t{uuid.uuid4().hex[:6]}") as lab:
        yield lab


def copies_sent(lab, mpi, collective, rate):
    """How often each node has sent its part, over all operations; the program has compared every byte."""
    bench = paths().bench / mpi / "collectives"
    argv = [str(bench), "--verify", "--repeats", "2", "--warmup", "0", "--work-ns", "1000", "--sizes", str(BYTES)]
    env = {"OFFPATH_POLICY": f"{collective}:0-inf:dpu=multicast", "OFFPATH_MULTICAST_RATE": rate}
    before = link_bytes(lab.plan)
    result = lab.mpirun(mpi, 1, [*argv, "--collective", collective], offload=True, env=env, timeout=LIMIT_S)
    assert result.returncode == 0, result.stderr
    assert all(rank["offloaded_count"] > 0 and rank["failed_count"] == 0 for rank in result.stats)
    operations = result.stats[0]["offloaded_count"]
    part = BYTES if collective == "ibcast" else BYTES // NODES
    return [after.since(then).up / operations / part for then, after in zip(before, link_bytes(lab.plan))]


def test_each_byte_leaves_its_node_once(lab):
    assert max(copies_sent(lab, "mpich", "iallgather", RIGHT_RATE)) < 1.6  # with all that the launcher says; a ring: 3
    assert max(copies_sent(lab, "openmpi", "iallgatherv", RIGHT_RATE)) < 1.6
    copies = copies_sent(lab, "openmpi", "ibcast", RIGHT_RATE)
    assert copies[0] < 1.6 and max(copies[1:]) < 0.5  # a chain: 1 for all but the last


@pytest.mark.parametrize("collective", ("ibcast", "iallgather"))
def test_what_a_full_queue_drops_is_fetched(lab, collective):
    """Sent faster than the links are: the switch drops what they do not take."""
    copies_sent(lab, "openmpi", collective, TOO_FAST)


def test_where_a_node_does_not_hear_the_group_it_is_a_ring(lab):
    head = namespace(lab.plan.name, HEAD)
    flood = ["bridge", "-n", head, "link", "set", "dev", "port2", "mcast_flood"]
    subprocess.run([*flood, "off"], check=True)
    try:
        assert min(copies_sent(lab, "openmpi", "iallgather", RIGHT_RATE)) > 2.9
        copies_sent(lab, "mpich", "ibcast", RIGHT_RATE)
    finally:
        subprocess.run([*flood, "on"], check=True)
