# SPDX-License-Identifier: BSD-3-Clause
"""The algorithm multicast in a lab: each byte leaves its node once; what a queue drops is fetched; without a group it
is a ring."""

import contextlib
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import uuid
from pathlib import Path

import pytest
from conftest import LIMIT_S, captured, requires_root, succeeded
from offpath.base.paths import paths
from offpath.lab import Lab, inventory
from offpath.lab.counters import link_bytes
from offpath.lab.plan import HEAD, Loss, namespace

pytestmark = requires_root
NODES = 4
BYTES = 1 << 20
RIGHT_RATE, TOO_FAST = "230000000", "4000000000"


@pytest.fixture(scope="module")
def lab():
    with Lab(nodes=NODES, rate="250mbit", name=f"t{uuid.uuid4().hex[:6]}") as lab:
        yield lab


def copies_sent(lab, mpi, collective, rate, *options, **more):
    """How often each node has sent its part, over all operations; the program has compared every byte."""
    bench = paths().bench / mpi / "collectives"
    argv = [str(bench), "--verify", "--repeats", "2", "--warmup", "0", "--work-ns", "1000", "--sizes", str(BYTES)]
    env = {"OFFPATH_POLICY": f"*:host,{collective}:0-inf:dpu=multicast", "OFFPATH_MULTICAST_RATE": rate} | more
    before = link_bytes(lab.plan)
    argv += ["--collective", collective, *options]
    result = succeeded(lab.mpirun(mpi, 1, argv, offload=True, env=env, timeout=LIMIT_S))
    assert all(rank["offloaded_count"] > 0 and rank["failed_count"] == 0 for rank in result.stats)
    operations = result.stats[0]["offloaded_count"]
    part = BYTES if collective == "ibcast" else BYTES // NODES
    return [after.since(then).up / operations / part for then, after in zip(before, link_bytes(lab.plan))]


def test_each_byte_leaves_its_node_once(lab):
    assert max(copies_sent(lab, "mpich", "iallgather", RIGHT_RATE)) < 1.6  # with all that the launcher says; a ring: 3
    assert max(copies_sent(lab, "openmpi", "iallgatherv", RIGHT_RATE)) < 1.6
    copies = copies_sent(lab, "openmpi", "ibcast", RIGHT_RATE)
    assert copies[0] < 1.6 and max(copies[1:]) < 0.5  # a chain: 1 for all but the last


@pytest.mark.parametrize("wish", ("lz4", "auto"))
def test_what_can_be_compressed_leaves_shorter(lab, wish):
    copies = copies_sent(lab, "mpich", "iallgather", RIGHT_RATE, "--field", "tiles", OFFPATH_COMPRESS=wish)
    assert max(copies) < 1, copies


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


def allgathers(lab, count, **env):
    """Each of them is compared, byte by byte; they are two operations each, and one more."""
    argv = [str(paths().bench / "openmpi" / "collectives"), "--verify", "--repeats", "1", "--warmup", "0"]
    argv += ["--collective", "iallgather", "--sizes", ",".join([str(BYTES)] * count)]
    argv += ["--work-ns", ",".join(["1000"] * count)]
    env = {"OFFPATH_POLICY": "iallgather:0-inf:dpu=multicast", "OFFPATH_MULTICAST_RATE": RIGHT_RATE} | env
    result = succeeded(lab.mpirun("openmpi", 1, argv, offload=True, env=env, timeout=LIMIT_S))
    assert all(rank["offloaded_count"] > 0 and rank["failed_count"] == 0 for rank in result.stats)


@contextlib.contextmanager
def meanwhile(work):
    """In a thread; `over` is set when the rest has ended."""
    over, found = threading.Event(), []
    thread = threading.Thread(target=lambda: found.append(work(over)))
    thread.start()
    try:
        yield found
    finally:
        over.set()
        thread.join()


def services(lab, node):
    there = inventory.processes(lab.name, [f"{node}-dpu"])
    return [pid for pid in there if Path(f"/proc/{pid}/comm").read_text().startswith("offpathd")]


def joined_groups(lab, node):
    """Address and port of sockets there that have joined a group."""
    table = captured(lab.inside(f"{node}-dpu", ["cat", "/proc/net/udp"])).stdout
    found = re.findall(r"^ *\d+: (\w{8}):(\w{4}) ", table, re.MULTILINE)
    addresses = [(socket.inet_ntoa(bytes.fromhex(address)[::-1]), int(port, 16)) for address, port in found]
    return [each for each in addresses if each[0].startswith("239.19")]


def test_strangers_do_no_harm(lab):
    """Noise, and what was said before, changed, shortened and under other names, as fast as it goes."""
    script = Path(__file__).parent / "programs" / "hostile_udp.py"

    def attack(over):
        while not over.is_set() and not joined_groups(lab, "node2"):
            time.sleep(0.02)
        said = []
        for address, port in joined_groups(lab, "node2"):
            while not over.is_set():
                argv = [sys.executable, str(script), "br0", address, str(port), "0.5"]
                done = captured(lab.inside(HEAD, argv))
                said.append([int(word) for word in done.stdout.split()])
        return [sum(counts) for counts in zip(*said)]

    for _ in range(10):  # the program may be over before the stranger has begun to listen
        with meanwhile(attack) as found:
            allgathers(lab, 8)
        heard, sent = found[0] or (0, 0)
        if heard > 0:
            break
    assert heard > 0 and sent > 0


def test_a_service_that_stops_for_a_second_is_waited_for(lab):
    def stop(over):
        before = link_bytes(lab.plan)[-1].down
        while not over.is_set() and link_bytes(lab.plan)[-1].down < before + 2 * BYTES:
            time.sleep(0.005)
        stopped = services(lab, "node4")
        for signum in (signal.SIGSTOP, signal.SIGCONT):
            for pid in stopped:
                os.kill(pid, signum)
            time.sleep(1 if signum == signal.SIGSTOP else 0)
        return stopped

    with meanwhile(stop) as found:
        allgathers(lab, 8)
    assert found[0]


def test_what_links_lose_is_fetched():
    """Each receiver other chunks, and all of them the same."""
    with Lab(nodes=3, rate="250mbit", loss=Loss.make(5, 5, only_multicast=True)) as lossy:
        allgathers(lossy, 4)
