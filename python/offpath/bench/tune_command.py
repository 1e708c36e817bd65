# SPDX-License-Identifier: BSD-3-Clause
"""`offpath tune`: measure on this machine what offloading gains, and write its policy file."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Optional

import typer

from offpath.base import commands, console, files
from offpath.base.errors import UserError
from offpath.base.oldest import zip_equal
from offpath.base.paths import built, paths
from offpath.base.sizes import parse_numbers, parse_sizes, size_text
from offpath.base.tables import STYLE, Table
from offpath.bench import measuring, tuning
from offpath.bench.kit import options, trust
from offpath.bench.measuring import ALONE, COLLECTIVES, Conditions, Peer, Series
from offpath.bench.suite import pt2pt
from offpath.bench.tuning import PATTERN, SEND, Decision
from offpath.lab.plan import MAX_NODES
from offpath.launch import cluster_files, policy_table
from offpath.launch.mpis import TITLES
from offpath.places import allocation, asked, comparison
from offpath.places.asked import OnNodes

app = commands.alone()


@app.command(rich_help_panel=commands.FIRST)
@commands.by_concern
def tune_command(
    there: OnNodes,
    mpi: Annotated[str, typer.Option(help="openmpi, mpich or both; with both, both must gain.")] = "both",
    nodes: Annotated[str, typer.Option(help="Nodes of the labs, one after the other, like 2,4.")] = "2",
    ppn: asked.Ppn = 1,
    rate: asked.Rate = "250mbit",
    sizes: Annotated[
        str, typer.Option(help="All bytes that a rank sends or receives, whichever is more; of send: of a message.")
    ] = "16K,64K,128K,256K,512K,1M,4M",
    collectives: Annotated[
        Optional[str],
        typer.Option(
            help="Which, separated by commas; send: messages (MPI_Isend). Default: all whose size the ranks know "
            "alike, and send."
        ),
    ] = None,
    algorithms: Annotated[
        bool,
        typer.Option(
            "--algorithms",
            help="Also try every algorithm a collective knows: many times as long, for programs that live on one.",
        ),
    ] = False,
    runs: asked.Runs = 3,
    repeats: asked.Repeats = 10,
    loopback: asked.Loopback = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the rows, write no policy file.")] = False,
    json_file: Annotated[Optional[Path], typer.Option("--json", help="Write decisions and measurements there.")] = None,
) -> None:
    """Find out from which size on offloading pays on this machine, and write that down for `offpath run` and the lab.

    Each collective is measured with computation, on the host and offloaded in turns, as by `offpath bench collectives`.
    Messages (*send*) are, as by `offpath bench pt2pt`.
    It is offloaded from the smallest size on from which t_total is at least 3 % better at every larger size measured.
    The rows go to ~/.config/offpath/policy (or OFFPATH_POLICY_FILE), where they come between the measured rows that
    ship with Offpath and OFFPATH_POLICY. With --loopback it measures inside one node.

    With --launch it measures on the nodes of your job instead, over their network. Its rows are for this cluster and
    the launcher's MPI only (~/.config/offpath/clusters/NAME/MPI/policy). On that cluster `offpath run` reads them in
    place of the file above.

    Examples:

        offpath tune --launch "srun --mpi=pmi2" --mpi mpich

        offpath tune --launch "mpirun -np {ranks} --map-by ppr:1:node -hostfile hosts" --cluster hall --nodes 2,4

        offpath tune --dry-run --collectives ialltoall,iallreduce

        offpath tune --collectives send --rate 1gbit

        offpath tune --nodes 2,4 --algorithms --json tuning.json
    """
    started = allocation.launcher(there, mpi)
    kinds = [started.mpi] if started else comparison.chosen_mpis(mpi)
    node_counts = parse_numbers(nodes, "--nodes", most=1 << 30 if started else MAX_NODES)
    byte_sizes = tuple(sorted(set(parse_sizes(sizes))))
    table = policy_table.parse()
    known = {
        each.name: each
        for each in table.collectives
        if each.name == SEND or (each.name in COLLECTIVES and not each.irregular)
    }
    names = options.names(collectives or ",".join(known), list(known), "a regular collective, or send")
    file = None if dry_run else _file_to_write(started)
    files.writable_file(json_file, "--json")
    built(paths().preload_library)

    decisions: list[Decision] = []
    results: list[dict] = []
    for node_count in node_counts:
        where = allocation.place(started, node_count, ppn) if started else None
        if where is not None:
            node_count, ppn = len(where.nodes), where.ppn
        here = [name for name in names if name != SEND or _measures_messages(node_count, ppn, decisions)]
        all_series = [_series(kind, known[name], byte_sizes, algorithms) for name in here for kind in kinds]
        if not all_series:
            continue
        conditions = Conditions(node_count, ppn, rate, loopback, runs, repeats, where)
        results.append(measuring.compare(kinds, conditions, all_series, {"sizes_bytes": list(byte_sizes)}))
        on_nodes = results[-1]["meta"]["nodes"]
        for name in here:
            series = [each for each in all_series if each.name == _measured_as(name)]
            # Without launches that offloaded there is nothing to decide by: what ships with Offpath stays.
            if all(len(each.launches[peer]) == runs for each in series for peer in (ALONE.name, tuning.PREFIX)):
                fields = {series[0].program.noun: _measured_as(name)}
                decisions.append(tuning.decide(results[-1]["rows"], name, on_nodes, kinds, fields))
        if not results[-1]["meta"]["complete"] or on_nodes != node_count:
            break  # interrupted; or on loopback, where there is one node only
        if started and not started.counts_nodes:
            break  # it starts ranks on the same nodes each time
    if not results:
        raise UserError("Nothing is left to be measured (each rank needs a partner). Change --nodes or --ppn.")
    rows = policy_table.parse(tuning.sources(decisions, table)).rows
    lines = policy_lines(rows)
    written = None
    try:
        if file and lines and all(result["meta"]["complete"] for result in results):
            write_policy(file, lines, [result["meta"] for result in results])
            written = str(file)
        if json_file:
            texts = [row["text"] for row in rows if row["source"] != policy_table.MEASURED]
            about = {"file": written, "policy": texts, "measurements": results}
            files.write_json(json_file, about | {"decisions": [_decision_json(each) for each in decisions]})
    finally:  # whichever of both fails
        _show(decisions)
        print("\n".join(lines))
    if written:
        readers = f"offpath run uses it on {started.cluster}" if started else "offpath run and the lab use it"
        console.note(f"written to {file}; {readers} from now on.")
    elif file:
        console.note("no policy file was written (not enough was measured to decide by).")
    raise typer.Exit(max(trust.exit_status(result) for result in results))


def _measured_as(name: str) -> str:
    """What the program is asked for."""
    return PATTERN if name == SEND else name


def _series(mpi: str, collective: policy_table.Collective, sizes: tuple[int, ...], algorithms: bool) -> Series:
    program = pt2pt.PROGRAM if collective.name == SEND else measuring.COLLECTIVE_PROGRAM
    return Series(mpi, _measured_as(collective.name), sizes, _peers(collective, algorithms), program)


def _measures_messages(nodes: int, ppn: int, decisions: Sequence[Decision]) -> bool:
    """Every rank needs a partner. A message knows one node and two of them; more say nothing new."""
    if nodes * ppn % 2:
        console.note(f"send is left out on {nodes} nodes ({nodes * ppn} ranks: each needs a partner).")
        return False
    return not any(each.collective == SEND and each.nodes > 1 for each in decisions)


def _peers(collective: policy_table.Collective, algorithms: bool) -> tuple[Peer, ...]:
    """The host, the default algorithm and, if wanted and there is a choice, each algorithm by name."""
    tried = [tuning.PREFIX]
    if algorithms and len(collective.algorithms) > 1:
        tried += [f"{tuning.PREFIX}={name}" for name in collective.algorithms]
    nothing_else = {policy_table.FILE_VARIABLE: policy_table.NO_FILE}
    policies = {path: nothing_else | {"OFFPATH_POLICY": f"{collective.name}:{path}"} for path in tried}
    return (ALONE, *(Peer(path, offload=True, env=env, must_offload=True) for path, env in policies.items()))


def _file_to_write(started: allocation.Launcher | None) -> Path:
    if started is not None:
        file = cluster_files.file(started.cluster, started.mpi, cluster_files.POLICY)
        files.writable_file(file, "the policy file")
        return file
    chosen = os.environ.get(policy_table.FILE_VARIABLE)
    if chosen == policy_table.NO_FILE:
        raise UserError("OFFPATH_POLICY_FILE=none (nobody would read what is written). Unset it, or give --dry-run.")
    file = Path(chosen) if chosen else policy_table.default_file()
    files.writable_file(file, policy_table.FILE_VARIABLE)
    return file


def policy_lines(rows: Sequence[dict]) -> list[str]:
    """As a policy file has them; those that were not measured here say why they are there."""
    own = [row for row in rows if row["source"] != policy_table.MEASURED]
    return [row["text"] + ("" if row["source"] == tuning.HERE else f"  # {row['source']}") for row in own]


def write_policy(file: Path, rows: Sequence[str], metas: Sequence[dict]) -> None:
    """The rows with what they hold for, in place of what was there before; never half written."""
    first = metas[0]
    versions = ", ".join(f"{TITLES[kind]} {version}" for kind, version in first["mpi_versions"].items())
    places = "; ".join(f"{each['nodes']} x {each['ppn']} ranks, {each['rate'] or each['place']}" for each in metas)
    lines = [
        f"# Offpath {first['offpath']} ({first['commit'] or 'no commit'}), offpath tune, {first['date']}",
        f"# {first['hardware']}: {places}; {first['processor']}, {first['cores_available']} cores; {versions}",
        f"# median of {first['runs']} launches x {first['repeats']} repeats; offloaded where it is at least "
        f"{100 * (tuning.GUARD - 1):.0f} % faster from there up",
        *rows,
    ]
    files.write_text(file, "\n".join(lines) + "\n")


def _show(decisions: Sequence[Decision]) -> None:
    header = ("collective", "nodes", "offloaded from", "how", "gain from there up")
    table = Table(*header, keys=2, **STYLE)
    for each in decisions:
        gains = each.gains[each.first :]
        table.add_row(
            each.collective,
            str(each.nodes),
            size_text(each.sizes[each.first]) if each.offloads else "never",
            ", ".join(dict.fromkeys(each.best[each.first :])) or "host",
            f"{min(gains):.2f} - {max(gains):.2f} x" if gains else f"{each.gains[-1]:.2f} x at the largest size",
        )
    console.out.print(table)


def _decision_json(decision: Decision) -> dict:
    return {
        "collective": decision.collective,
        "nodes": decision.nodes,
        "from_bytes": decision.sizes[decision.first] if decision.offloads else None,
        "sizes": [
            {"bytes": size, "path": path, "gain": gain}
            for size, path, gain in zip_equal(decision.sizes, decision.best, decision.gains)
        ],
    }
