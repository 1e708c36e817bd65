# SPDX-License-Identifier: BSD-3-Clause
"""Measures the machine model.

Memory and cores are measured directly (bench/machine). Costs of MPI and of the service are those with which the model
gives the times of a few short benchmarks: each parameter is fitted to the one time that depends on it most.
"""

from __future__ import annotations

import json
import math
import statistics
import subprocess
from collections.abc import Callable
from dataclasses import dataclass

from offpath.base import console
from offpath.base.errors import UserError
from offpath.base.oldest import zip_equal
from offpath.base.paths import paths
from offpath.lab.plan import BURST_BYTES
from offpath.launch import mpis, stats
from offpath.places import comparison
from offpath.plan import machine as machines
from offpath.plan import model
from offpath.plan.model import DPU, HOST, Placement

SHORT, LONG = 8, 1 << 20
LAUNCHES = 5  # of each benchmark
REPEATS = 31  # in a launch: what the service takes from work is a small difference
CROSSING_NODES = 4
# All ranks must send to all at once for that: MPICH's Ialltoall sends long blocks to one after the other.
CROSSES = {(HOST, mpis.MPICH): "ialltoallv"}
WORK_FACTOR = 3  # of the pure time of LONG: then what the service takes from the work shows
EVERYTHING = "*:dpu"
TOLERANCE = 1.25  # what the model may be off from a time that it is fitted to


@dataclass(frozen=True)
class Measured:
    """Times of the benchmark, ns, by (path, bytes)."""

    pure: dict
    compute: dict
    total: dict


def placement_of(meta: dict) -> Placement:
    """As the lab places ranks and services: both on the node's cores. On a cluster services have cores of their own,
    unless they share."""
    if meta["place"] == "allocation" and meta["shared_cores"]:
        ranks = [list(range(node * meta["ppn"], (node + 1) * meta["ppn"])) for node in range(meta["nodes"])]
        return Placement(meta["nodes"], meta["ppn"], ranks, [each[0] for each in ranks])
    if meta["place"] != "lab":
        return Placement(meta["nodes"], meta["ppn"])
    cores = [list(node) for node in meta["cores"]]
    return Placement(meta["nodes"], meta["ppn"], cores, [node[0] for node in cores])


def calibrate(where: comparison.Place, mpi: str, repeats: int, launches: int = LAUNCHES) -> dict:
    machine = machines.default()
    machine["native"]["family"] = mpi
    machine["environment"] = comparison.base_meta([mpi]) | where.meta | {"repeats": repeats}
    kind = where.meta["place"]
    if kind == "allocation":
        set_memory(machine, where.facts.get("measured"))
        machine["service"]["own_cores"] = not where.meta["shared_cores"]
    else:
        console.note("memory and cores")
        set_memory(machine, _measured_memory())
        _set_codecs(machine)
    if kind == "lab":
        machine["network"]["burst_bytes"] = max(BURST_BYTES, 2 * where.meta["mtu_bytes"])
        machine["network"]["rate_bytes_per_ns"] = where.meta["rate_bits_per_s"] / 8e9
    measured = measure(where, mpi, repeats, launches)
    if kind == "allocation":  # anything from Ethernet to InfiniBand: the fit begins near it
        machine["network"]["rate_bytes_per_ns"] = LONG / 2 / measured.pure[HOST, LONG]
    fit(machine, placement_of(where.meta), measured)
    if kind == "lab" and where.meta["nodes"] < CROSSING_NODES:
        with comparison.place(CROSSING_NODES, 1, where.meta["rate"], False) as several:
            fit_crossings(machine, several, mpi, repeats, launches)
    machine["measured"] = {
        f"{path}_{size}_{name}_ns": times[path, size]
        for name, times in (("pure", measured.pure), ("compute", measured.compute), ("total", measured.total))
        for path, size in times
    }
    return machine


def fit_crossings(machine: dict, several: comparison.Place, mpi: str, repeats: int, launches: int) -> None:
    for path in (HOST, DPU):
        pure_ns = _measure_crossing(several, mpi, repeats, path, launches)
        fit_crossing(machine, placement_of(several.meta), path, pure_ns)


def _measured_memory() -> dict | None:
    result = subprocess.run([str(paths().tool("offpath-machine"))], capture_output=True, text=True)
    return json.loads(result.stdout) if result.returncode == 0 else None


def set_memory(machine: dict, found: dict | None) -> None:
    """What bench/machine has printed."""
    if found is None:
        raise UserError("offpath-machine failed (it measures memory and cores). Run it by itself to see why.", 1)
    for name in ("copy_bytes_per_ns", "reduce_bytes_per_ns"):
        machine["memory"][name] = found[name]
    machine["memory"]["cma_bytes_per_ns"] = found.get("cma_bytes_per_ns", found["copy_bytes_per_ns"])
    contention = found["copy_bytes_per_ns"]["median"] / found["shared_copy_bytes_per_ns"]["median"]
    machine["cores"] = {
        "compute_flop_per_ns": found["compute_flop_per_ns"],
        "wake_ns": found["wake_ns"],
        "shared_copy_bytes_per_ns": found["shared_copy_bytes_per_ns"],
        "memory_contention": round(contention, 3),
    }


def _set_codecs(machine: dict) -> None:
    """How fast this core compresses numbers, each codec by the form that leaves least of them."""
    options = ["--fields", "halo,tiles", "--bytes", str(1 << 20), "--chunks", "57344", "--repeats", "3"]
    result = subprocess.run([str(paths().tool("offpath-codecs")), *options], capture_output=True, text=True)
    if result.returncode != 0:
        raise UserError(f"offpath-codecs failed ({result.stderr.strip()}). Please report this.", 1)
    best: dict = {}
    for row in json.loads(result.stdout)["rows"]:
        key = row["method"].split(":")[0], row["field"]
        coded = row["kept"] and row["decode_bytes_per_s"] > 0  # else it was sent as it is
        if coded and (key not in best or row["coded_bytes"] < best[key]["coded_bytes"]):
            best[key] = row
    machine["codecs"] = {
        codec: {
            f"{name}_ns_per_byte": round(statistics.mean(
                1e9 / row[f"{name}_bytes_per_s"] for (each, _), row in best.items() if each == codec), 4)
            for name in ("encode", "decode")
        }
        for codec in sorted({codec for codec, _ in best})
    }  # fmt: skip


def _launch(
    where: comparison.Place,
    mpi: str,
    repeats: int,
    path: str,
    sizes: list[int],
    work_ns: list[int] | None = None,
    kind: str = "ialltoall",
    launches: int = LAUNCHES,
) -> list[list[dict]]:
    """Rows of the benchmark, by size, of each launch."""
    argv = [str(paths().bench_program("collectives", mpi)), "--collective", kind, "--repeats", str(repeats)]
    argv += ["--sizes", ",".join(map(str, sizes))]
    if work_ns:
        argv += ["--work-ns", ",".join(map(str, work_ns))]
    env = {"OFFPATH_POLICY": EVERYTHING} if path == DPU else {}
    found = []
    for _ in range(launches):
        output, ranks = comparison.run_for_json(where, mpi, argv, path == DPU, env)
        if path == DPU and not stats.offloaded_count(ranks):
            raise UserError(
                f"{stats.unused(ranks)}, so the service cannot be measured. Leave it a core on each node, or give "
                "--share."
            )
        found.append(output["rows"])
    return found


def measure(where: comparison.Place, mpi: str, repeats: int, count: int = LAUNCHES) -> Measured:
    measured = Measured({}, {}, {})

    def run(path: str, sizes: list[int], work_ns: list[int] | None) -> None:
        console.note(f"{mpis.TITLES[mpi]}, {'offloaded' if path == DPU else 'alone'}")
        launches = _launch(where, mpi, repeats, path, sizes, work_ns, launches=count)
        for size, *rows in zip_equal(sizes, *launches):
            # The least disturbed launch: what others do on the machine only ever adds.
            measured.pure[path, size] = min(row["t_pure_ns"] for row in rows)
            # A small difference of long times: of each launch, since launches differ by more.
            measured.compute[path, size] = statistics.median(row["t_compute_ns"] for row in rows)
            added_ns = statistics.median(row["t_total_ns"] - row["t_compute_ns"] for row in rows)
            measured.total[path, size] = measured.compute[path, size] + added_ns

    run(HOST, [SHORT, LONG], None)
    work = [1_000_000, round(WORK_FACTOR * measured.pure[HOST, LONG])]
    run(DPU, [SHORT, LONG], work)
    return measured


def fit(machine: dict, where: Placement, measured: Measured) -> None:
    """Changes the machine so that the model gives what was measured."""
    network, service = machine["network"], machine["service"]

    def time(path: str, size: int, what: str) -> float:
        result = model.bench(machine, where, "ialltoall", size, path, measured.compute[path, size], repeats=3)
        return result.pure if what == "pure" else result.total

    def change(section: dict, *fields: str) -> Callable[[float], None]:
        start = {field: section[field] for field in fields}

        def apply(factor: float) -> None:
            for field in fields:
                section[field] = start[field] * factor

        return apply

    fitted = (
        (change(network, "latency_ns"), (HOST, SHORT, "pure"), measured.pure, 1),
        (change(network, "rate_bytes_per_ns"), (HOST, LONG, "pure"), measured.pure, -1),
        (change(service, "wake_ns"), (DPU, SHORT, "pure"), measured.pure, 1),
        (change(service, "send_ns_per_byte", "receive_ns_per_byte"), (DPU, LONG, "total"), measured.total, 1),
    )
    for apply, (path, size, what), times, sign in fitted:
        target = times[path, size]
        bisect(apply, lambda path=path, size=size, what=what: time(path, size, what), target, sign)
        reached = time(path, size, what)
        if not 1 / TOLERANCE < reached / target < TOLERANCE:
            console.note(
                f"{size} bytes, {path}: {target / 1e6:.3f} ms were measured, the model reaches {reached / 1e6:.3f} ms "
                "(something disturbs these nodes, or they share cores). Measure again on nodes of your own."
            )


def crossing_kind(mpi: str, path: str) -> str:
    return CROSSES.get((path, mpi), "ialltoall")


def _measure_crossing(where: comparison.Place, mpi: str, repeats: int, path: str, count: int) -> float:
    """The benchmark where every node talks to several: ns of the pure communication."""
    kind = crossing_kind(mpi, path)
    console.note(f"{mpis.TITLES[mpi]} on {where.meta['nodes']} nodes, {'offloaded' if path == DPU else 'alone'}")
    launches = _launch(where, mpi, repeats, path, [LONG], kind=kind, launches=count)
    return statistics.median(rows[0]["t_pure_ns"] for rows in launches)


def fit_crossing(machine: dict, where: Placement, path: str, pure_ns: float) -> None:
    section = machine["service" if path == DPU else "native"]
    kind = crossing_kind(machine["native"]["family"], path)

    def apply(factor: float) -> None:
        section["crossing_efficiency"] = min(1.0, max(0.2, factor))

    bisect(apply, lambda: model.bench(machine, where, kind, LONG, path, 0, repeats=3).pure, pure_ns, -1)


def bisect(apply: Callable[[float], None], predict: Callable[[], float], target: float, sign: int) -> None:
    """Leaves the factor, from 1/30 to 30, with which the prediction is nearest the target. `sign`: does it grow (1) or
    fall (-1) with the factor?"""
    low, high = -math.log(30), math.log(30)
    for _ in range(14):
        middle = (low + high) / 2
        apply(math.exp(middle))
        if sign * (predict() - target) < 0:
            low = middle
        else:
            high = middle
