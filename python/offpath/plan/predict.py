# SPDX-License-Identifier: BSD-3-Clause
"""`offpath plan PROFILE`: what offloading would make of a recorded run, and whether it is worth it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Optional

import typer
from rich.markup import escape

from offpath.base import commands, console, files
from offpath.base.errors import UserError
from offpath.base.sizes import traded
from offpath.base.tables import Table
from offpath.launch import progress
from offpath.launch.mpis import TITLES
from offpath.plan import compressing, model, pages, replay
from offpath.plan.hardware import Hardware
from offpath.trace import profile, sites

WORTH = 0.05  # gains and losses below that are called none
SHOWN = 20  # call sites
WORTH_IT = "worth it"
OWN_ERROR = 0.10  # of predictions in validation, when the host side fits exactly


@dataclass(frozen=True)
class Prediction:
    """Times in ns. `told` is what the model says of the recorded run. All others are on the hardware that is asked for,
    and as much too short or too long as that."""

    recorded: float
    told: float
    host: float
    dpu: float
    limit: float
    sites: dict  # place: (host ns, dpu ns, offloaded)
    core_more: float  # processor time of ranks and services that offloading takes, without waits
    nodes: int

    def as_recorded(self, ns: float) -> float:
        """A time of the model, corrected by what the recorded run took."""
        return ns * self.recorded / self.told

    @property
    def alone(self) -> float:
        return self.as_recorded(self.host)

    @property
    def offloaded(self) -> float:
        return self.as_recorded(self.dpu)

    @property
    def node_saved(self) -> float:
        return (self.alone - self.offloaded) * self.nodes

    @property
    def error(self) -> float:
        """Relative: how badly the model tells what was recorded, and what validation found."""
        return max(OWN_ERROR / 2, abs(self.told - self.recorded) / self.recorded)

    @property
    def gain(self) -> float:
        return self.host / self.dpu - 1

    @property
    def verdict(self) -> str:
        return verdict_of(self.gain)


def verdict_of(gain: float) -> str:
    if gain > WORTH:
        return WORTH_IT
    return "not worth it" if gain < -WORTH else "makes no difference"


def predict(
    found: profile.Profile, machine: dict, node_of: list[int], path: str = model.POLICY, policy: tuple[str, ...] = (),
    dpu_cores: int = 1, recorded_on: dict | None = None,
) -> Prediction:
    """`dpu_cores`: that the service's speed in `machine` is of (machine.changed). `recorded_on`: where the run was
    recorded, if that is another machine to the host."""
    scenario = replay.scenario(found)
    host = scenario.run(machine, node_of, model.HOST)
    told = host.total
    if recorded_on is not None or node_of != found.node_of:
        told = scenario.run(recorded_on or machine, found.node_of, model.HOST).total
    dpu = scenario.run(machine, node_of, path, policy)
    limit = min(host.total, scenario.limit(machine, node_of))
    places = {
        place: (host.sites[place], dpu.sites.get(place, 0.0), dpu.offloaded.get(place, False)) for place in host.sites
    }
    core_more = dpu.cores + (dpu_cores - 1) * dpu.services - host.cores
    core_more *= found.end_ns / told
    return Prediction(found.end_ns, told, host.total, dpu.total, limit, places, core_more, max(node_of) + 1)


def node_map(found: profile.Profile, nodes: int | None, ppn: int | None) -> list[int]:
    """Where the ranks live: as recorded, or `ppn` on each of `nodes`."""
    ranks = len(found.ranks)
    if nodes is None and ppn is None:
        return found.node_of
    ppn = ppn or -(-ranks // nodes)
    nodes = nodes or -(-ranks // ppn)
    if nodes * ppn != ranks:
        raise UserError(
            f"{nodes} nodes with {ppn} ranks each do not fit the profile (it has {ranks} ranks, whose work "
            f"cannot be dealt "
            "out anew). Give others, or use offpath plan scale."
        )
    return [rank // ppn for rank in range(ranks)]


@commands.by_concern
def replay_command(
    file: Annotated[Path, typer.Argument(metavar="PROFILE", help="What offpath profile wrote.")],
    hardware: Hardware,
    nodes: Annotated[Optional[int], typer.Option(min=1, help="Nodes. Default: as recorded.")] = None,
    ppn: Annotated[Optional[int], typer.Option(min=1, help="Ranks per node. Default: as recorded.")] = None,
    policy: Annotated[Optional[str], typer.Option(help="What goes to the DPU. Default: what was measured.")] = None,
    html: Annotated[Optional[Path], typer.Option(help="Write a page with charts there.")] = None,
    compress: Annotated[
        Optional[list[str]],
        typer.Option(
            metavar="CODEC=RATIO",
            help="Also with compression, like lz4=2.5; may be given several times. `offpath run --compress sample` "
            "says the ratio.",
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="JSON on stdout.")] = False,
) -> None:
    """Predict what offloading would make of a recorded run, per call site and overall.

    The computations and calls of the profile are run through the model with and without offloading; the graphs are
    those that the service would run. *limit* is what no offload can beat: a DPU that costs nothing, on the same links.

    Examples:

        offpath plan profile.jsonl --machine machine.json

        offpath plan profile.jsonl --machine machine.json --dpu-cores 8 --dpu-speed 0.4 --link 100gbit

        offpath plan profile.jsonl --link 1gbit --compress lz4=2.5 --compress zstd=3.2
    """
    files.writable_file(html, "--html")
    codecs = [compressing.parse(each) for each in compress or []]
    found = profile.load(file)
    given, is_measured = hardware.known(found.mpi)
    machine = hardware.asked(given)
    if not is_measured:
        console.note(
            "no --machine: the figures are those of a plain server with a 1 Gbit/s link. Run: offpath calibrate"
        )
    where = node_map(found, nodes, ppn)
    asked = {"policy": (policy,) if policy else (), "recorded_on": given if hardware.link else None}
    prediction = predict(found, machine, where, dpu_cores=max(1, hardware.dpu_cores or 1), **asked)
    compressed = {
        f"{codec}={ratio:g}": predict(found, compressing.changed(machine, codec, ratio), where, **asked)
        for codec, ratio in codecs
    }
    calls, own = calls_of(found), own_thread(found, prediction, where)
    if html:
        files.write_text(html, pages.replay(to_json(prediction, calls), file.name))
    if as_json:
        more = _compressed_json(prediction, compressed) | ({"own_thread": own} if own else {})
        print(json.dumps(to_json(prediction, calls) | more, indent=1))
    else:
        show(prediction, calls)
        if own:
            console.out.print(f"try first  {own}", markup=False, soft_wrap=True)
        show_compressed(prediction, compressed)


def calls_of(found: profile.Profile) -> dict[sites.Place, tuple[str, str]]:
    """Of each place: the MPI function that is called there, and where that is."""
    lines = [line for rank in found.ranks for line in rank.records]
    known = sites.of_lines(lines, found.sites)
    return {
        replay.place_of(line): (sites.call_of(line), known.get(sites.place_of(line), sites.UNKNOWN).text)
        for line in lines
    }


def own_thread(found: profile.Profile, prediction: Prediction, node_of: list[int]) -> str | None:
    """What to try first where offloading is worth it and a thread of the MPI's own hides some of it as well."""
    kinds = {line["kind"] for rank in found.ranks for line in rank.records if "op" in line and not line.get("blocking")}
    hidden = progress.hidden(found.mpi, kinds)
    if prediction.verdict != WORTH_IT or not hidden or len(set(node_of)) < 2:
        return None
    whose = f"over TCP {TITLES[found.mpi]}'s own thread hides {', '.join(hidden)} as well"
    return f"{progress.setting(found.mpi)} ({whose})"


def to_json(prediction: Prediction, calls: dict) -> dict:
    rows = [
        {"call": calls[place][0], "site": calls[place][1], "host_ns": round(host), "offloaded_ns": round(dpu),
         "offloaded": offloaded}
        for place, (host, dpu, offloaded) in _by_time(prediction)
    ]  # fmt: skip
    return {
        "recorded_ns": round(prediction.recorded), "model_recorded_ns": round(prediction.told),
        "host_ns": round(prediction.alone), "model_host_ns": round(prediction.host),
        "model_offloaded_ns": round(prediction.dpu), "offloaded_ns": round(prediction.offloaded),
        "limit_ns": round(prediction.as_recorded(prediction.limit)), "gain": prediction.gain,
        "error": prediction.error, "verdict": prediction.verdict, "core_more_ns": round(prediction.core_more),
        "node_saved_ns": round(prediction.node_saved), "sites": rows,
    }  # fmt: skip


def _by_time(prediction: Prediction) -> list:
    return sorted(prediction.sites.items(), key=lambda item: -item[1][0])


def show(prediction: Prediction, calls: dict) -> None:
    table = Table("call", "where", "host, s", "offloaded, s", "change", "path", keys=2)
    rows = _by_time(prediction)
    for place, (host, dpu, offloaded) in rows[:SHOWN]:
        change = f"{dpu / host - 1:+.0%}" if host > 0 else ""
        times = f"{host / 1e9:.4f}", f"{dpu / 1e9:.4f}", change
        table.add_row(*map(escape, calls[place]), *times, "DPU" if offloaded else "host")
    console.out.print(table)
    more = [host for _, (host, *_) in rows[SHOWN:]]
    rest = f" {len(more)} more, of {sum(more) / 1e9:.4f} s on the host, are in --json." if more else ""
    console.out.print(f"Times of a call site are summed over the ranks.{rest}")
    width = prediction.error * prediction.offloaded
    console.out.print(f"recorded   {prediction.recorded / 1e9:.4f} s (the model says {prediction.told / 1e9:.4f} s)")
    if prediction.told != prediction.host:
        console.out.print(f"there      {prediction.alone / 1e9:.4f} s, not offloaded")
    console.out.print(f"offloaded  {prediction.offloaded / 1e9:.4f} s ± {width / 1e9:.4f} s")
    console.out.print(f"limit      {prediction.as_recorded(prediction.limit) / 1e9:.4f} s")
    sure = (
        ""
        if abs(prediction.gain) > prediction.error or prediction.verdict.startswith("makes")
        else ", but within the error"
    )
    console.out.print(f"verdict    {prediction.verdict}: {prediction.gain:+.1%}{sure}")
    console.out.print(f"price      {traded(prediction.core_more, prediction.node_saved)} (waits left out)")
    gaining = [place for place, (host, dpu, off) in _by_time(prediction) if off and host - dpu > WORTH * host]
    if gaining and prediction.gain > WORTH:
        helped = ", ".join(" at ".join(calls[place]) for place in gaining[:5])
        console.out.print(f"what gains {helped}", markup=False)


def _compressed_json(plain: Prediction, compressed: dict[str, Prediction]) -> dict:
    rows = [
        {"compress": wish, "offloaded_ns": round(each.offloaded), "saved": 1 - each.dpu / plain.dpu}
        for wish, each in compressed.items()
    ]
    return {"compressed": rows} if rows else {}


def show_compressed(plain: Prediction, compressed: dict[str, Prediction]) -> None:
    """What compression would save of the offloaded run."""
    for wish, each in compressed.items():
        saved = 1 - each.dpu / plain.dpu
        console.out.print(f"with {wish}: {each.offloaded / 1e9:.4f} s offloaded, {saved:+.1%} saved by compressing")
