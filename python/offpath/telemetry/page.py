# SPDX-License-Identifier: BSD-3-Clause
"""`offpath report` as a page: one file, nothing from a network; two runs lie side by side."""

import json
from collections import Counter
from collections.abc import Sequence
from html import escape

from offpath.base.oldest import zip_equal
from offpath.base.sizes import rough_size_text, seconds, size_text
from offpath.launch.stats import Cost
from offpath.pages import report
from offpath.telemetry import overview
from offpath.telemetry.operations import Run
from offpath.telemetry.overview import share

PARTS = ("program", "posting", "waiting, DPU", "waiting, host", "other waits")
COLOURS = (0, 4, 1, 3, 2)  # of report's series
SITE_ROWS = 200
MATRIX_RANKS = 64
SLICES = 20_000  # the longest ones: what is shorter than a pixel of the whole run need not be there
HOW_TO_MOVE = "Wheel: zoom. Drag: move. Double click: everything. Above a rank's calls, below what its service did."
ABOUT_SITES = "Sums of all ranks. MPI does not say when host operations are done: nobody knows what they hid."
ABOUT_REGIONS = "Parts that the program names. Sums of all ranks, with what lies inside."
ABOUT_LATE = "Time waited for an operation that another rank had not called yet: nothing could have been moved."
SCRIPT_AND_STYLE = """
<style>main{max-width:none}.runs{display:grid;grid-template-columns:repeat(auto-fit,minmax(34rem,1fr));gap:1.25rem}
canvas{width:100%;display:block;touch-action:none}.tip{min-height:1.5em}.late td{text-align:right}
td.heat{background:color-mix(in srgb,var(--d) var(--heat),transparent)}</style>
<script>
"use strict";
window.addEventListener("error", event => document.body.dataset.error = event.message);
const HEIGHT = 18, LEFT = 130;
function timeline(canvas, tip, data) {
  const style = getComputedStyle(document.documentElement);
  const colours = Object.fromEntries([..."abcde"].map(name => [name, style.getPropertyValue("--" + name)]));
  let from = 0, to = data.end_ns, drawn = 0;
  const context = canvas.getContext("2d");
  const x_of = (ns, width) => LEFT + (ns - from) / (to - from) * (width - LEFT);
  function draw() {
    const ratio = window.devicePixelRatio || 1, width = canvas.clientWidth || 800;
    canvas.height = (data.tracks.length + 1) * HEIGHT * ratio;
    canvas.width = width * ratio;
    canvas.style.height = (data.tracks.length + 1) * HEIGHT + "px";
    context.scale(ratio, ratio);
    context.font = "12px system-ui";
    drawn = 0;
    for (const [track, begin, end, colour] of data.slices) {
      if (end < from || begin > to) continue;
      const left = Math.max(LEFT, x_of(begin, width));
      context.fillStyle = colours[colour];
      context.fillRect(left, track * HEIGHT + 2, Math.max(0.5, x_of(end, width) - left), HEIGHT - 4);
      ++drawn;
    }
    context.fillStyle = style.getPropertyValue("--ink");
    context.clearRect(0, 0, LEFT - 4, canvas.height);
    data.tracks.forEach((name, track) => context.fillText(name, 0, track * HEIGHT + 13, LEFT - 8));
    const bottom = data.tracks.length * HEIGHT + 13;
    context.fillText((from / 1e6).toFixed(3) + " ms", LEFT, bottom);
    context.textAlign = "right";
    context.fillText((to / 1e6).toFixed(3) + " ms", width, bottom);
    context.textAlign = "left";
    canvas.dataset.drawn = drawn;
  }
  const at = event => from + (event.offsetX - LEFT) / (canvas.clientWidth - LEFT) * (to - from);
  canvas.addEventListener("wheel", event => {
    event.preventDefault();
    const fixed = at(event), factor = event.deltaY > 0 ? 1.25 : 0.8;
    from = Math.max(0, fixed - (fixed - from) * factor);
    to = Math.min(data.end_ns, fixed + (to - fixed) * factor);
    draw();
  });
  canvas.addEventListener("dblclick", () => { from = 0; to = data.end_ns; draw(); });
  canvas.addEventListener("pointermove", event => {
    const time = at(event), track = Math.floor(event.offsetY / HEIGHT);
    if (event.buttons && event.movementX) {
      const shift = Math.max(-from, Math.min(data.end_ns - to,
        -event.movementX / (canvas.clientWidth - LEFT) * (to - from)));
      from += shift; to += shift; draw();
    }
    const hit = data.slices.findLast(slice => slice[0] === track && slice[1] <= time && time <= slice[2]);
    tip.textContent = hit ? data.names[hit[4]] + ": " + ((hit[2] - hit[1]) / 1e6).toFixed(3) + " ms" : "";
  });
  window.addEventListener("resize", draw);
  draw();
}
document.addEventListener("DOMContentLoaded", () => {
  for (const canvas of document.querySelectorAll("canvas.timeline")) {
    const data = JSON.parse(document.getElementById(canvas.dataset.source).textContent);
    timeline(canvas, canvas.nextElementSibling, data);
  }
  document.body.dataset.ready = document.querySelectorAll("canvas.timeline").length;
});
</script>
"""


def page(runs: Sequence[tuple[str, Run]]) -> str:
    """`runs`: each with its name."""
    names = " and ".join(name for name, _ in runs)
    columns = [
        "".join((f"<h2>{escape(name)}</h2>", *_sections(run, number))) for number, (name, run) in enumerate(runs)
    ]
    sections = [SCRIPT_AND_STYLE]
    if len(runs) > 1:
        sections.append(_comparison(runs))
    sections.append('<div class="runs">' + "".join(f"<div>{column}</div>" for column in columns) + "</div>")
    lead = "What ran where, what was hidden, and what the program waited for."
    return report.page(f"Offpath: {names}", lead, sections)


def _sections(run: Run, number: int) -> list[str]:
    return [
        _figures(run),
        report.card("Where each rank's time went", _split(run), note=_first_ranks(run)),
        report.card("Timeline", _timeline(run, number), note=HOW_TO_MOVE + _first_ranks(run)),
        *([report.card("By region", _regions(run), note=ABOUT_REGIONS)] if run.regions else []),
        report.card("By call site", _sites(run), note=ABOUT_SITES),
        report.card("Message sizes", _sizes(run)),
        report.card("Who waits for whom", _late(run), note=ABOUT_LATE + _first_ranks(run)),
        report.card("What stayed on the host and why", _stayed(run)),
    ]


def _first_ranks(run: Run) -> str:
    ranks = len(run.ranks)
    return f" These are the first {MATRIX_RANKS} of {ranks} ranks." if ranks > MATRIX_RANKS else ""


def _figures(run: Run) -> str:
    sums = overview.totals(run)
    ranks = len(run.ranks)
    return report.figures(
        [
            (seconds(run.end_ns), f"{ranks} ranks on {len(run.hosts)} node(s)"),
            (seconds(sums["hidden"] / ranks), "of communication hidden, per rank"),
            (seconds(sums["lost"] / ranks), "posting and waiting for the DPU, per rank"),
            (share(sums["program"], sums["all"]), "of the time in the program itself"),
            *_cost(run.cost),
        ]
    )


def _cost(cost: Cost) -> list[tuple[str, str]]:
    """Of all ranks; what is not known is left out."""
    found = []
    if cost.ranks_ns:
        about = f"of processor time, {seconds(cost.services_ns)} of it of services"
        found.append((seconds(cost.ranks_ns + cost.services_ns), about))
    if cost.energy_nodes:
        found.append((f"{cost.energy_uj / 1e6:.4g} J", f"of energy, on {cost.energy_nodes} node(s)"))
    return found


def _split(run: Run) -> str:
    bars = []
    for rank in run.ranks[:MATRIX_RANKS]:
        parts = run.split(rank)
        lengths = [(COLOURS[i], parts[name] / 1e6) for i, name in enumerate(PARTS)]
        bars.append(report.Bar(f"rank {rank.number}", lengths, seconds(rank.end_ns)))
    series = [""] * len(PARTS)
    for name, colour in zip_equal(PARTS, COLOURS):
        series[colour] = name + ", ms"
    return report.bars("time of each rank in ms", series, bars)


def _timeline(run: Run, number: int) -> str:
    tracks, slices, names = [], [], []
    known: dict[str, int] = {}

    def add(track: int, begin: int, end: int, colour: str, name: str) -> None:
        slices.append((track, begin, end, colour, known.setdefault(name, len(known))))

    for rank in run.ranks[:MATRIX_RANKS]:
        calls = len(tracks)
        own = run.operations_of[rank.number]
        tracks.append(f"rank {rank.number}")
        served = [each for each in own if each.done_ns is not None]
        if served:
            tracks.append(f"  its service, {rank.host}")
        for wait in run.waits[rank.number]:
            dpu = any(each.path == "dpu" for each in wait.operations)
            colour = "b" if dpu else "d" if wait.operations else "c"
            add(calls, wait.begin_ns, wait.end_ns, colour, f"{wait.call} at {wait.site.text}")
        for each in own:
            colour = "e" if not each.blocking else "b" if each.path == "dpu" else "d"
            add(calls, each.begin_ns, each.end_ns, colour, f"{each.call} {size_text(each.bytes)} at {each.site.text}")
        for each in served:
            add(calls + 1, each.started_ns, each.done_ns, "a", f"{each.name} {size_text(each.bytes)}")
        regions = run.regions_of[rank.number]
        if regions:
            tracks.append("  its regions")
        for each in regions:
            add(len(tracks) - 1, each.begin_ns, each.end_ns, "ce"[each.depth % 2], each.path)
    slices.sort(key=lambda each: each[1] - each[2])
    names = list(known)
    data = {"end_ns": run.end_ns, "tracks": tracks, "slices": slices[:SLICES], "names": names}
    text = json.dumps(data, separators=(",", ":")).replace("<", "\\u003c")  # nothing ends the element
    return (
        f'<canvas class="timeline" data-source="run{number}" aria-label="timeline"></canvas><p class="note tip"></p>'
        f'<script type="application/json" id="run{number}">{text}</script>'
    )


def _sites(run: Run) -> str:
    header = ("where", "call", "path", "count", "bytes", "hidden", "posting", "waiting")
    return report.table(header, [(row.site.text, *row.cells) for row in overview.by_site(run)[:SITE_ROWS]])


def _regions(run: Run) -> str:
    header = ("region", "count", "time", "hidden", "posting", "waiting")
    return report.table(header, overview.region_rows(run)[:SITE_ROWS])


def _sizes(run: Run) -> str:
    counts = Counter((max(0, each.bytes.bit_length() - 1), each.path) for each in run.operations)
    if not counts:
        return report.table(("bytes", "count"), [])
    bars = []
    for power in range(min(power for power, _ in counts), max(power for power, _ in counts) + 1):
        host, dpu = counts[power, "host"], counts[power, "dpu"]
        bars.append(report.Bar(f"from {size_text(1 << power)}", [(3, host), (1, dpu)], str(host + dpu)))
    return report.bars("operations by size", ["", "DPU", "", "host"], bars)


def _late(run: Run) -> str:
    found = run.late()
    ranks = [rank.number for rank in run.ranks[:MATRIX_RANKS]]
    worst = max((ns for others in found.values() for ns in others.values()), default=0)
    head = "".join(f'<th scope="col">{other}</th>' for other in ranks)
    body = ""
    for waiting in ranks:
        cells = ""
        for other in ranks:
            ns = found.get(waiting, {}).get(other, 0)
            heat = f' class="heat" style="--heat:{ns / worst:.0%}"' if ns else ""
            cells += f"<td{heat}>{seconds(ns) if ns else ''}</td>"
        body += f'<tr><th scope="row">{waiting}</th>{cells}</tr>'
    return (
        f'<div class="scroll"><table class="late"><thead><tr><th>waiting rank \\ late rank</th>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


def _stayed(run: Run) -> str:
    rows = [(why, name, str(count), rough_size_text(size)) for name, why, count, size in overview.reasons(run)]
    return report.table(("why", "call", "count", "bytes"), rows)


def _comparison(runs: Sequence[tuple[str, Run]]) -> str:
    (first_name, first), (second_name, second) = runs
    rows = [("whole run", seconds(first.end_ns), seconds(second.end_ns), _ratio(first.end_ns, second.end_ns))]
    sums = [overview.totals(run) for run in (first, second)]
    for part in (*PARTS, "hidden"):
        ours, theirs = (each[part] / len(run.ranks) for each, run in zip_equal(sums, (first, second)))
        rows.append((f"{part}, per rank", seconds(ours), seconds(theirs), _ratio(ours, theirs)))
    by_site: dict[tuple[str, str], list[float]] = {}
    for number, run in enumerate((first, second)):
        for row in overview.by_site(run):
            by_site.setdefault((row.site.text, row.call), [0.0, 0.0])[number] += row.lost_ns
    worst = sorted(by_site.items(), key=lambda item: -max(item[1]))[:SITE_ROWS]
    for (site, call), (ours, theirs) in worst:
        rows.append((f"in {call} and its waits, {site}", seconds(ours), seconds(theirs), _ratio(ours, theirs)))
    header = ("", first_name, second_name, "second / first")
    return report.card("The two runs", report.table(header, rows))


def _ratio(first: float, second: float) -> str:
    return f"{second / first:.2f}" if first else "-"
