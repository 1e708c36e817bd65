# SPDX-License-Identifier: BSD-3-Clause
"""The lab: real namespaces, both MPIs, and nothing left behind."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from conftest import LIMIT_S, MPIS, ROOT, assert_one_line_error, captured, eventually, offpath, requires_root, succeeded
from offpath.base import proc
from offpath.base.errors import UserError
from offpath.lab import Lab, inventory, network, quota, state
from offpath.lab import plan as planning
from offpath.lab.plan import STATE_ROOT, Loss, parse_latency, parse_rate

pytestmark = requires_root


def assert_nothing_left(name):
    assert inventory.namespaces(name) == []
    assert not (STATE_ROOT / name).exists()
    assert not inventory.exists(name)


def links_of_the_machine():
    return sorted(os.listdir("/sys/class/net"))


@pytest.mark.parametrize("state, memory, dead", [("R", "0", True), ("R", "4096", False), ("Z", "0", True)])
def test_a_process_that_ends_is_dead(monkeypatch, state, memory, dead):
    """It has no environment any more, by which the run is known that it was of."""
    monkeypatch.setattr(proc, "stat", lambda pid: [state, *["1"] * 19, memory])
    assert proc.is_dead(1) is dead
    monkeypatch.undo()
    assert not proc.is_dead(os.getpid())


@pytest.mark.parametrize("ppn", [1, 2])
@pytest.mark.parametrize("nodes", [2, 4])
@pytest.mark.parametrize("mpi", MPIS)
def test_ranks_are_where_they_belong(mpi, nodes, ppn, programs, lab_name, monkeypatch):
    monkeypatch.setenv("OFFPATH_PREFIX", str(programs / "prefix"))
    with Lab(nodes=nodes, name=lab_name) as lab:
        program = [str(programs / f"hello_{mpi}")]
        result = succeeded(lab.mpirun(mpi, ppn, program, env={"OFFPATH_TEST_VALUE": "x,y;z"}, timeout=LIMIT_S))
        size = nodes * ppn
        expected = [
            f"{rank} {size} node{rank // ppn + 1} {lab.plan.cores_of(rank // ppn)} {size * (size - 1) // 2} x,y;z"
            for rank in range(size)
        ]
        assert result.stdout.splitlines() == expected
        assert inventory.processes(lab_name) == []
    assert_nothing_left(lab_name)


@pytest.mark.parametrize("mpi", MPIS)
def test_offloaded_ranks_get_their_own_node(mpi, programs, lab_name, monkeypatch):
    monkeypatch.setenv("OFFPATH_PREFIX", str(programs / "prefix"))
    with Lab(nodes=2, name=lab_name) as lab:
        result = succeeded(lab.mpirun(mpi, 1, [str(programs / f"hello_{mpi}")], offload=True, timeout=LIMIT_S))
        reported = sorted(result.stats, key=lambda rank: rank["node"])
        assert [rank["node"] for rank in reported] == ["node1", "node2"]
        assert [rank["cores"] for rank in reported] == [lab.plan.cores_of(0), lab.plan.cores_of(1)]
        assert [rank["folder"] for rank in reported] == ["", ""]  # each node's own /tmp
        # The wrapper, as the client uses it, ends up next to the host and not in it
        wrapper = reported[0]["wrapper"].replace("%h", "node1").split()
        answer = captured([*lab.inside("node1", wrapper), "ip", "-br", "address"])
        assert "10.99.0.101/24" in answer.stdout, answer


def test_nodes_share_the_working_directory_and_programs_only(programs, lab_name, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    beside, work = tmp_path / "home" / "beside", tmp_path / "home" / "work"
    for folder in (beside, work):
        folder.mkdir(parents=True)
        (folder / "file").touch()
    look = f"hostname; for f in {beside}/file {work}/file {ROOT}/offpath; do [ -e $f ] && echo $f; done; ls /tmp; "
    mounted = {"work", *ROOT.parts}  # the programs may lie below /tmp
    look += "touch /tmp/$(hostname) $HOME/$(hostname) && ls /tmp $HOME"
    with Lab(nodes=2, name=lab_name) as lab:
        for place in ("node1", "node2-dpu", "node2"):
            seen = captured(lab.inside(place, ["sh", "-c", look]), cwd=work)
            node = place.removesuffix("-dpu")
            before = [node] if place == "node2" else []  # a DPU has its node's
            expected = [node, f"{work}/file", f"{ROOT}/offpath", *before, "/tmp:", node, "", f"{tmp_path}/home:", node]
            assert [line for line in seen.stdout.splitlines() if line not in mounted] == expected, seen
    assert sorted(path.name for path in (tmp_path / "home").iterdir()) == ["beside", "work"]


@pytest.mark.alone
def test_nothing_of_the_machine_is_touched(lab_name):
    before = links_of_the_machine(), Path("/etc/hosts").read_text(), os.path.exists("/etc/netns")
    assert offpath("lab", "up", "--name", lab_name).returncode == 0
    during = links_of_the_machine(), Path("/etc/hosts").read_text(), os.path.exists("/etc/netns")
    assert offpath("lab", "down", lab_name).returncode == 0
    assert before == during
    assert_nothing_left(lab_name)


def test_name_that_is_taken(lab_name):
    assert offpath("lab", "up", "--name", lab_name).returncode == 0
    assert_one_line_error(offpath("lab", "up", "--name", lab_name), lab_name, "exists already", f"lab down {lab_name}")
    row = json.loads(offpath("lab", "status", lab_name, "--json").stdout)[0]
    assert (row["state"], row["node_count"], row["rate_bits_per_s"]) == ("up", 2, 250_000_000)


def test_both_ends_of_every_port_are_limited(lab_name):
    with Lab(nodes=2, rate="1gbit", name=lab_name) as lab:
        shown = captured(lab.inside("head", ["tc", "qdisc", "show"])).stdout
        limited = {line.split()[4] for line in shown.splitlines() if "tbf" in line and "rate 1Gbit" in line}
        assert limited == {"port1", "uplink1", "port2", "uplink2"}


@pytest.mark.parametrize("shared_by", ["macvlan", "bridge"])
def test_host_and_dpu_reach_every_other(lab_name, shared_by, monkeypatch):
    if shared_by == "bridge":  # as on kernels that do not know macvlan
        monkeypatch.setattr(network, "_has_macvlan", lambda head: False)
    with Lab(nodes=2, name=lab_name) as lab:
        script = "import socket, sys; s = socket.socket(); s.settimeout(20); s.connect((sys.argv[1], 7000))"
        server = "import socket\ns = socket.create_server(('', 7000)); print(flush=True)\nwhile True: s.accept()"
        listener = subprocess.Popen(lab.inside("node1", [sys.executable, "-c", server]), stdout=subprocess.PIPE)
        listener.stdout.readline()
        for place in ("head", "node1-dpu", "node2", "node2-dpu"):
            subprocess.run(lab.inside(place, [sys.executable, "-c", script, "node1"]), check=True)
        listener.kill()
        listener.communicate()


@pytest.mark.alone  # another lab would remove it
@pytest.mark.parametrize("instant", ["namespaces", "switch", "node1", "node3"])
def test_up_killed_midway_then_down(instant, lab_name):
    script = f"""
import os, signal
from offpath.lab import Lab
def step(name):
    if name == {instant!r}: os.kill(os.getpid(), signal.SIGKILL)
Lab(nodes=3, name={lab_name!r}).up(progress=step)
"""
    assert subprocess.run([sys.executable, "-c", script]).returncode == -signal.SIGKILL
    assert inventory.exists(lab_name)
    assert_one_line_error(offpath("lab", "up", "--name", lab_name), "exists already")
    assert_one_line_error(offpath("lab", "run", "--name", lab_name, "--", "true"), "incomplete", "lab down")
    assert "incomplete" in offpath("lab", "status").stdout
    assert offpath("lab", "down", lab_name).returncode == 0
    assert_nothing_left(lab_name)


def test_up_that_fails_leaves_nothing(lab_name, monkeypatch):
    def fail(plan):
        raise RuntimeError("quota")

    monkeypatch.setattr(quota, "apply", fail)
    with pytest.raises(RuntimeError):
        Lab(name=lab_name).up()
    assert_nothing_left(lab_name)


@pytest.mark.alone  # another lab would remove it
def test_lab_of_another_release_can_only_be_removed(lab_name):
    with Lab(nodes=2, name=lab_name):
        record = STATE_ROOT / lab_name / state.RECORD
        record.write_text(json.dumps(json.loads(record.read_text()) | {"invented": 1}))
        assert_one_line_error(offpath("lab", "run", "--name", lab_name, "--", "true"), "another Offpath release")
    assert_nothing_left(lab_name)


def test_lab_whose_owner_was_killed_goes_with_the_next(lab_name):
    script = f"""
import os, signal
from offpath.lab import Lab
with Lab(nodes=1, name={lab_name!r}): os.kill(os.getpid(), signal.SIGKILL)
"""
    subprocess.run([sys.executable, "-c", script])
    assert inventory.exists(lab_name)
    with Lab(nodes=1):
        assert_nothing_left(lab_name)


@pytest.mark.alone  # another lab would remove it
def test_lab_whose_owner_was_killed_on_the_way_up_goes_with_the_next(lab_name):
    script = f"""
import os, signal
from offpath.lab import Lab
def step(name): os.kill(os.getpid(), signal.SIGKILL)
Lab(nodes=1, name={lab_name!r}).up(owned=True, progress=step)
"""
    assert subprocess.run([sys.executable, "-c", script]).returncode == -signal.SIGKILL
    assert inventory.exists(lab_name)
    with Lab(nodes=1):
        assert_nothing_left(lab_name)


def test_the_last_lab_may_go_while_another_takes_its_name(lab_name, tmp_path, monkeypatch):
    """And the folder of all labs with it."""
    root, mkdir, times = tmp_path / "labs", Path.mkdir, []
    for module in (planning, state):
        monkeypatch.setattr(module, "STATE_ROOT", root)

    def gone_at_first(path, *given, **named):
        mkdir(path, *given, **named)
        if path == root and not times:
            times.append(path.rmdir())

    monkeypatch.setattr(Path, "mkdir", gone_at_first)
    state.claim(Lab(name=lab_name).plan)
    assert times and (root / lab_name).is_dir()


@pytest.mark.parametrize("name", ("", "../there", "No"))
@pytest.mark.parametrize("command, program", (("run", "true"), ("exec", "head")))
def test_a_name_that_no_lab_can_have(command, program, name):
    assert_one_line_error(offpath("lab", command, "--name", name, program), "cannot name a lab")


def test_down_ends_what_still_runs(lab_name):
    with Lab(nodes=1, name=lab_name) as lab:
        stubborn = "trap '' TERM INT HUP; echo ready; while :; do sleep 1000; done"
        child = subprocess.Popen(lab.inside("node1-dpu", ["bash", "-c", stubborn]), stdout=subprocess.PIPE)
        child.stdout.readline()
        lab.down()
        assert child.wait() == -signal.SIGKILL
        child.stdout.close()
    assert_nothing_left(lab_name)


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
@pytest.mark.parametrize("mpi", MPIS)
def test_run_that_is_ended_leaves_nothing(mpi, signum, lab_name, programs, tmp_path):
    with Lab(nodes=2, name=lab_name):
        command = ["lab", "run", "--name", lab_name, "--mpi", mpi, "--", "sleep", "1000"]
        env = os.environ | {"TMPDIR": str(tmp_path)}
        child = subprocess.Popen([ROOT / "offpath", *command], stderr=subprocess.PIPE, text=True, env=env)
        eventually(lambda: len(sleepers(lab_name)) == 2)
        child.send_signal(signum)
        child.communicate()
        assert child.returncode != 0
        eventually(lambda: inventory.processes(lab_name) == [])
    assert list(tmp_path.glob("offpath-*")) == []
    assert_nothing_left(lab_name)


def sleepers(name):
    found = []
    for pid in inventory.processes(name):
        try:
            found += [pid] if Path(f"/proc/{pid}/comm").read_text() == "sleep\n" else []
        except OSError:
            pass
    return found


@pytest.mark.parametrize("mpi", MPIS)
def test_status_of_the_program_comes_back(mpi, lab_name, programs):
    with Lab(nodes=2, name=lab_name):
        result = offpath("lab", "run", "--name", lab_name, "--", str(programs / f"hello_{mpi}"), "7")
        assert result.returncode == 7


def test_time_limit_ends_the_run(lab_name):
    with Lab(nodes=1, name=lab_name) as lab:
        with pytest.raises(subprocess.TimeoutExpired):
            lab.mpirun("openmpi", 1, ["sleep", "1000"], timeout=2)
        assert inventory.processes(lab_name) == []


def test_ranks_that_do_not_fit(lab_name):
    with Lab(nodes=2, name=lab_name):
        result = offpath("lab", "run", "--name", lab_name, "--np", "3", "--ppn", "1", "--mpi", "mpich", "--", "true")
        assert_one_line_error(result, "3 ranks", "--ppn")


@pytest.mark.skipif(not (quota.QUOTA_ROOT / "cpu.shares").exists(), reason="no cgroup v1 cpu controller")
def test_slow_dpu_is_in_a_limited_group(lab_name):
    with Lab(nodes=1, dpu_slowdown=4, name=lab_name) as lab:
        groups = captured(lab.inside("node1-dpu", ["cat", "/proc/self/cgroup"])).stdout
        group = f"offpath-{lab_name}-node1-dpu"
        assert f":cpu:/{group}" in groups
        assert (quota.QUOTA_ROOT / group / "cpu.cfs_quota_us").read_text() == "2500\n"
    assert_nothing_left(lab_name)


def test_quota_keeps_to_what_the_kernel_takes():
    assert quota.limits_us(1, 4.0) == (2500, 10_000)
    assert quota.limits_us(2, 4.0) == (5000, 10_000)
    assert quota.limits_us(1, 100.0) == (1000, 100_000)


@pytest.mark.parametrize("text, bits", [("250mbit", 250_000_000), ("1Gbit", 10**9), ("2.5gbit", 2_500_000_000)])
def test_rates(text, bits):
    assert parse_rate(text) == bits


@pytest.mark.parametrize("text, seconds", [("0", 0), ("200us", 2e-4), ("1ms", 1e-3), ("2.5ms", 2.5e-3)])
def test_latencies(text, seconds):
    assert parse_latency(text) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["", "1", "-1ms", "200ms", "5s", "much"])
def test_latencies_that_are_none(text):
    with pytest.raises(UserError, match="is not a link's latency"):
        parse_latency(text)


@pytest.mark.parametrize("loss", [(-1, 0), (0, 51), (float("nan"), 0)])
def test_losses_that_are_none(loss):
    with pytest.raises(UserError, match="Links cannot lose"):
        Loss.make(*loss)


def heard(lab, sender, receivers, count, address):
    """Which of `count` datagrams from one node each of the others has heard."""
    eth0 = "eth0 = socket.if_nametoindex('eth0').to_bytes(4, 'little')"
    listens = f"""import socket, sys
{eth0}
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
s.bind(("", 5000))
s.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, socket.inet_aton("239.192.7.7") + bytes(4) + eth0)
print("ready", flush=True)
sys.stdin.readline()
s.setblocking(False)
found = []
try:
    while True:
        found.append(int(s.recv(100)))
except BlockingIOError:
    print(*found)
"""
    sends = f"""import socket, time
{eth0}
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, bytes(8) + eth0)
for number in range({count}):
    s.sendto(str(number).encode(), ("{address}", 5000))
    if number % 20 == 0:
        time.sleep(0.001)
"""
    ends = [
        subprocess.Popen(
            lab.inside(node, [sys.executable, "-c", listens]), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for node in receivers
    ]
    assert all(end.stdout.readline() == "ready\n" for end in ends)
    subprocess.run(lab.inside(sender, [sys.executable, "-c", sends]), check=True, timeout=LIMIT_S)
    time.sleep(0.2)  # links have queues; who is not heard by then is lost, too
    return [{int(word) for word in end.communicate("now\n", timeout=LIMIT_S)[0].split()} for end in ends]


def test_links_lose_packets(lab_name):
    """A quarter: 500 of 2000, and by chance never under 400 or over 600."""
    count = 2000
    with Lab(nodes=3, name=lab_name, loss=Loss.make(0, 25, only_multicast=True)) as lab:
        assert Lab.attach(lab_name).plan == lab.plan
        each = heard(lab, "node1", ["node2", "node3"], count, "239.192.7.7")
        for found in each:
            assert 1400 <= len(found) <= 1600
        assert len(each[0] - each[1]) > 200  # each by itself
        assert len(heard(lab, "node1", ["node2"], 500, "10.99.0.2")[0]) == 500
    with Lab(nodes=3, name=lab_name, loss=Loss.make(25, 0)) as lab:
        each = heard(lab, "node1", ["node2", "node3"], count, "239.192.7.7")
        assert 1400 <= len(each[0]) <= 1600
        assert each[0] == each[1]  # lost before the switch made copies
    assert_nothing_left(lab_name)


def test_packets_take_their_time(lab_name):
    """From node to node and back; the lower bound holds however slow the machine is."""
    refused = "import socket, time\nstart = time.monotonic()\ntry:\n socket.create_connection(('node2', 9))\n"
    refused += "except ConnectionRefusedError:\n print(time.monotonic() - start)"
    with Lab(nodes=2, name=lab_name, latency="20ms") as lab:
        assert Lab.attach(lab_name).plan == lab.plan
        took = succeeded(captured(lab.inside("node1", [sys.executable, "-c", refused])))
        assert float(took.stdout) >= 0.04
    assert_nothing_left(lab_name)
