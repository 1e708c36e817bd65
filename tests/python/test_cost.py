# SPDX-License-Identifier: BSD-3-Clause
"""What a run takes: processor time of ranks and services, and energy where the machine says it."""

import json
import os
import resource
import shutil
import threading

import pytest
from bench_support import program
from conftest import AS_ROOT, LIMIT_S, ROOT, captured, requires_root
from offpath.base.paths import paths
from offpath.base.sizes import traded
from offpath.launch import mpis, stats
from offpath.launch.local import local_mpirun
from offpath.launch.stats import Cost

LINES = [
    {"rank": 0, "node": "a", "mpi": "mpich", "cpu_ns": 5_000_000_000, "service_pid": 7, "service_cpu_ns": 300_000_000,
     "elsewhere_cpu_ns": 10_000_000, "energy_uj": 40_000_000},
    {"rank": 1, "node": "a", "mpi": "mpich", "cpu_ns": 6_000_000_000, "service_pid": 7, "service_cpu_ns": 400_000_000,
     "elsewhere_cpu_ns": 10_000_000, "energy_uj": 40_000_000},
    {"rank": 2, "node": "b", "mpi": "mpich", "cpu_ns": 7_000_000_000, "service_pid": 7, "service_cpu_ns": 500_000_000,
     "elsewhere_cpu_ns": 0, "energy_uj": 0},
]  # fmt: skip
SOLVER = {"rank": 0, "node": "a", "mpi": stats.PETSC, "cpu_ns": 5_000_000_000, "service_pid": 8,
          "service_cpu_ns": 1_000_000_000}  # fmt: skip

# A sysfs in which powercap is ours, in a name space of its own.
OTHER_SYSFS = """
mount --rbind /sys "$1/sys"
mount -t tmpfs none /sys/class
for each in "$1"/sys/class/*; do ln -s "$each" /sys/class/; done
rm -f /sys/class/powercap && mkdir /sys/class/powercap
mount --bind "$1/powercap" /sys/class/powercap
shift
exec "$@"
"""


def test_services_count_once_and_shares_add_up():
    cost = stats.cost(LINES)
    assert cost == Cost(18_000_000_000, 920_000_000, 80_000_000, 1, 2)
    assert cost.text == "processor time: 18 s of the ranks, 920 ms of their services; energy: 80 J on 1 of 2 nodes"
    assert stats.cost(LINES[:2]).text.endswith("; energy: 80 J")
    assert stats.cost(LINES[2:]).text == "processor time: 7 s of the ranks, 500 ms of their services"
    assert stats.cost([{"rank": 0}]).text == stats.cost([]).text == ""


def test_a_process_with_two_lines_counts_once():
    assert stats.cost([LINES[0], SOLVER]).ranks_ns == stats.cost([LINES[0]]).ranks_ns == stats.cost([SOLVER]).ranks_ns
    assert stats.cost([LINES[0], SOLVER]).services_ns == 1_310_000_000


def test_a_cost_is_read_from_anything():
    cost = stats.cost(LINES)
    assert Cost.from_json(json.loads(json.dumps(cost.to_json()))) == cost
    for nothing in (None, [], "x", {"ranks_ns": "x", "energy_uj": -1, "nodes": True, "more": 1}):
        assert Cost.from_json(nothing) == Cost()


def test_what_is_traded_has_a_direction():
    assert traded(2e9, 30e9) == "takes 2 core-s more, saves 30 node-s"
    assert traded(-2.5e8, -1e9) == "takes 0.25 core-s less, loses 1 node-s"


def reported(result):
    assert result.returncode == 0, result.stderr
    assert len(result.stats) == 2 and all(line["enabled"] for line in result.stats)
    return stats.cost(result.stats)


def argv(mpi, tmp_path, work):
    return [
        program("bench", mpi, "collectives"), "--collective", "ialltoall", "--sizes", "65536", "--repeats", "5",
        "--work-iterations", str(work), "--json", str(tmp_path / "out.json"),
    ]  # fmt: skip


@pytest.mark.machine
@pytest.mark.parametrize("mpi", ["openmpi", "mpich"])
def test_processor_time_of_ranks_is_what_the_kernel_charged(mpi, tmp_path):
    """Ranks are children of the launcher, which is ours; services are nobody's children."""

    def children_s():
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        return used.ru_utime + used.ru_stime

    work = 1000  # more, until the launcher's own time matters little
    while True:
        before = children_s()
        result = local_mpirun(mpi, 2, argv(mpi, tmp_path, work), True, {"OFFPATH_POLICY": "*:dpu"}, LIMIT_S)
        charged_s = children_s() - before
        cost = reported(result)
        assert cost.ranks_ns / 1e9 <= charged_s
        if charged_s > 2:
            break
        work *= 4
    assert cost.ranks_ns / 1e9 > 0.6 * charged_s
    assert 0 < cost.services_ns and cost.energy_uj == 0


@requires_root
@pytest.mark.machine
@pytest.mark.skipif(not os.path.isdir("/sys/class"), reason="there is no sysfs here")
def test_energy_is_that_of_the_machine(tmp_path):
    """A package's counter that grows by 1 J now and then, and begins anew at 10 J."""
    zone = tmp_path / "powercap" / "intel-rapl:0"
    zone.mkdir(parents=True)
    (tmp_path / "sys").mkdir()
    (zone / "name").write_text("package-0\n")
    (zone / "max_energy_range_uj").write_text("10000000\n")
    counter, joules, over = zone / "energy_uj", 0, threading.Event()
    counter.write_text(f"{0:09}\n")

    def count():
        nonlocal joules
        with counter.open("r+b", buffering=0) as file:
            while not over.wait(0.02):
                joules += 1
                os.pwrite(file.fileno(), b"%09d" % (joules % 10 * 1_000_000), 0)

    thread = threading.Thread(target=count)
    thread.start()
    file, mpi = tmp_path / "stats", mpis.OPENMPI
    offpath = [str(ROOT / "offpath"), "run", "--share", "--policy", "*:dpu", "--stats", str(file), "--"]
    launch = [mpis.launcher(mpi), "--oversubscribe", "-np", "2", *argv(mpi, tmp_path, 200_000)]
    env = os.environ | AS_ROOT
    enter = ["unshare", "--mount", shutil.which("sh"), "-ec", OTHER_SYSFS, "sh", str(tmp_path)]
    try:
        result = captured([*enter, *offpath, *launch], env=env)
    finally:
        over.set()
        thread.join()
    assert result.returncode == 0, result.stderr
    cost = stats.cost(stats.read(str(file)))
    assert 0 < cost.energy_uj <= joules * 1_000_000
    assert cost.energy_nodes == cost.nodes == 1


@pytest.mark.machine
def test_a_service_on_another_machine_is_charged_in_shares(tmp_path):
    """And its agent is what ranks see beside them."""
    dpu = f"exec:{ROOT}/tests/api/dpu.sh {paths().service}"
    env = {"OFFPATH_POLICY": "*:dpu", "OFFPATH_DPU": dpu}
    result = local_mpirun("openmpi", 2, argv("openmpi", tmp_path, 1000), True, env, LIMIT_S)
    cost = reported(result)
    shares = [line["elsewhere_cpu_ns"] for line in result.stats]
    assert min(shares) > 0 and max(line["service_cpu_ns"] for line in result.stats) > 0
    assert cost.services_ns == sum(shares) + max(line["service_cpu_ns"] for line in result.stats)
