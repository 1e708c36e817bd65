# SPDX-License-Identifier: BSD-3-Clause
"""`offpath bench bspmm`: a block-sparse product (apps/bspmm) whose communication, products, or both are off the ranks'
path."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Annotated

import typer

from offpath.base import commands
from offpath.base.paths import built, paths
from offpath.base.sizes import parse_numbers
from offpath.bench.kit import Benchmark, Case, Site, Table, options, rows, turns
from offpath.bench.suite.onesided import COMPONENTS
from offpath.lab.plan import parse_rate
from offpath.places import asked, comparison
from offpath.places.comparison import Place

POLICY = "window:dpu"  # all gets and updates: the default finds out which are better off natively
VARIANTS = ("nonblocking", "blocking")
# Whether the service communicates, and who multiplies.
WAYS = {
    "host": (False, "own"),
    "communication": (True, "own"),
    "products": (False, "tasks"),
    "both": (True, "tasks"),
}
MEASURED = ("t_total_s", "t_compute_s", "t_communication_s", "rank_cpu_s", "verified")


def _of(field: str, *ways: str) -> Callable[[list[dict]], Iterable[float]]:
    return lambda found: [row[field] for row in found if row["way"] in ways and row[field] is not None]


BENCHMARK = Benchmark([
    Table("{mpi:mpi}: block-sparse product, {variant}, seconds", [
        ("tile", "{tile}"), ("off the path", "{way}"), ("t_total", "{t_total_s:.3f}"),
        ("min-max", "{t_total_s_min:.3f}-{t_total_s_max:.3f}"), ("multiplying", "{t_compute_s:.3f}"),
        ("communication", "{t_communication_s:.3f}"), ("total / longer", "{over_longer:.2f}"),
        ("a rank's processor", "{rank_cpu_s:.3f}"), ("gain", "{gain:.2f}"),
    ], keys=2, strong=lambda row: row["way"] == "both"),
], {
    "bspmm_gain_ratio": _of("gain", "communication"),
    "bspmm_both_gain_ratio": _of("gain", "both"),
    "bspmm_longer_ratio": _of("over_longer", "communication", "both"),
}, subject=lambda row: row["mpi"], aimed_at=lambda meta: meta.get("place") == "lab")  # fmt: skip

app = commands.alone()


@app.command()
def bspmm_command(
    mpi: asked.Mpis = "both",
    nodes: Annotated[int, typer.Option(min=1, help="Nodes of the lab.")] = 2,
    ppn: asked.Ppn = 1,
    rate: asked.Rate = "1gbit",
    tile: Annotated[str, typer.Option(help="Rows and columns of a tile.")] = "64,128,256",
    tiles: Annotated[int, typer.Option(min=1, max=512, help="Rows and columns of the matrices, in tiles.")] = 8,
    variants: Annotated[str, typer.Option(help="nonblocking, blocking.")] = "nonblocking",
    ways: Annotated[str, typer.Option(help="host, communication, products, both.")] = ",".join(WAYS),
    policy: Annotated[str, typer.Option(help="What goes to the DPU.")] = POLICY,
    runs: asked.Runs = 3,
    repeats: asked.Repeats = 3,
    loopback: asked.Loopback = False,
    json_file: options.JsonFile = None,
) -> None:
    """Time of a block-sparse product by one-sided operations (apps/bspmm), with parts of it off the ranks' path.

    *host*: the MPI alone, ranks multiply. *communication*: services get and add tiles. *products*: each product of
    tiles is a task of an executor beside the rank. *both*: ranks only say what is next. Gain: t_total of host / of this
    one. *total / longer*: t_total / the longer of multiplying and communication; 1 hides the shorter one. Each result
    is compared with a dense reference, outside the times.
    The nodes of a lab share the cores of this machine, and so do executors and ranks.

    Examples:

        offpath bench bspmm --json bspmm.json

        offpath bench bspmm --mpi mpich --tile 128 --variants nonblocking,blocking --ways host,both
    """
    kinds = comparison.chosen_mpis(mpi)
    sizes, chosen = parse_numbers(tile, "--tile", most=2048), options.names(ways, WAYS, "a way")
    forms = options.names(variants, VARIANTS, "a variant")
    options.check_files(json_file)
    comparison.check(loopback)
    if not loopback:
        parse_rate(rate)
    built(paths().preload_library)
    groups = [
        [
            Case(
                {"mpi": kind, "variant": form, "tile": size, "way": way},
                functools.partial(_launch, kind, size, tiles, form, way, policy, repeats),
            )
            for way in chosen
        ]
        for kind in kinds
        for form in forms
        for size in sizes
    ]
    site = Site(groups, lambda: comparison.place(nodes, ppn, rate, loopback))
    meta = comparison.base_meta(kinds) | {"tiles": tiles} | comparison.policy_meta(policy)
    meta |= turns.measure([site], runs)
    BENCHMARK.deliver({"meta": meta, "rows": [row for group in groups for row in _rows(group)]}, json_file)


def _launch(
    mpi: str, tile: int, tiles: int, variant: str, way: str, policy: str, repeats: int, where: Place
) -> dict:
    offloads, products = WAYS[way]
    argv = [str(paths().app("bspmm_tasks", mpi)), "--tile", str(tile), "--tiles", str(tiles), "--variant", variant]
    argv += ["--products", products, "--repeats", str(repeats), "--check"]
    env = COMPONENTS | {"OFFPATH_SERVICE_SHARE": "1"} | ({"OFFPATH_POLICY": policy} if offloads else {})
    output, _ = comparison.run_for_json(where, mpi, argv, offloads, env)
    return {name: output[name] for name in MEASURED}


def _rows(group: Sequence[Case]) -> list[dict]:
    """Of one product, done in several ways."""
    found = rows.of_cases(group, ("t_total_s",))
    alone = next((row["t_total_s"] for row in found if row["way"] == "host"), None)
    for row in found:
        row["gain"] = alone / row["t_total_s"] if alone else None
        row["over_longer"] = row["t_total_s"] / max(row["t_compute_s"], row["t_communication_s"])
    return found
