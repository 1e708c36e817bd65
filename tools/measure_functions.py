#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Says where a program's time goes, by MPI function: with the MPI alone and with Offpath, in turns.

    .venv/bin/python tools/measure_functions.py gpaw espresso --json build/functions.json

Programs: measured_programs/programs.json. In every run the ranks record their calls, with the MPI alone, too.
"""

from __future__ import annotations

import contextlib
import functools
import statistics
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "python"), str(ROOT / "tools")]

import typer  # noqa: E402
from foreign_programs import (  # noqa: E402
    FOLDER,
    PROGRAMS,
    Nodes,
    Program,
    Publish,
    RanksOnEach,
    Rate,
    Runs,
    as_program,
    conditions,
    run,
    same,
)
from measure_programs import ALL  # noqa: E402
from offpath.base import files  # noqa: E402
from offpath.base.errors import UserError  # noqa: E402
from offpath.bench.kit import Benchmark, Case, Site, Table, options, turns  # noqa: E402
from offpath.lab import Lab  # noqa: E402
from offpath.launch.mpis import OPENMPI  # noqa: E402
from offpath.places import comparison  # noqa: E402
from offpath.plan import profile_command as profiling  # noqa: E402
from offpath.telemetry import recording  # noqa: E402
from offpath.trace import parts  # noqa: E402

APPLICATION, CALLS, OTHER = "the program", "all recorded calls", "other calls"
SHOWN = 5  # functions, those that take longest
ALONE = "alone"


def tracing(prefix: Path) -> dict[str, str]:
    return {recording.VARIABLE: str(prefix)}


# Name -> (offloaded, what makes the ranks record, what else is set).
SETTINGS: Mapping[str, tuple[bool, Callable[[Path], Mapping[str, str]], Mapping[str, str]]] = {
    ALONE: (False, profiling.variables, {}),
    "defaults": (True, tracing, {}),
    "everything": (True, tracing, ALL),
}


def seconds_of(prefix: Path, ranks: int) -> Counter[str]:
    """By MPI function, a rank's mean."""
    times: Counter[str] = Counter()
    for part in prefix.parent.glob(prefix.name + ".*"):
        for line in parts.read(part):
            if "call" in line:
                times[line["call"]] += (line["end_ns"] - line["begin_ns"]) / 1e9 / ranks
    return times


def launch(program: Program, mpi: str, ppn: int, nodes: int, name: str, lab: Lab) -> dict:
    offload, recorded, env = SETTINGS[name]
    with tempfile.TemporaryDirectory(dir=FOLDER, prefix="record-") as folder:
        prefix = Path(folder) / "rank"
        ran = run(program, mpi, ppn, offload, {**env, **recorded(prefix)}, lab)
        if not ran.results:
            raise UserError(f"status {ran.status}, '{name}': {ran.words[-600:] or 'it said nothing'}", 1)
        return {"seconds": ran.seconds, "results": ran.results, "functions": seconds_of(prefix, nodes * ppn)}


def rows(program: Program, cases: list[Case]) -> list[dict]:
    runs = {case.labels["setting"]: case.launches for case in cases}
    first = runs[ALONE][0]["results"]
    verified = all(same(each["results"], first, program.tolerance) for launches in runs.values() for each in launches)

    def medians(take: Callable[[dict], float]) -> dict[str, float]:
        return {name: statistics.median(take(each) for each in launches) for name, launches in runs.items()}

    longest: Counter[str] = Counter()
    for launches in runs.values():
        for name in launches[0]["functions"]:
            longest[name] = max(longest[name], statistics.median(each["functions"][name] for each in launches))
    shown = [name for name, _ in longest.most_common(SHOWN)]
    found = {
        APPLICATION: medians(lambda each: each["seconds"]),
        CALLS: medians(lambda each: sum(each["functions"].values())),
        **{name: medians(lambda each, name=name: each["functions"][name]) for name in shown},
        OTHER: medians(lambda each: sum(each["functions"].values()) - sum(each["functions"][name] for name in shown)),
    }
    return [{"program": program.name, "function": name, **times, "verified": verified} for name, times in found.items()]


TABLE = Table(
    "Where the time goes, s",
    [("program", "{program}"), ("function", "{function}"), *((name, f"{{{name}:.3f}}") for name in SETTINGS)],
    note="Of the calls: the mean of all ranks.",
)


def published(result: dict, options: str) -> dict:
    """As docs/figures/results has it."""
    meta = result["meta"]
    times = [*SETTINGS]
    return {
        "benchmark": "functions",
        "about": "time by MPI function, Open MPI",
        "command": f".venv/bin/python tools/measure_functions.py {options} --json build/functions.json",
        "conditions": conditions(meta, "in s, of calls the mean of all ranks"),
        "launches": meta["runs"],
        "columns": [[name, f"{{{name}}}"] for name in ("program", "function", *times)],
        "rows": [
            {"program": each["program"], "function": each["function"]} | {name: round(each[name], 3) for name in times}
            for each in result["rows"]
        ],
    }


def measure(
    programs: Annotated[list[str], typer.Argument(help="Which.")],
    nodes: Nodes = 2,
    ppn: RanksOnEach = 1,
    rate: Rate = "1gbit",
    runs: Runs = 3,
    json_file: options.JsonFile = None,
    publish: Publish = None,
) -> None:
    """Says where programs' time goes, by MPI function, with the MPI alone and with Offpath."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    asked = {"mpi": OPENMPI, "nodes": nodes, "ppn": ppn, "rate": rate, "runs": runs}
    result = {"meta": comparison.base_meta([OPENMPI]) | asked | {"complete": True, "failures": []}, "rows": []}
    with Lab(nodes=nodes, rate=rate) as lab:
        for program in (PROGRAMS[name] for name in options.names(",".join(programs), PROGRAMS, "a program")):
            program.prepared(OPENMPI)
            cases = [
                Case({"program": program.name, "setting": name},
                     functools.partial(launch, program, OPENMPI, ppn, nodes, name)) for name in SETTINGS
            ]  # fmt: skip
            found = turns.measure([Site([cases], functools.partial(contextlib.nullcontext, lab))], runs)
            result["meta"]["failures"] += found["failures"]
            if found["failures"] or not found["complete"]:
                result["meta"]["complete"] = False
                break
            result["rows"] += rows(program, cases)
    try:
        Benchmark([TABLE]).deliver(result, json_file)
    finally:  # it ends by an exception, and has looked at the machine then
        if publish:
            usual = {"nodes": 2, "runs": 3}
            changed = [f"--{name} {asked[name]}" for name in usual if asked[name] != usual[name]]
            files.write_json(publish, published(result, " ".join([*programs, *changed])))


if __name__ == "__main__":
    as_program(measure)
