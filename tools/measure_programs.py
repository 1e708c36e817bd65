#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Times programs in a lab: with the MPI alone, with Offpath as it is, and with the setting that suits them best.

    .venv/bin/python tools/measure_programs.py --json build/programs.json

Programs: measured_programs/programs.json. Rows that the file of --json already has under the same conditions are
kept: what was interrupted goes on. Packages: tools/setup nightly and tools/setup --programs; a program that is not
installed is left out.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import json
import operator
import re
import statistics
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
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
from offpath.base import console, files  # noqa: E402
from offpath.base.errors import UserError  # noqa: E402
from offpath.bench.kit import Benchmark, Case, Line, Site, Table, options, turns  # noqa: E402
from offpath.lab import Lab  # noqa: E402
from offpath.launch import closing_line, stats  # noqa: E402
from offpath.launch.mpis import OPENMPI, TITLES  # noqa: E402
from offpath.places import comparison  # noqa: E402

SLOWER, BY_CHANCE = 1.01, 0.025
ENOUGH = 0.95  # of the best setting's gain


@dataclass(frozen=True)
class Setting:
    name: str
    offload: bool = True
    env: Mapping[str, str] = field(default_factory=dict)


ALL = {"OFFPATH_POLICY": "*:dpu,send:4K-inf:dpu,window:dpu,write:dpu,read:dpu", "OFFPATH_MPI_BLOCKING": "all"}
ALONE, AGAIN, DEFAULTS, BEST = ("MPI alone", "MPI alone again", "defaults", "best of the others")
NATIVE = Setting(ALONE, False)
OTHERS = (
    Setting("`send:64K-inf:dpu`", env={"OFFPATH_POLICY": "send:64K-inf:dpu"}),
    Setting("`*:dpu`, `send:64K-inf:dpu`", env={"OFFPATH_POLICY": "*:dpu,send:64K-inf:dpu"}),
    Setting("OFFPATH_MPI_BLOCKING=all", env={"OFFPATH_MPI_BLOCKING": "all"}),
    Setting("OFFPATH_MPI_ADAPT=on", env={"OFFPATH_MPI_ADAPT": "on"}),
    Setting("everything", env=ALL),
    Setting("everything, OFFPATH_MAPPED=on", env=ALL | {"OFFPATH_MAPPED": "on"}),
)


def launch(program: Program, mpi: str, ppn: int, setting: Setting, lab: Lab) -> dict:
    ran = run(program, mpi, ppn, setting.offload, setting.env, lab)
    if not ran.results:
        raise UserError(f"status {ran.status}, '{setting.name}': {ran.words[-600:] or 'it said nothing'}", 1)
    return {
        "seconds": ran.seconds, "whole_s": ran.whole_s, "results": ran.results, "setting": setting.name,
        "offloaded": stats.offloaded_count(ran.stats), "failed": stats.total(ran.stats, "failed_count"),
        "said": without_names(closing_line.closing_line(ran.stats)) if setting.offload else "",
    }  # fmt: skip


def without_names(line: str) -> str:
    """What was offloaded and what not, and why: of all programs the ranks and nodes are the same, and advice is not
    asked for."""
    return line.partition("): ")[2].partition(". ")[0].rstrip(".")


def chance(ours: Sequence[float], theirs: Sequence[float]) -> float:
    """How often ours would rank as long among all as they do, or longer, if both were the same (rank-sum test)."""
    together = [*ours, *theirs]
    ranks = [sum(other < each for other in together) + together.count(each) / 2 for each in together]
    found = sum(ranks[: len(ours)])
    sums = [sum(drawn) for drawn in itertools.combinations(ranks, len(ours))]
    return sum(each >= found for each in sums) / len(sums)


def quickest(cases: Sequence[Case]) -> str:
    """Of the other settings, by their one launch."""
    done = [case.launches[0] for case in cases if case.launches]
    if not done:
        raise UserError("no other setting ended well", 1)
    return min(done, key=lambda each: each["seconds"])["setting"]


def cases_of(program: Program, mpi: str, ppn: int) -> list[Case]:
    """Each other setting once; the quickest of them is then launched anew as often as the defaults: that it was quick
    by chance does not count."""

    def case(setting: Setting, name: str = "", once: bool = False) -> Case:
        run = functools.partial(launch, program, mpi, ppn, setting)
        return Case({"program": program.name, "setting": name or setting.name}, run, once)

    others = [case(each, once=True) for each in OTHERS]

    def best(lab: Lab) -> dict:
        name = quickest(others)
        return launch(program, mpi, ppn, next(each for each in OTHERS if each.name == name), lab)

    last = Case({"program": program.name, "setting": BEST}, best)
    return [case(NATIVE), case(Setting(DEFAULTS)), *others, last, case(NATIVE, AGAIN)]


def row(program: Program, cases: Sequence[Case]) -> dict:
    """Of a program of which there are runs with the MPI alone, with the defaults and with the best of the others."""
    found = {case.labels["setting"]: case.launches for case in cases}
    times = {name: [run["seconds"] for run in runs] for name, runs in found.items() if runs}
    native = times[ALONE] + times[AGAIN]
    alone, default, best = (statistics.median(each) for each in (native, times[DEFAULTS], times[BEST]))
    gain, most = alone / default, max(1.0, alone / best)
    runs = [run for launches in found.values() for run in launches]
    return {
        "program": program.name, "does": program.does, "source": program.source, "alone_s": alone,
        "alone_least_s": min(native), "alone_most_s": max(native),
        "again": statistics.median(times[AGAIN]) / statistics.median(times[ALONE]), "default_s": default,
        "of_alone": default / alone, "chance": chance(times[DEFAULTS], native),
        "slower": default > SLOWER * alone and chance(times[DEFAULTS], native) <= BY_CHANCE,
        "best_setting": found[BEST][0]["setting"], "best_s": best, "best_of_alone": best / alone,
        "of_best_gain": gain / most, "behind": gain / most < ENOUGH and chance(times[DEFAULTS], times[BEST]) <= 0.05,
        "whole_of_alone": statistics.median(run["whole_s"] for run in found[DEFAULTS]) / statistics.median(
            run["whole_s"] for run in found[ALONE] + found[AGAIN]),
        "offloaded_count": found[DEFAULTS][0]["offloaded"], "default_said": found[DEFAULTS][0]["said"],
        "best_said": found[BEST][0]["said"], "others": {each.name: times.get(each.name, [None])[0] for each in OTHERS},
        "runs": len(times[DEFAULTS]), "verified": all(len(runs) > 0 for runs in found.values()) and all(
            same(run["results"], runs[0]["results"], program.tolerance) and not run["failed"] for run in runs),
    }  # fmt: skip


def summary(result: dict) -> str:
    rows = [each for each in result["rows"] if each["verified"]]
    named = {
        word: ", ".join(each["program"] for each in rows if each[word]) or "none" for word in ("slower", "behind")
    }
    return f"{len(rows)} programs; slower with the defaults: {named['slower']}; behind the best: {named['behind']}."


BENCHMARK = Benchmark([
    Table("Programs as they are", [
        ("program", "{program}"), ("alone, s", "{alone_s:.3f}"), ("again", "{again:.3f}"),
        ("defaults", "{of_alone:.3f}"), ("slower", lambda row: "yes" if row["slower"] else ""),
        ("best", "{best_of_alone:.3f}"), ("of its gain", "{of_best_gain:.3f}"), ("best setting", "{best_setting}"),
    ], note="again, defaults, best: of the time alone. again: the MPI alone once more, which is noise."),
    Table("What the defaults offloaded", [("program", "{program}"), ("what, and why not", "{default_said}")]),
    Line(summary),
])  # fmt: skip


SHOWN = ("alone_s", "again", "of_alone", "best_of_alone", "of_best_gain")
WORDS = (
    "times are parts of the time alone", "again: the MPI alone once more, which is noise",
    "loses: slower, or behind the best setting",
)  # fmt: skip


def shortened(said: str) -> str:
    """For a table: `8 collectives, 0 offloaded, 8 native (8 blocking)` is `8 collectives native (blocking)`."""
    without = said.replace(", 0 offloaded,", "")
    return re.sub(r"\b(\d+) (\w+) \1 native \(\1 ([^(),]+)\)", r"\1 \2 native (\3)", without)


def published(result: dict) -> dict:
    """As docs/figures/results has it; a result that differs is no row of a table, but a defect."""
    meta, rows = result["meta"], []
    for each in filter(operator.itemgetter("verified"), result["rows"]):
        loses = "slower" if each["slower"] else "behind" if each["behind"] else "no"
        words = {name: each[name] for name in ("program", "source", "best_setting")}
        words["offloaded"] = shortened(each["default_said"])
        rows.append(words | {name: round(each[name], 3) for name in SHOWN} | {"loses": loses})
    said = "".join(f" --{name} {meta[name]}" for name in ("mpi", "ppn") if meta[name] not in (OPENMPI, 1))
    return {
        "benchmark": "programs",
        "about": f"programs as they are, {TITLES[meta['mpi']]}",
        "command": f".venv/bin/python tools/measure_programs.py{said} --json build/programs.json",
        "conditions": conditions(meta, *WORDS),
        "launches": meta["runs"],
        "columns": [
            ["program", "{program} ({source})"],
            ["alone, s", "{alone_s}"],
            ["again", "{again}"],
            ["defaults", "{of_alone}"],
            ["best setting", "{best_of_alone}, {best_setting}"],
            ["of its gain", "{of_best_gain}"],
            ["loses", "{loses}"],
            ["what the defaults offloaded, and why not", "{offloaded}"],
        ],
        "rows": rows,
    }


def measure(
    programs: Annotated[str, typer.Option(help="Which, separated by commas.")] = ",".join(PROGRAMS),
    mpi: Annotated[str, typer.Option(help="openmpi or mpich.")] = OPENMPI,
    nodes: Nodes = 2,
    ppn: RanksOnEach = 1,
    rate: Rate = "1gbit",
    runs: Runs = 3,
    json_file: options.JsonFile = None,
    publish: Publish = None,
) -> None:
    """Times programs in a lab, with the MPI alone and with Offpath, in turns; their results must be the same."""
    asked = {"mpi": mpi, "nodes": nodes, "ppn": ppn, "rate": rate, "runs": runs}
    kept = json.loads(json_file.read_text()) if json_file and json_file.exists() else {"meta": asked, "rows": []}
    if {name: kept["meta"].get(name) for name in asked} != asked:
        raise UserError(f"{json_file} was measured under other conditions. Give another file.")
    names = options.names(programs, PROGRAMS, "a program")
    FOLDER.mkdir(parents=True, exist_ok=True)
    meta = comparison.base_meta([mpi]) | asked
    result = {"meta": meta | {"complete": True, "failures": []}, "rows": kept["rows"]}
    with Lab(nodes=nodes, rate=rate) as lab:
        for program in (PROGRAMS[name] for name in names if mpi in PROGRAMS[name].mpis):
            if any(each["program"] == program.name for each in kept["rows"]):
                continue
            try:
                program.prepared(mpi)
            except UserError as error:
                console.note(str(error))
                continue
            cases = cases_of(program, mpi, ppn)
            found = turns.measure([Site([cases], functools.partial(contextlib.nullcontext, lab))], runs)
            result["meta"]["failures"] += found["failures"]
            result["meta"]["complete"] = found["complete"]
            needed = {ALONE, AGAIN, DEFAULTS, BEST}
            if all(case.launches for case in cases if case.labels["setting"] in needed) and found["complete"]:
                result["rows"].append(row(program, cases))
                if json_file:
                    files.write_json(json_file, result)
            if not found["complete"]:
                break
    try:
        BENCHMARK.deliver(result, json_file)
    finally:  # it ends by an exception, and has looked at the machine then
        if publish:
            files.write_json(publish, published(result))


if __name__ == "__main__":
    as_program(measure)
