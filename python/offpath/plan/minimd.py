# SPDX-License-Identifier: BSD-3-Clause
"""`offpath plan minimd`: would forces beside the rebuilding of lists make molecular dynamics faster?

t_off = t_remain + max(t_N, t_F) R for R rebuilds: t_N is what the host does on a re-neighbour step besides forces, t_F
what the DPU does meanwhile, t_remain all the rest. Host and DPU are known by one run of apps/minimd each."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import typer

from offpath.base import console, files
from offpath.base.errors import UserError
from offpath.base.tables import Table

REBUILD = ("migrate", "sort", "borders", "build")


@dataclass(frozen=True)
class Host:
    """Seconds of one rank, with the host's schedule."""

    atoms: float  # of a rank
    step_s: float  # of every step, without forces
    force_s: float
    rebuild_s: float  # t_N

    @classmethod
    def of(cls, run: Mapping[str, Any]) -> Host:
        steps, phases = run["timed_steps"], run["phases_s"]
        rebuilds = max(1, run["rebuilds"] + run["guard_hits"])
        rebuild = sum(phases[name] for name in REBUILD)
        rest = run["seconds"] - phases["force"] - rebuild  # also what no phase was charged with
        return cls(run["atoms"] / run["ranks"], rest / steps, phases["force"] / steps, rebuild / rebuilds)

    def predicted_s(self, every: float) -> float:
        """Of a step, on average."""
        return self.step_s + self.force_s + self.rebuild_s / every


@dataclass(frozen=True)
class Dpu:
    """Beside a host: how many times longer its forces take, and seconds per atom of the host's rank for the rest."""

    force_ratio: float
    replay_s: float
    in_s: float
    out_s: float
    ship_s: float  # of the host, for lists
    share: float = 0.0  # of an ordinary step's pairs, with forces of this ratio
    share_overhead_s: float = 0.0  # of the host in a shared step: positions out, forces in, and waiting
    alone_steps: float = 0.0  # after each rebuild, until the lists are there

    @classmethod
    def of(cls, off_path: Mapping[str, Any], host: Host, hybrid: Mapping[str, Any] | None = None) -> Dpu:
        count, seconds, atoms = off_path["other_side_count"]["all"], off_path["other_side_s"], host.atoms
        if not count:
            raise UserError(
                "a DPU computed no forces in that run (without --schedule offpath or hybrid, or as the guard hit each "
                "time). Give --dpu another run, perhaps with fewer steps between rebuilds",
                1,
            )
        ratio = seconds["force"] / count / host.force_s
        rates = [seconds[name] / count / atoms for name in ("replay", "in", "out")]
        found = cls(ratio, *rates, off_path["phases_s"]["ship"] / count / atoms)
        return found if hybrid is None or not hybrid["shared_steps"] else found._with_shares(host, hybrid)

    def _with_shares(self, host: Host, hybrid: Mapping[str, Any]) -> Dpu:
        """What a shared step takes beyond the host's forces: what the run shows and nothing else explains."""
        shared, relaxed, share = hybrid["shared_steps"], hybrid["relaxed"], hybrid["share"]
        alone = hybrid["timed_steps"] - relaxed - shared
        known = relaxed * self.relaxed_s(host) + alone * (host.step_s + host.force_s)
        overhead = (hybrid["seconds"] - known) / shared - host.step_s - (1 - share) * host.force_s
        return replace(
            self, share=share, share_overhead_s=max(0.0, overhead) / host.atoms, alone_steps=alone / max(1, relaxed)
        )

    def with_speed(self, threads: float = 1, slower: float = 1) -> Dpu:
        """The share changes so that both sides are still ready at the same time."""
        ratio = self.force_ratio * slower / threads
        return replace(self, force_ratio=ratio, share=self.share * (1 + self.force_ratio) / (1 + ratio))

    def forces_s(self, host: Host) -> float:
        """t_F."""
        return host.atoms * (self.in_s + self.replay_s + self.out_s) + self.force_ratio * host.force_s

    def relaxed_s(self, host: Host) -> float:
        """A re-neighbour step. Positions go out before the host goes on: part of t_F, and of the host's time."""
        own = host.atoms * self.in_s + host.rebuild_s
        return host.step_s + max(own, self.forces_s(host)) + host.atoms * self.ship_s


@dataclass(frozen=True)
class Prediction:
    """Seconds of a step, on average over `every` of them."""

    host_s: float
    off_path_s: float
    hybrid_s: float
    rebuild_s: float  # t_N
    forces_s: float  # t_F
    share: float


def predict(host: Host, dpu: Dpu, every: float) -> Prediction:
    relaxed, ordinary, others = dpu.relaxed_s(host), host.step_s + host.force_s, every - 1
    shared = host.step_s + (1 - dpu.share) * host.force_s + host.atoms * dpu.share_overhead_s
    alone = min(dpu.alone_steps, others)
    return Prediction(
        host.predicted_s(every),
        (relaxed + others * ordinary) / every,
        (relaxed + alone * ordinary + (others - alone) * shared) / every,
        host.rebuild_s,
        dpu.forces_s(host),
        dpu.share,
    )


def knee(host: Host, dpu: Dpu) -> float:
    """With so many threads, each as fast as the one measured, t_F = t_N; infinite where what is no force is longer."""
    left = host.rebuild_s - host.atoms * (dpu.in_s + dpu.replay_s + dpu.out_s)
    return dpu.force_ratio * host.force_s / left if left > 0 else float("inf")


def finite(number: float) -> float | None:
    """For JSON, which has no infinity."""
    return number if math.isfinite(number) else None


def plan_command(
    host: Annotated[Path, typer.Option(help="What minimd --json wrote, with --schedule host.")],
    dpu: Annotated[Path, typer.Option(help="The same with --schedule offpath, or hybrid; as many atoms, same skin.")],
    every: Annotated[str, typer.Option(help="Steps between rebuilds.")] = "1,2,5,10,20",
    threads: Annotated[str, typer.Option(help="Threads of the DPU, each as fast as the one measured.")] = "1,2,4,8",
    slower: Annotated[float, typer.Option(min=0.01, help="How many times slower such a thread is.")] = 1.0,
    as_json: Annotated[bool, typer.Option("--json", help="Machine-readable.")] = False,
) -> None:
    """Predict molecular dynamics with forces on a DPU, from a run on the host and a run beside a DPU.

    *t_N*: what the host does on a re-neighbour step, without forces. *t_F*: what the DPU does meanwhile. *knee*: so
    many threads make both equal; more of them make the off-path schedule no faster.

    Examples:

        offpath plan minimd --host host.json --dpu offpath.json

        offpath plan minimd --host host.json --dpu hybrid.json --every 5,10 --threads 4,8,16 --slower 3
    """
    alone, beside = _read(host), _read(dpu)
    try:
        _check_together(alone, beside)
        known = Host.of(alone)
        measured = Dpu.of(beside, known, beside if beside["schedule"] == "hybrid" else None)
        measured = replace(measured, force_ratio=measured.force_ratio / beside["dpu_repeats"])
    except (KeyError, TypeError, ZeroDivisionError):
        raise UserError(f"{host} or {dpu} is damaged (its numbers make no sense). Run minimd again.") from None
    rows = []
    for period in _numbers(every, "--every", least=1):
        for each in _numbers(threads, "--threads"):
            found = predict(known, measured.with_speed(each, slower), period)
            rows.append({"atoms": known.atoms, "every": period, "threads": each} | _fields(found))
    for row in rows:
        row["knee_threads"] = knee(known, measured.with_speed(1, slower))
    if as_json:
        rows = [row | {"knee_threads": finite(row["knee_threads"])} for row in rows]
        console.out.print(json.dumps(rows, indent=1), markup=False, soft_wrap=True)
        return
    _show(rows, hybrid=beside["schedule"] == "hybrid")


def _fields(found: Prediction) -> dict[str, float]:
    return {
        "host_s": found.host_s, "off_path_s": found.off_path_s, "hybrid_s": found.hybrid_s, "t_n_s": found.rebuild_s,
        "t_f_s": found.forces_s, "gain": found.host_s / found.off_path_s,
        "hybrid_gain": found.host_s / found.hybrid_s,
    }  # fmt: skip


def _show(rows: Sequence[dict], hybrid: bool) -> None:
    titles = ["atoms", "every", "threads", "t_N, ms", "t_F, ms", "host, ms", "off-path, ms", "gain"]
    table = Table(*titles, *(["hybrid, ms", "gain"] if hybrid else []), "knee", box=None, pad_edge=False)
    for row in rows:
        cells = [f"{row['atoms']:g}", f"{row['every']:g}", f"{row['threads']:g}"]
        cells += [f"{1e3 * row[name]:.3f}" for name in ("t_n_s", "t_f_s", "host_s", "off_path_s")]
        cells.append(f"{row['gain']:.3f}")
        cells += [f"{1e3 * row['hybrid_s']:.3f}", f"{row['hybrid_gain']:.3f}"] if hybrid else []
        table.add_row(*cells, f"{row['knee_threads']:.1f}")
    console.out.print(table)


def _read(file: Path) -> dict[str, Any]:
    def take(run: dict) -> dict[str, Any]:
        run["schedule"], run["other_side_count"], run["dpu_repeats"]
        return run

    return files.read_json(file, "result of minimd", f"Make one: minimd --json {file}", take)


def _check_together(alone: Mapping[str, Any], beside: Mapping[str, Any]) -> None:
    if alone["schedule"] != "host":
        raise UserError(f"--host has the schedule {alone['schedule']} (only the host's says what a host takes). Run "
                        "minimd --schedule host for it.")  # fmt: skip
    for name in ("atoms", "ranks", "skin"):
        if alone.get(name) != beside.get(name):
            raise UserError(f"--host and --dpu are of other runs ({name}: {alone.get(name)} and {beside.get(name)}). "
                            "Give two with the same atoms, ranks and skin.")  # fmt: skip


def _numbers(text: str, option: str, least: float = 0.001) -> list[float]:
    try:
        numbers = [float(word) for word in text.split(",") if word]
    except ValueError:
        numbers = [0.0]
    if any(not least <= number < math.inf for number in numbers):
        raise UserError(f"{option} '{text}' is no list of numbers from {least:g} on. Give for example 1,2,4")
    return numbers
