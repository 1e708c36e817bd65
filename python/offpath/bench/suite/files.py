# SPDX-License-Identifier: BSD-3-Clause
"""`offpath bench files`: how much of a write of a file hides behind computation, without and with Offpath."""

from __future__ import annotations

import contextlib
import functools
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import typer

from offpath.base import commands
from offpath.base.errors import UserError
from offpath.base.paths import built, paths
from offpath.base.sizes import parse_sizes
from offpath.bench.kit import Benchmark, Case, Site, Table, options, peers, rows, turns
from offpath.places import asked, comparison
from offpath.places.comparison import LoopbackPlace, Place

# No row of files is there by default (docs/performance/files.md says why).
POLICY = "*:host,write:1-inf:dpu"
PEERS = ("host", "thread", "offpath")
MEASURED = ("t_pure_ns", "t_compute_ns", "t_total_ns", "efficiency")
BENCHMARK = Benchmark([
    Table("{mpi:mpi}: a write of a file with computation, ms", [
        ("size", "{bytes:size}"), ("peer", lambda row: peers.TITLES[row["peer"]]), ("t_pure", "{t_pure_ns:ms}"),
        ("t_compute", "{t_compute_ns:ms}"), ("t_total", "{t_total_ns:ms}"), ("efficiency", "{efficiency:.3f}"),
        ("min-max", "{efficiency_min:.2f}-{efficiency_max:.2f}"),
    ], keys=2, strong=lambda row: row["peer"] == "offpath"),
])  # fmt: skip

app = commands.alone()


@app.command()
def files_command(
    mpi: asked.Mpis = "both",
    ranks: Annotated[int, typer.Option(min=2, help="Ranks on this machine; those that do not write sleep.")] = 2,
    writers: Annotated[int, typer.Option(min=1, help="Ranks that compute and write, each its own part.")] = 1,
    sizes: Annotated[str, typer.Option(help="Bytes that a rank writes.")] = "1M,16M,64M,256M",
    folder: Annotated[Path, typer.Option(exists=True, file_okay=False, help="Where the file is made.")] = Path("/tmp"),
    names: Annotated[str, typer.Option("--peers", help="host, thread, offpath.")] = ",".join(PEERS),
    runs: asked.Runs = 3,
    repeats: asked.Repeats = 10,
    json_file: options.JsonFile = None,
) -> None:
    """Compare MPI_File_iwrite_at behind a computation without and with Offpath, on this machine.

    The computation is a fixed amount of work, set in the first launch of the MPI alone to last as long as its write,
    and the same for all. host is the MPI alone; thread a thread of the program's own that calls pwrite() on its
    rank's core. Efficiency is max(t_pure, t_compute) / t_total: 1 hides everything, 0.5 nothing. With fewer --writers
    than cores the service finds a core that computes nothing.

    Example:

        offpath bench files --sizes 16M,64M --folder /scratch --json files.json
    """
    kinds = comparison.chosen_mpis(mpi)
    byte_sizes = parse_sizes(sizes)
    chosen = options.names(names, PEERS, "a peer")
    options.check_files(json_file)
    if writers > ranks:
        raise UserError(f"{writers} of {ranks} ranks cannot write. Change --writers or --ranks.")
    try:
        tempfile.TemporaryFile(dir=folder).close()
    except OSError as error:
        raise UserError(f"No file can be made in {folder} ({error.strerror}). Give another --folder.") from None
    built(paths().preload_library)
    writing = Writing(byte_sizes, writers, repeats, folder)
    cases = [
        Case({"mpi": kind, "peer": peer}, functools.partial(writing.launch, kind, peer))
        for kind in kinds
        for peer in chosen
    ]
    site = Site([cases], lambda: contextlib.nullcontext(LoopbackPlace(ranks)))
    meta = comparison.base_meta(kinds) | {"writers": writers, "policy": POLICY, "folder": str(folder)}
    meta |= turns.measure([site], runs)
    BENCHMARK.deliver({"meta": meta, "rows": rows.of_cases(cases, MEASURED)}, json_file)


@dataclass
class Writing:
    """Launches of the program with the same work for each size, which the first one with an MPI sets."""

    sizes: tuple[int, ...]
    writers: int
    repeats: int
    folder: Path
    work: dict[str, list[int]] = field(default_factory=dict)

    def launch(self, mpi: str, peer: str, where: Place) -> list[dict]:
        argv = [str(paths().bench_program("file_writes", mpi)), "--sizes", ",".join(map(str, self.sizes))]
        argv += ["--writers", str(self.writers), "--repeats", str(self.repeats)]
        argv += ["--way", "thread" if peer == "thread" else "mpi", "--file", str(self.folder / "offpath-bench.dat")]
        if mpi in self.work:
            argv += ["--work-iterations", ",".join(map(str, self.work[mpi]))]
        offloads = peer == "offpath"
        output, _ = comparison.run_for_json(where, mpi, argv, offloads, {"OFFPATH_POLICY": POLICY} if offloads else {})
        self.work.setdefault(mpi, [row["work_iterations"] for row in output["rows"]])
        return output["rows"]
