# SPDX-License-Identifier: BSD-3-Clause
"""The end-of-run summary: one screen that says what was hidden, what was lost, and what stayed on the host and why."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

from rich.console import Console

from offpath.base.sizes import rough_size_text as rough
from offpath.base.sizes import saved_time, seconds
from offpath.base.tables import STYLE, Table
from offpath.telemetry.operations import WHY, Operation, Run, Wait, hidden_ns
from offpath.trace.sites import Site

CALL_ROWS = 10
HOST_ROWS = 5
REGION_ROWS = 6


@dataclass
class CallSite:
    """All operations of one kind from one place in the program, of all ranks."""

    site: Site
    call: str
    path: str
    operations: list[Operation]

    @property
    def hidden_ns(self) -> int:
        return hidden_ns(self.operations)

    @property
    def lost_ns(self) -> float:
        return sum(each.lost_ns for each in self.operations)

    @property
    def cells(self) -> tuple[str, ...]:
        """Call, path, count, bytes; time hidden, posting, waiting."""
        size, posting, waiting = (
            sum(getattr(each, name) for each in self.operations) for name in ("bytes", "post_ns", "wait_ns")
        )
        hidden = seconds(self.hidden_ns) if self.path == "dpu" else "-"
        counts = str(len(self.operations)), rough(size)
        return self.call, self.path, *counts, hidden, seconds(posting), seconds(waiting)


def by_site(run: Run) -> list[CallSite]:
    """Those that cost most first."""
    found: dict[tuple, list[Operation]] = defaultdict(list)
    for each in run.operations:
        found[each.site, each.call, each.path].append(each)
    rows = (CallSite(*key, operations) for key, operations in found.items())
    return sorted(rows, key=lambda row: -(row.hidden_ns + row.lost_ns))


@dataclass
class RegionSum:
    """All times through a region that the program names, of all ranks; with what lies inside it."""

    path: str
    count: int = 0
    ns: int = 0
    operations: list[Operation] = field(default_factory=list)  # posted in it
    waits: list[Wait] = field(default_factory=list)  # called in it


def by_region(run: Run) -> list[RegionSum]:
    """Those that took longest first."""
    found: dict[str, RegionSum] = {}
    for region in run.regions:
        of_path = found.setdefault(region.path, RegionSum(region.path))
        of_path.count += 1
        of_path.ns += region.ns
    for operation in run.operations:
        for region in operation.region.with_all_around() if operation.region else ():
            found[region.path].operations.append(operation)
    for wait in (wait for waits in run.waits.values() for wait in waits):
        for region in wait.region.with_all_around() if wait.region else ():
            found[region.path].waits.append(wait)
    return sorted(found.values(), key=lambda each: (-each.ns, each.path))


def reasons(run: Run) -> list[tuple[str, str, int, int]]:
    """What stayed on the host: (call, why, how often, bytes), most bytes first."""
    counts: dict[tuple[str, str], list[int]] = defaultdict(lambda: [0, 0])
    off = next((rank.reason for rank in run.ranks if rank.reason), WHY["off"])
    for each in run.operations:
        if each.path == "host":
            why = off if each.why == "off" else WHY.get(each.why, each.why)
            total = counts[each.name, why]
            total[0] += 1
            total[1] += each.bytes
    rows = [(name, why, count, size) for (name, why), (count, size) in counts.items()]
    return sorted(rows, key=lambda row: (-row[3], -row[2]))


def totals(run: Run) -> dict[str, float]:
    """Sums over all ranks, in ns."""
    sums: Counter = Counter()
    for rank in run.ranks:
        sums.update(run.split(rank))
    dpu = [each for each in run.operations if each.path == "dpu"]
    return {
        **sums,
        "hidden": hidden_ns(dpu),
        "lost": sum(each.lost_ns for each in dpu),
        "all": sum(rank.end_ns for rank in run.ranks),
    }


def headline(run: Run) -> str:
    sums = totals(run)
    dpu = sum(each.path == "dpu" for each in run.operations)
    ranks = len(run.ranks)
    text = (
        f"{ranks} ranks on {len(run.hosts)} node(s), {seconds(run.end_ns)}: {dpu} operations on the DPU, "
        f"{len(run.operations) - dpu} on the host."
    )
    if dpu:
        text += (
            f" Per rank, {seconds(sums['hidden'] / ranks)} of communication was hidden behind the program and "
            f"{seconds(sums['lost'] / ranks)} was not ({share(sums['lost'], sums['all'])} of its time)."
        )
    left_out = sum(rank.operations_left_out for rank in run.ranks)
    if left_out:
        text += f" All of this is of a sample: {left_out} operations more were left out (--trace-sample)."
    return text


def show(run: Run, console: Console, lines: Sequence[dict] = ()) -> None:
    """`lines`: what the ranks reported, if that is known, too."""
    console.print(headline(run), markup=False, soft_wrap=True)
    sites = by_site(run)
    console.print(_calls(sites))
    _say_more(len(sites) - CALL_ROWS, "call sites", console)
    if run.regions:
        rows = region_rows(run)
        console.print(_regions(rows))
        _say_more(len(rows) - REGION_ROWS, "regions", console)
    stayed = reasons(run)
    for name, why, count, size in stayed[:HOST_ROWS]:
        console.print(f"host: {count} {name} ({rough(size)}): {why}", markup=False, soft_wrap=True)
    if len(stayed) > HOST_ROWS:
        console.print(f"host: {len(stayed) - HOST_ROWS} more kinds of calls", markup=False)
    cost = [run.cost.text] if run.cost.text else []
    for line in [*_late(run), *cost, *_memory(lines), *_wire(lines)]:
        console.print(line, markup=False, soft_wrap=True)


def _say_more(count: int, what: str, console: Console) -> None:
    if count > 0:
        console.print(f"and {count} more {what}: the page of offpath report has them", markup=False)


def _calls(sites: Sequence[CallSite]) -> Table:
    columns = ("call", "path", "count", "bytes", "hidden", "posting", "waiting", "where")
    table = Table(*columns, title="sums of all ranks", title_justify="left", **STYLE)
    for column in table.columns:
        column.no_wrap = column.header != "where"
        column.justify = "left" if column.header in ("call", "path", "where") else "right"
    for row in sites[:CALL_ROWS]:
        table.add_row(*row.cells, row.site.source)
    return table


def _regions(rows: Sequence[tuple[str, ...]]) -> Table:
    columns = ("region", "count", "time", "hidden", "posting", "waiting")
    table = Table(*columns, title="regions, all ranks", title_justify="left", **STYLE)
    for column in table.columns[1:]:
        column.justify, column.no_wrap = "right", True
    for row in rows[:REGION_ROWS]:
        table.add_row(*row)
    return table


def region_rows(run: Run) -> list[tuple[str, ...]]:
    """Of regions that the program names: path, count, time; of the calls in them: hidden, posting, waiting."""
    return [
        (each.path, str(each.count), seconds(each.ns), seconds(hidden_ns(each.operations)),
         seconds(sum(operation.post_ns for operation in each.operations)), seconds(sum(wait.ns for wait in each.waits)))
        for each in by_region(run)
    ]  # fmt: skip


def _late(run: Run) -> list[str]:
    pairs = [(ns, waiting, other) for waiting, others in run.late().items() for other, ns in others.items()]
    worst = sorted(pairs, reverse=True)[:2]
    return [f"late: rank {waiting} waited {seconds(ns)} for rank {other} to call" for ns, waiting, other in worst]


def _memory(lines: Sequence[dict]) -> list[str]:
    """How services reached the ranks' memory, and which buffers were moved for that: the longest of each rank."""
    used, copied = (sum(line.get(f"{name}_bytes", 0) for line in lines) for name in ("in_place", "copied"))
    text = [f"memory: {rough(used)} used in place, {rough(copied)} copied by the kernel"] if used + copied else []
    sizes = Counter(buffer["bytes"] for line in lines for buffer in line.get("moved", ()))
    moved = [f"{count} of {rough(size)}" for size, count in sorted(sizes.items(), reverse=True)[:CALL_ROWS]]
    return text + ([f"moved: {', '.join(moved)}"] if moved else [])


def _wire(lines: Sequence[dict]) -> list[str]:
    """What compression saved."""
    plain, wire = (sum(line.get(f"{name}_bytes", 0) for line in lines) for name in ("coded", "wire"))
    saved = share(plain - wire, plain)
    time = saved_time(sum(line.get("saved_ns", 0) for line in lines))
    text = [f"wire: {rough(plain)} went compressed as {rough(wire)}, {saved} saved"] if plain else []
    text = [line + (f"; {time}" if time else "") for line in text]
    lossy = sum(line.get("lossy_bytes", 0) for line in lines)
    error = max((line.get("largest_error", 0) for line in lines), default=0)
    sampled, left = (sum(line.get(f"sampled_{name}", 0) for line in lines) for name in ("bytes", "left_bytes"))
    text += [f"wire: compression would save {share(sampled - left, sampled)}, by samples"] if sampled else []
    return text + ([f"lossy: {rough(lossy)} of numbers, which arrived at most {error:.3g} off"] if lossy else [])


def share(part: float, whole: float) -> str:
    return f"{part / whole:.1%}" if whole else "0 %"
