# SPDX-License-Identifier: BSD-3-Clause
"""`offpath plan law`: computation, memory and network of matrix multiplication and the 3-D FFT on P nodes.

T_compute = W/P, T_memory = W/(P f(Z)), T_network = W/h(n) g(P)/P. Source: Czechowski, Battaglino, McClanahan, Iyer,
Yeung, Vuduc (ICS 2012) and Czechowski et al. (HotPar 2011). Units: seconds, bytes, words of 8 or 16 bytes.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Optional

import typer

from offpath.base import console, files
from offpath.base.errors import UserError
from offpath.base.tables import Table
from offpath.pages import report
from offpath.plan import machine as machines

WORD_BYTES, COMPLEX_BYTES = 8, 16
EXCHANGES = 2  # of a 3-D FFT in pencils
FFT_MEMORY = 6.3  # passes over memory of FFT and transposes on processors
TOPOLOGIES = ("full", "torus2", "torus3", "torus4")
PROBLEMS = ("matmul", "fft")
CURVES = {
    "T_compute": "t_compute_s", "T_memory": "t_memory_s", "T_network": "t_network_s", "no overlap": "no_overlap_s",
    "DPU": "dpu_s",
}  # fmt: skip
HEADER = ("nodes", "T_compute, s", "T_memory, s", "T_network, s", "no overlap, s", "DPU, s", "Tflop/s")


@dataclass(frozen=True)
class Node:
    flop_per_s: float = 1e12
    memory_bytes_per_s: float = 100e9
    link_bytes_per_s: float = 12.5e9
    fast_bytes: float = 32e6  # Z

    @classmethod
    def of(cls, machine: dict) -> Node:
        """With one core."""
        rates = machines.rates(machine)
        return cls(rates.core_flop_per_s, rates.core_memory_bytes_per_s, rates.link_bytes_per_s)


@dataclass(frozen=True)
class Law:
    compute_s: float
    memory_s: float
    network_s: float

    @property
    def no_overlap_s(self) -> float:
        return self.compute_s + self.memory_s + self.network_s

    @property
    def full_overlap_s(self) -> float:
        return max(self.compute_s, self.memory_s, self.network_s)

    def dpu_s(self, overlap: float) -> float:
        """`overlap`: the part of the network's time that the DPU hides where there is enough to hide it behind."""
        return self.no_overlap_s - min(overlap * self.network_s, self.compute_s + self.memory_s)


def matmul(n: float, nodes: int, node: Node, copies: int = 1) -> Law:
    """2-D (Cannon, SUMMA), 2.5-D with `copies` of the matrices; h grows like n, g like sqrt(P)."""
    work = 2 * n**3
    words = node.fast_bytes / WORD_BYTES
    return Law(
        work / (nodes * node.flop_per_s),
        WORD_BYTES * work / (nodes * math.sqrt(words) * node.memory_bytes_per_s),
        WORD_BYTES * 2 * n**2 / (math.sqrt(nodes * copies) * node.link_bytes_per_s),
    )


def topology_penalty(nodes: int, topology: str) -> float:
    """g(P): 1 with full bisection, P^(1/d) on a torus of d dimensions."""
    return 1.0 if topology == "full" else nodes ** (1 / int(topology.removeprefix("torus")))


def fft(n: float, nodes: int, node: Node, topology: str = "full") -> Law:
    points = n**3
    words = node.fast_bytes / COMPLEX_BYTES
    passes = FFT_MEMORY * max(1.0, math.log(n) / math.log(words))
    return Law(
        15 * points * math.log2(n) / (nodes * node.flop_per_s),
        passes * points * COMPLEX_BYTES / (nodes * node.memory_bytes_per_s),
        EXCHANGES * COMPLEX_BYTES * points / (nodes * node.link_bytes_per_s) * topology_penalty(nodes, topology),
    )


def slab_s(points: float, nodes: int, latency_s: float, link_bytes_per_s: float) -> float:
    """One exchange of a slab decomposition, messages one after the other. Source: heFFTe (Ayala et al., ICCS 2020)."""
    return (nodes - 1) * (latency_s + COMPLEX_BYTES * points / (link_bytes_per_s * nodes**2))


def pencil_s(points: float, rows: int, columns: int, latency_s: float, link_bytes_per_s: float) -> float:
    """The two exchanges of a pencil decomposition on rows x columns nodes."""
    nodes = rows * columns
    return sum(
        (side - 1) * (latency_s + COMPLEX_BYTES * points / (link_bytes_per_s * side * nodes))
        for side in (rows, columns)
    )


def peak_flop_per_s(points: float, nodes: int, link_bytes_per_s: float, reshapes: int = 4) -> float:
    """Bound on the speed of a 3-D FFT that waits for its network: 5 P log2(N) B / (alpha r)."""
    return 5 * nodes * math.log2(points) * link_bytes_per_s / (COMPLEX_BYTES * reshapes)


def curve(problem: str, n: float, counts: list[int], node: Node, topology: str, overlap: float) -> list[dict]:
    rows = []
    for count in counts:
        law = matmul(n, count, node) if problem == "matmul" else fft(n, count, node, topology)
        work = 2 * n**3 if problem == "matmul" else 15 * n**3 * math.log2(n)
        rows.append(
            {
                "nodes": count, "t_compute_s": law.compute_s, "t_memory_s": law.memory_s, "t_network_s": law.network_s,
                "no_overlap_s": law.no_overlap_s, "full_overlap_s": law.full_overlap_s, "dpu_s": law.dpu_s(overlap),
                "flop_per_s": work / law.dpu_s(overlap),
            }
        )  # fmt: skip
    return rows


def law_command(
    problem: Annotated[str, typer.Option(help="matmul or fft.")] = "fft",
    n: Annotated[
        int, typer.Option("--n", min=2, help="Rows of the matrices, or points along a side of the box.")
    ] = 4096,
    max_nodes: Annotated[int, typer.Option(min=1, help="Up to that many nodes, in powers of two.")] = 4096,
    topology: Annotated[str, typer.Option(help="full, torus2, torus3 or torus4.")] = "full",
    machine_file: Annotated[
        Optional[Path],
        typer.Option("--machine", metavar="FILE", help="What offpath calibrate wrote: nodes of one such core."),
    ] = None,
    flops: Annotated[Optional[float], typer.Option(help="GFlop/s of a node. Default: 1000, or the machine's.")] = None,
    memory: Annotated[
        Optional[float], typer.Option(help="GB/s of a node's memory. Default: 100, or the machine's.")
    ] = None,
    link: Annotated[
        Optional[float], typer.Option(help="GB/s of a node's link. Default: 12.5, or the machine's.")
    ] = None,
    fast: Annotated[Optional[float], typer.Option(help="MB of a node's fast memory. Default: 32.")] = None,
    overlap: Annotated[float, typer.Option(min=0, max=1, help="Part of the network's time that a DPU hides.")] = 0.9,
    html: Annotated[Optional[Path], typer.Option(help="Write a page with the curves there.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="JSON on stdout.")] = False,
) -> None:
    """The law of computation, memory and network, as a table and curves over the number of nodes.

    Examples:

        offpath plan law --problem fft --n 8192 --topology torus3

        offpath plan law --problem matmul --html law.html
    """
    if problem not in PROBLEMS or topology not in TOPOLOGIES:
        raise UserError(
            f"'{problem if problem not in PROBLEMS else topology}' is not known here. "
            f"Give --problem {' or '.join(PROBLEMS)}, "
            f"--topology {', '.join(TOPOLOGIES)}."
        )
    node = Node.of(machines.load(machine_file)) if machine_file else Node()
    for name, value, field, unit in (
        ("flops", flops, "flop_per_s", 1e9),
        ("memory", memory, "memory_bytes_per_s", 1e9),
        ("link", link, "link_bytes_per_s", 1e9),
        ("fast", fast, "fast_bytes", 1e6),
    ):
        if value is None:
            continue
        if not 0 < value < 1e9:
            raise UserError(f"--{name} {value:g} is absurd (it should be above 0). Give another value.")
        node = replace(node, **{field: value * unit})
    files.writable_file(html, "--html")
    counts = [2**k for k in range(max_nodes.bit_length()) if 2**k <= max_nodes]
    rows = curve(problem, n, counts, node, topology, overlap)
    if html:
        html.write_text(page(problem, n, topology, rows))
    if as_json:
        print(json.dumps({"problem": problem, "n": n, "topology": topology, "rows": rows}, indent=1))
        return
    table = Table(*HEADER)
    for row in rows:
        table.add_row(*_cells(row))
    console.out.print(table)


def page(problem: str, n: int, topology: str, rows: list[dict]) -> str:
    title = f"{problem}, n = {n}, {topology}"
    curves = {name: [row[field] for row in rows] for name, field in CURVES.items()}
    chart = report.lines("times over nodes", [row["nodes"] for row in rows], curves, "nodes", "seconds")
    return report.page(
        f"The law of computation, memory and network: {title}",
        "Time on so many nodes, if nothing overlapped, and with a DPU that hides communication.",
        [report.card(title, chart), report.card("All numbers", report.table(HEADER, [_cells(row) for row in rows]))],
    )


def _cells(row: dict) -> list[str]:
    times = ("t_compute_s", "t_memory_s", "t_network_s", "no_overlap_s", "dpu_s")
    return [str(row["nodes"]), *(f"{row[time]:.4g}" for time in times), f"{row['flop_per_s'] / 1e12:.3g}"]
