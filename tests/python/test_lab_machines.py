# SPDX-License-Identifier: BSD-3-Clause
"""DPUs of a lab that are machines: what they do not share with their host, and the link they do."""

import sys

import pytest
from conftest import assert_one_line_error, captured, offpath, requires_root, succeeded
from offpath.lab import Lab, inventory
from offpath.lab.plan import STATE_ROOT, Plan

REFUSED = """
import socket, sys, time
for name in sys.argv[1:]:
    start = time.monotonic()
    try:
        socket.create_connection((name, 9), timeout=60)
    except ConnectionRefusedError:
        print(name, time.monotonic() - start)
"""


def at(lab, place: str, *words: str) -> str:
    result = succeeded(captured(lab.inside(place, words)))
    return result.stdout


@requires_root
def test_a_dpu_that_is_a_machine_shares_nothing_but_a_link(lab_name):
    with Lab(nodes=2, name=lab_name, dpus=2, dpu_cores=1, link_latency="20ms", link_rate="100mbit") as lab:
        assert Lab.attach(lab_name).plan == lab.plan
        places = ["node1", "node1-dpu", "node1-dpu2", "node2", "node2-dpu", "node2-dpu2"]
        kinds = ("pid", "ipc", "mnt", "uts", "net")
        look = "readlink " + " ".join(f"/proc/self/ns/{kind}" for kind in kinds)
        seen = {place: at(lab, place, "sh", "-c", look).split() for place in places if "dpu" in place}
        for index, kind in enumerate(kinds):
            assert len({names[index] for names in seen.values()}) == 4, kind
            own = captured(["readlink", f"/proc/self/ns/{kind}"]).stdout.strip()
            assert own not in {names[index] for names in seen.values()}, kind
        assert at(lab, "node1-dpu2", "hostname") == "node1-dpu2\n"
        # Files, memory and processes stay on their machine, and are there for who comes later
        leave = "touch /tmp/$0 $HOME/$0 /run/user/$0 /dev/shm/$0; (sleep 987 >/dev/null 2>&1 &); "
        for place in places[1:3]:
            listed = at(lab, place, "sh", "-c", leave + "ls -d /tmp/* /dev/shm/* $HOME/* /run/user/*", place)
            assert {line.rpartition("/")[2] for line in listed.split() if "node" in line} == {place}, listed
        assert "node1-dpu" not in at(lab, "node1", "ls", "/tmp", "/dev/shm", "/run/user")
        assert at(lab, "node1-dpu", "sh", "-c", "cat /proc/[0-9]*/comm").split().count("sleep") == 2  # with init's
        # Its clock is another
        uptimes = [float(at(lab, place, "cat", "/proc/uptime").split()[0]) for place in ("node1", "node1-dpu")]
        assert uptimes[1] > uptimes[0] + 90000
        # Host and DPU speak over their link, and nobody else does
        took = {place: {} for place in ("node1", "node1-dpu", "node1-dpu2", "head")}
        for place in took:
            for line in at(lab, place, sys.executable, "-c", REFUSED, *places, "head").splitlines():
                took[place][line.split()[0]] = float(line.split()[1])
            assert set(took[place]) == {*places, "head"}
        for one, other in (("node1", "node1-dpu"), ("node1-dpu2", "node1")):
            assert took[one][other] >= 0.04
        for one, other, device in (("node1-dpu", "10.99.0.1", "host1"), ("node1-dpu", "10.99.0.102", "eth0")):
            assert f"dev {device} " in at(lab, one, "ip", "route", "get", other)
        shown = at(lab, "node1", "tc", "qdisc", "show") + at(lab, "node1-dpu2", "tc", "qdisc", "show")
        assert shown.count("rate 100Mbit") == 3
        row = offpath("lab", "status", lab_name)
        assert "2 DPUs on each node that are machines" in row.stdout
        # As one would with ssh
        there = offpath("lab", "exec", "--name", lab_name, "node2/dpu", "--", "sh", "-c", "hostname; exit 7")
        assert (there.stdout, there.returncode) == ("node2-dpu\n", 7)
        assert_one_line_error(offpath("lab", "exec", "--name", lab_name, "node3"), "no place node3", "node2-dpu2")
    assert not inventory.exists(lab_name) and not (STATE_ROOT / lab_name).exists()


def test_cores_are_dealt_out_to_nodes_first():
    plan = Plan.make("any", 2, "1gbit", 9000, 1.0, 1, [0, 1, 2, 3, 4])
    assert plan.node_cores == ((0,), (1,))
    assert [dpu.cores for dpu in plan.dpus] == [(0,), (1,)]
    own = Lab(nodes=2, dpus=2).plan
    assert [dpu.cores for dpu in own.dpus] == [own.node_cores[0]] * 2 + [own.node_cores[1]] * 2
    assert len({dpu.address for dpu in Lab(nodes=64, dpus=2).plan.dpus}) == 128


@pytest.mark.parametrize(
    "options, words",
    [
        (["--dpus", "3"], ["3 DPUs", "1 to 2"]),
        (["--link-rate", "1gbit"], ["--dpus 1"]),
        (["--dpus", "1", "--link-rate", "fast"], ["'fast'"]),
        (["--dpus", "1", "--link-latency", "5s"], ["'5s'"]),
        (["--dpus", "1", "--dpu-cores", "4096"], ["4096 cores"]),
    ],
)
def test_machines_that_cannot_be(options, words):
    assert_one_line_error(offpath("lab", "up", *options), *words)
