# SPDX-License-Identifier: BSD-3-Clause
"""What the demo shows at its end: the table, where the time went, and the page."""


from offpath.base import console
from offpath.base.tables import STYLE, Table
from offpath.launch.mpis import TITLES
from offpath.pages import report
from offpath.places.comparison import DPU, HOST

TABLE_ROWS = ("Application", "All communications", "MPI_Ialltoallv", "MPI_Waitany", "Other")
HEADER = ("function", "host", "Offpath", "saved", "host min - max", "Offpath min - max")
PARTS = ("Computation", "MPI_Ialltoallv", "MPI_Waitany", "Other")
# Which colour: computation green, then the three kinds of communication.
COLOURS = {"Computation": 1, "MPI_Ialltoallv": 4, "MPI_Waitany": 3, "Other": 2}


def show(result: dict) -> None:
    for each in result["results"]:
        title = f"3-D FFT with {TITLES[each['mpi']]}, average seconds per process"
        table = Table(*HEADER, title=title, title_justify="left", **STYLE)
        for column in table.columns:
            column.no_wrap = True
            column.justify = "left" if column.header == HEADER[0] else "right"
        for row in _rows(each):
            table.add_row(*row)
        console.out.print(table)
        console.out.print(f"{headline(each)}\n{where_the_time_went(each)}\n", soft_wrap=True)


def page(result: dict) -> str:
    meta = result["meta"]
    sections = []
    for each in result["results"]:
        boxes = [
            (f"{each['speedup']:.2f} x", _gain_text(each)),
            (f"{each['host_s']:.2f} s", "without Offpath"),
            (f"{each['offload_s']:.2f} s", "with Offpath"),
            ("identical" if each["verified"] else "DIFFERENT", "results, bit by bit, and as the closed form says"),
        ]
        parts = _chart(each), report.table(HEADER, _rows(each))
        heading = f"{TITLES[each['mpi']]}: where the time went"
        sections += [report.figures(boxes), report.card(heading, *parts, note=where_the_time_went(each))]
    sections.append(report.card("How this was measured", report.facts(_facts(meta))))
    place = "two emulated nodes" if meta["place"] == "lab" else "one machine over loopback (the lab needs root)"
    lead = (
        f"Velocity and pressure of a Taylor-Green vortex on {meta['n']}^3 points, transformed forward and back "
        f"{meta['repeats']} times on {place}. The program is unmodified; the service runs on the program's own cores."
    )
    return report.page("An FFT whose communication moves while it computes", lead, sections)


def headline(each: dict) -> str:
    if each["offloaded_count"] == 0:
        return f"Nothing to claim: both ran natively ({each['host_s']:.2f} s and {each['offload_s']:.2f} s)."
    same = "same result, verified" if each["verified"] else "RESULTS DIFFER"
    speedup = each["speedup"]
    change = f"{speedup:.2f} times faster" if speedup >= 1 else f"{1 / speedup:.2f} times slower"
    return f"{change} end to end: {each['host_s']:.2f} s -> {each['offload_s']:.2f} s ({same})."


def _gain_text(each: dict) -> str:
    if each["offloaded_count"] == 0:
        return "is noise: nothing was offloaded"
    return f"the speed, end to end, with {TITLES[each['mpi']]}"


def where_the_time_went(each: dict) -> str:
    if each["offloaded_count"] == 0:
        reasons = "; ".join(each["reasons"]) or "the policy left it on the host"
        return f"Nothing was offloaded: {reasons}."

    def seconds(mode: str, row: str) -> float:
        return each["rows"][mode][row]["median"]

    shares = [100 * seconds(mode, "All communications") / seconds(mode, "Application") for mode in (HOST, DPU)]
    slower = 100 * (seconds(DPU, "Computation") / max(seconds(HOST, "Computation"), 1e-12) - 1)
    text = f"Communication was {shares[0]:.0f} % of the time, is {shares[1]:.0f} %; computation takes {slower:+.1f} %"
    if each["service_cpu_s"]:
        text += f" (the services used {each['service_cpu_s']:.2f} s of the same cores, checks included)"
    return f"{text}. {each['offloaded_count']} operations were offloaded."


def _rows(each: dict) -> list[list[str]]:
    rows = []
    for name in TABLE_ROWS:
        host, dpu = (each["rows"][mode][name] for mode in (HOST, DPU))
        saved = f"{100 * (1 - dpu['median'] / host['median']):.0f} %" if host["median"] > 0 else "-"
        spans = [f"{one['min']:.3f} - {one['max']:.3f}" for one in (host, dpu)]
        rows.append([name, f"{host['median']:.3f}", f"{dpu['median']:.3f}", saved, *spans])
    return rows


def _chart(each: dict) -> str:
    series = [""] * 5
    for name, colour in COLOURS.items():
        series[colour] = name
    bars = []
    for mode, label in ((HOST, "without Offpath"), (DPU, "with Offpath")):
        rows = each["rows"][mode]
        total = rows["Application"]
        parts = [(COLOURS[name], rows[name]["median"]) for name in PARTS]
        bars.append(report.Bar(label, parts, f"{total['median']:.2f} s", (total["min"], total["max"])))
    return report.bars(f"Seconds of {TITLES[each['mpi']]}", series, bars)


def _facts(meta: dict) -> dict:
    names = (
        "hardware", "nodes", "ppn", "cores", "rate", "mtu_bytes", "mpi_versions", "n", "variables", "repeats", "work",
        "policy", "policy_file", "processor", "commit", "date",
    )  # fmt: skip
    return {name.replace("_", " "): meta.get(name) for name in names}
