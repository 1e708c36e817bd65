# SPDX-License-Identifier: BSD-3-Clause
"""Recordings and their views: what they say of a run made by hand, what they refuse, and real runs of both MPIs."""

import errno
import io
import json
import random
import shutil
from dataclasses import replace

import pytest
from conftest import AS_ROOT, ROOT, assert_one_line_error, captured, offpath, require, succeeded
from offpath.base.errors import UserError
from offpath.base.paths import paths
from offpath.launch import mpis
from offpath.launch.stats import Cost
from offpath.telemetry import operations, overview, page, perfetto, prometheus, wires
from offpath.telemetry.batch_job import BatchJob
from offpath.trace import parts, record, sites
from rich.console import Console
from telemetry_support import MS, check_format, one_sided_lines, part, rank_lines, region_lines, write_parts
from test_docs import commands

BROWSERS = ("chromium-headless-shell", "chromium")


@pytest.fixture
def run(tmp_path):
    return operations.join(record.of_parts(write_parts(tmp_path)))


@pytest.fixture
def trace(run, tmp_path):
    perfetto.write(run, tmp_path / "trace.json")
    return tmp_path / "trace.json"


def test_hidden_and_lost(run):
    alltoall = next(each for each in run.operations if each.kind == "ialltoall" and each.rank == 0)
    assert alltoall.hidden_ns == 30 * MS - 10_000  # from the end of the call to the wait
    assert alltoall.lost_ns == 10_000 + 11 * MS / 2  # the wait was for two
    assert (alltoall.path, alltoall.last_peer, alltoall.algorithm) == ("dpu", 1, "direct")


def test_what_hides_several_counts_once(tmp_path):
    """Puts of one call site, all under way at a time: from the first post to the flush, and not that for each."""
    lines = rank_lines(0)
    lines[-1:] = [*one_sided_lines(60 * MS, count=5), {"end_ns": 90 * MS}]
    (tmp_path / "part").write_bytes(part(lines))
    found = operations.join(record.of_parts([tmp_path / "part"]))
    puts = [each for each in found.operations if each.kind == "put"]
    assert [each.hidden_ns for each in puts] == [10 * MS - each.end_ns + 60 * MS for each in puts]
    assert operations.hidden_ns(puts) == puts[0].hidden_ns
    (row,) = [row for row in overview.by_site(found) if row.call == "MPI_Put"]
    assert (len(row.operations), row.path, row.hidden_ns) == (5, "dpu", puts[0].hidden_ns)
    assert sum(each.wait_ns for each in row.operations) == 2 * MS
    assert overview.totals(found)["hidden"] == 30 * MS - 10_000 + puts[0].hidden_ns


def test_one_sided_operations_are_in_the_views(tmp_path):
    """The last one begins when a flush that is local is over: no flow leads to it."""
    lines = rank_lines(0)
    lines[-1:] = [*one_sided_lines(60 * MS, count=3), *one_sided_lines(80 * MS, first=30, count=1, late_ns=20 * MS)]
    (tmp_path / "part").write_bytes(part(lines))
    found = operations.join(record.of_parts([tmp_path / "part"]))
    assert [each.last_peer for each in found.operations if each.kind == "put"] == [1] * 4
    perfetto.write(found, tmp_path / "t.json")
    events = check_format(json.loads((tmp_path / "t.json").read_text()))
    at_service = [event for event in events if event["ph"] == "X" and event["pid"] == perfetto.SERVICES]
    assert sum(event["name"] == "put" for event in at_service) == 4
    phases = [event["ph"] for event in events if event.get("id") == "0.30"]
    assert phases == ["s", "f"]
    assert "put" in page.page([("run", found)])


def test_ranks_of_a_clock_have_one_zero(tmp_path):
    """Who had to wait for a core when all left MPI_Init has later times than it says; other clocks stay as they are."""
    lines = [rank_lines(0), rank_lines(1)]
    lines[0][0] |= {"clock": "a"}
    lines[1][0] |= {"clock": "a", "zero_ns": 10**12 + 7 * MS}
    parsed = [record._rank(each, "x") for each in lines]
    aligned = operations.join(record._together(parsed, "x"))
    assert {rank.zero_ns for rank in aligned.ranks} == {10**12}
    begins = {each.rank: each.begin_ns for each in aligned.operations if each.kind == "ialltoall"}
    assert begins == {0: 2 * MS, 1: 9 * MS}
    assert [rank.end_ns for rank in aligned.ranks] == [52 * MS, 59 * MS]
    assert {each.done_ns for each in aligned.operations if each.rank == 1} == {None, 49 * MS}
    perfetto.write(aligned, tmp_path / "t.json")
    assert operations.join(record.load(tmp_path / "t.json"), {}).end_ns == aligned.end_ns  # once is enough
    lines = [rank_lines(0), rank_lines(1)]
    for number, each in enumerate(lines):
        each[0] |= {"clock": str(number), "zero_ns": 10**12 + number}
    apart = record._together([record._rank(each, "x") for each in lines], "x")
    assert [rank.end_ns for rank in apart] == [52 * MS, 52 * MS]


def test_the_parts_of_a_rank_are_its_whole(run):
    for rank in run.ranks:
        parts = run.split(rank)
        assert sum(parts.values()) == pytest.approx(rank.end_ns)
        assert parts["waiting, DPU"] == parts["waiting, host"] - (MS / 2 + (rank.number * 3 * MS)) == 11 * MS / 2
        assert parts["other waits"] == MS


def test_views_of_many_ranks_look_at_each_operation_once(run, tmp_path):
    """Not once for every rank: a run of 200 ranks has millions."""

    class Counted(list):
        looks = 0

        def __iter__(self):
            Counted.looks += 1
            return super().__iter__()

    def looks(ranks):
        own = Counted(each for each in run.operations if each.rank == 0)
        many = operations.Run([run.ranks[0]] * ranks, own, {0: run.waits[0]})
        Counted.looks = 0
        overview.totals(many)
        page.page([("", many)])
        perfetto.write(many, tmp_path / "many.json")
        return Counted.looks

    assert looks(20) == looks(1)


def test_what_is_not_shown_is_said(run):
    assert "64 of" not in page.page([("", run)])
    whole = io.StringIO()
    overview.show(run, Console(file=whole, width=200))
    assert "more call sites" not in whole.getvalue()
    many = [
        replace(each, site=sites.Site("x", number)) for each in run.operations for number in range(overview.CALL_ROWS)
    ]
    run.operations[:] = many
    overview.show(run, Console(file=whole, width=200))
    assert f"and {len(many) // 2 - overview.CALL_ROWS} more call sites" in whole.getvalue()
    run.ranks += [replace(run.ranks[0], number=number) for number in range(2, 70)]
    run.waits |= {number: [] for number in range(2, 70)}
    assert page.page([("", run)]).count("These are the first 64 of 70 ranks.") == 3


def test_a_blocking_call_at_the_service_is_a_wait_for_the_dpu(tmp_path):
    """And what waited for operations that are not in the recording is no time of the program."""
    lines = rank_lines(0)
    lines[2] |= {"path": "dpu", "why": "policy"}
    lines[6] |= {"others": 8}  # of ten
    (tmp_path / "part").write_bytes(part(lines))
    found = operations.join(record.of_parts([tmp_path / "part"]))
    parts = found.split(found.ranks[0])
    assert parts["waiting, DPU"] == pytest.approx(MS / 2 + 11 * MS / 10)
    assert parts["waiting, host"] == pytest.approx(11 * MS / 10)
    assert parts["other waits"] == pytest.approx(MS + 8 * 11 * MS / 10)
    assert sum(parts.values()) == pytest.approx(found.ranks[0].end_ns)


def test_who_is_late(run):
    assert run.late() == {}  # the first rank waits 30 ms later than the second one posts


def test_a_rank_that_waits_for_one_that_has_not_called(tmp_path):
    write_parts(tmp_path, late_ns=35 * MS)
    found = operations.join(record.of_parts(sorted(tmp_path.glob("rank.*")))).late()
    # It waits from 32 ms on, the other posts at 37 ms; one wait for two operations.
    assert set(found) == {0}
    assert found[0][1] == pytest.approx((5 + 5.02) / 2 * MS)


def test_why_on_the_host(run):
    found = {(name, why) for name, why, _, _ in overview.reasons(run)}
    assert found == {("bcast", operations.WHY["blocking"]), ("iallgather", operations.WHY["policy"])}


def test_the_summary_is_one_screen(run):
    lines = [{"in_place_bytes": 4096, "copied_bytes": 0, "moved": [{"address": 4096, "bytes": 131072}]}] * 2
    lines[0] = lines[0] | {"coded_bytes": 8192, "wire_bytes": 2048, "saved_ns": 5 * MS}
    overview.show(run, Console(width=100, file=(text := io.StringIO())), lines)
    shown = text.getvalue()
    assert "memory: 8.0 KiB used in place, 0 B copied by the kernel\nmoved: 2 of 128.0 KiB\n" in shown
    assert "wire: 8.0 KiB went compressed as 2.0 KiB, 75.0% saved; by estimate links were busy 5 ms less" in shown
    assert len(shown.splitlines()) <= 24
    assert "2 operations on the DPU, 4 on the host" in shown
    assert "app+0x40" in shown


def test_the_trace_is_one_that_perfetto_opens(trace):
    events = check_format(json.loads(trace.read_text()))
    assert sum(event["ph"] == "s" for event in events) == 4
    assert sum(event["ph"] == "t" for event in events) == 2
    tracks = {event["args"]["name"] for event in events if event["name"] == "process_name"}
    assert tracks == {"rank 0 (node0)", "rank 1 (node1)", "service on node0, process 100",
                      "service on node1, process 101"}  # fmt: skip


def test_wires_are_rates_between_samples(run, tmp_path):
    samples = wires.Samples()
    samples.of[100] = [(10**12 - 5 * MS, 0, 0), (10**12 + 5 * MS, 1000, 0), (10**12 + 15 * MS, 1000, 700)]
    samples.of[55] = [(1, 1, 1), (2, 2, 2)]  # of a service that no rank names
    perfetto.write(run, tmp_path / "t.json", samples)
    events = check_format(json.loads((tmp_path / "t.json").read_text()))
    found = [(event["name"], event["ts"], event["args"]["bytes/s"]) for event in events if "fabric" in event["name"]]
    assert sorted(found) == [
        ("fabric in, bytes/s", 0, 200_000), ("fabric in, bytes/s", 5000, 0), ("fabric in, bytes/s", 15000, 0),
        ("fabric out, bytes/s", 0, 0), ("fabric out, bytes/s", 5000, 70_000), ("fabric out, bytes/s", 15000, 0),
    ]  # fmt: skip


def test_a_trace_holds_its_recording(trace, run):
    again = perfetto.load(trace)
    assert again == run


def test_what_the_run_took_is_in_the_views(run, tmp_path):
    run.cost = Cost(4_000_000_000, 500_000_000, 30_000_000, 2, 2)
    perfetto.write(run, tmp_path / "trace.json")
    again = perfetto.load(tmp_path / "trace.json")
    assert again.cost == run.cost
    overview.show(again, Console(width=100, file=(text := io.StringIO())))
    assert "processor time: 4 s of the ranks, 500 ms of their services; energy: 30 J\n" in text.getvalue()
    shown = page.page([("run", again)])
    assert "4.5 s" in shown and "500 ms of it of services" in shown and "30 J" in shown


def test_regions_that_the_program_names_are_in_the_views(tmp_path):
    files = write_parts(tmp_path)
    for rank, file in enumerate(files):
        file.write_bytes(part(region_lines(rank_lines(rank))))
    found = operations.join(record.of_parts(files))
    rows = {row[0]: row[1:] for row in overview.region_rows(found)}
    assert list(rows) == ["step", "output", "step/post"]  # the longest first
    assert rows["step"] == ("2", "82 ms", "60 ms", "40 us", "22 ms")  # with what lies inside
    assert rows["step/post"][1:] == ("63 us", "60 ms", "40 us", "0 us")
    overview.show(found, Console(width=100, file=(text := io.StringIO())))
    assert "step/post" in text.getvalue() and "By region" in page.page([("run", found)])
    perfetto.write(found, tmp_path / "t.json")
    events = check_format(json.loads((tmp_path / "t.json").read_text()))
    named = [event["name"] for event in events if event.get("args", {}).get("region")]
    assert sorted(named) == ["output", "output", "post", "post", "step", "step"]
    again = perfetto.load(tmp_path / "t.json")
    assert again == found and [each.path for each in again.regions] == ["step", "step/post", "output"] * 2


def test_threads_have_tracks_of_their_own(tmp_path):
    """What one thread does overlaps what another does; regions hold the calls of their own thread only."""
    lines = rank_lines(0)
    lines[4] |= {"thread": 1, "begin_ns": lines[3]["begin_ns"] + 5000}  # begins inside the call before it
    lines[6] |= {"thread": 1}
    (tmp_path / "part").write_bytes(part(region_lines(lines)))
    found = operations.join(record.of_parts([tmp_path / "part"]))
    assert [each.region.path if each.region else None for each in found.operations] == [None, "step/post", None]
    perfetto.write(found, tmp_path / "t.json")
    events = check_format(json.loads((tmp_path / "t.json").read_text()))
    assert {event["args"]["name"] for event in events if event["name"] == "thread_name"} == {"calls", "calls, thread 1"}


def test_a_part_holds_its_lines(tmp_path):
    lines = region_lines(rank_lines(0))
    lines[3] |= {"thread": 3} | {"sent_bytes": [5, 6]}
    lines[6] |= {"others": 2}
    lines[-1] |= {"operations_left_out": 3, "waits_left_out": 4}
    (tmp_path / "part").write_bytes(part(lines))
    assert parts.read(tmp_path / "part") == lines


@pytest.mark.parametrize("length", [0, 1, 20])
def test_a_part_that_was_cut_in_its_header_is_a_rank_of_which_there_is_nothing(tmp_path, length):
    files = write_parts(tmp_path)
    files[1].write_bytes(files[1].read_bytes()[:length])
    run = operations.join(record.of_parts(files))
    assert "of 1 of 2 ranks there is nothing" in record.cut_short(run.ranks)
    perfetto.write(run, tmp_path / "t.json")
    for words in (["--text"], ["-o", str(tmp_path / "page.html")]):
        result = offpath("report", str(tmp_path / "t.json"), *words)
        assert result.returncode == 0 and "there is nothing" in result.stderr, result.stderr
    files[0].write_bytes(b"")
    with pytest.raises(UserError, match="the recording is empty .*killed before"):
        record.of_parts(files)


def test_a_part_cut_anywhere_is_read(tmp_path):
    file = write_parts(tmp_path)[0]
    whole = file.read_bytes()
    for length in range(whole.index(b"\n") + 1, len(whole)):
        file.write_bytes(whole[:length])
        (rank,) = ranks = record.of_parts([file])
        assert not rank.ended and "1 of 2 ranks did not reach MPI_Finalize" in record.cut_short(ranks)
        assert overview.headline(operations.join(ranks))


def test_a_rank_that_could_write_no_more_says_why(tmp_path):
    lines = rank_lines(0)
    lines[0]["errno"] = errno.ENOSPC
    (tmp_path / "rank.0").write_bytes(part(lines[:4]))
    (tmp_path / "rank.1").write_bytes(part(rank_lines(1)))
    said = record.cut_short(record.of_parts([tmp_path / "rank.0", tmp_path / "rank.1"]))
    assert said.startswith("the recording is cut short (disk full: 1 of 2 ranks could not write all).")


@pytest.mark.parametrize("change", [lambda c: b"[]\n" + c, lambda c: b"\x7fELF\n" + c])
def test_a_part_without_a_header_is_one_line(tmp_path, change):
    files = write_parts(tmp_path)
    files[1].write_bytes(change(files[1].read_bytes()))
    with pytest.raises(UserError, match="without a header"):
        record.of_parts(files)


def test_parts_with_damage_are_one_line_or_what_is_whole(tmp_path):
    """Whatever is in it: never anything else than lines or one line about it."""
    file = write_parts(tmp_path)[0]
    whole = file.read_bytes()
    random.seed(seed := random.randrange(2**32))
    for _ in range(300):
        damaged = bytearray(whole)
        for _ in range(random.randrange(1, 9)):
            damaged[random.randrange(whole.index(b"\n"), len(whole))] = random.randrange(256)
        file.write_bytes(damaged[: random.randrange(len(whole))])
        try:
            record.of_parts([file])
        except UserError as error:
            assert "\n" not in str(error)
        except Exception as error:
            raise AssertionError(f"seed {seed}") from error


def test_a_sample_says_that_it_is_one(tmp_path):
    lines = [rank_lines(0), rank_lines(1)]
    for each in lines:
        each[0] |= {"sample": 3}
        each[6] |= {"others": 2}  # of four that the call waited for, two are here
        each[-1] |= {"operations_left_out": 7}
    files = [tmp_path / "rank.0", tmp_path / "rank.1"]
    for file, each in zip(files, lines, strict=True):
        file.write_bytes(part(each))
    run = operations.join(record.of_parts(files))
    alltoall = next(each for each in run.operations if each.kind == "ialltoall")
    assert alltoall.wait_ns == 11 * MS / 4
    assert "14 operations more were left out" in overview.headline(run)


def test_operations_are_matched_by_their_place_on_the_communicator(tmp_path):
    """Ranks whose call sites differ have other samples."""
    lines = [rank_lines(0), rank_lines(1, 35 * MS)]
    del lines[0][2]  # one has the bcast only, too
    run = operations.join([record._rank(each, "x") for each in lines])
    assert {each.kind for each in run.operations if each.last_to_post is not None} == {"ialltoall", "iallgather"}


def test_a_killed_rank_counts_as_far_as_it_goes(tmp_path):
    files = write_parts(tmp_path)
    files[1].write_bytes(part(rank_lines(1)[:5])[:-3])
    run = operations.join(record.of_parts(files))
    assert [len([each for each in run.operations if each.rank == rank]) for rank in (0, 1)] == [3, 2]
    assert run.ranks[1].end_ns == rank_lines(1)[3]["end_ns"]


@pytest.mark.parametrize(
    "change, words",
    [
        (lambda lines: [lines[0] | {"format": "x"}, *lines[1:]], "without a header"),
        (lambda lines: [lines[0] | {"rank": 7}, *lines[1:]], "without a header"),
        (lambda lines: [*lines[:3], lines[3] | {"begin_ns": -1}, *lines[4:]], "makes no sense"),
        (lambda lines: [*lines[:3], lines[3] | {"bytes": "x"}, *lines[4:]], "makes no sense"),
        (lambda lines: [*lines[:3], lines[3] | {"comm": 9}, *lines[4:]], "makes no sense"),
        (lambda lines: [*lines[:5], lines[5] | {"started_ns": 1}, *lines[6:]], "makes no sense"),
        (lambda lines: [*lines[:6], lines[6] | {"wait": 5}, *lines[7:]], "makes no sense"),
        (lambda lines: [lines[0], lines[1] | {"members": [0, 9]}, *lines[2:]], "makes no sense"),
        (lambda lines: [*lines[:3], lines[3] | {"comm": []}, *lines[4:]], "makes no sense"),
        (lambda lines: [lines[0] | {"mpi": float("nan")}, *lines[1:], {"served": 2, "done_ns": 5}], "makes no sense"),
        (lambda lines: [*lines, 7], "makes no sense"),
    ],
)
def test_damaged_recordings_are_one_line(trace, change, words):
    whole = json.loads(trace.read_text())
    whole["offpath"]["ranks"][0] = change(whole["offpath"]["ranks"][0])
    trace.write_text(json.dumps(whole))
    with pytest.raises(UserError, match=words):
        record.load(trace)


@pytest.mark.parametrize(
    "content, words",
    [
        (b'{"traceEvents": [', "cut short"),
        (b'{"traceEvents": []}', "no trace of Offpath"),
        (b"[]", "no trace of Offpath"),
        (b"\x7fELF\xff\xfe", "is not text"),
        (b'{"offpath": {"format": "offpath-trace", "version": 9}}', "version 9"),
        (b'{"offpath": {"format": "offpath-trace", "version": 1}}', "has no ranks"),
        (b'{"offpath": {"format": "offpath-trace", "version": 1, "ranks": []}}', "is empty"),
        (b"[" * 100_000, "no trace"),
        (None, "cannot be read"),
    ],
)
def test_foreign_files_are_one_line(tmp_path, content, words):
    file = tmp_path / "x.json"
    if content is not None:
        file.write_bytes(content)
    assert_one_line_error(offpath("report", str(file)), words)


def test_metrics_are_prometheus_text(tmp_path):
    rank = {
        "rank": 0,
        "node": 'a"b',
        "enabled": True,
        "reason": "",
        "offloaded_count": 3,
        "wait_ns": 1500,
        "service_cpu_ns": 10**9,
        "cpu_ns": 2 * 10**9,
        "energy_uj": 5_000_000,
        "collectives": {"ialltoall": {"offloaded_count": 3, "native_count": 1}},
    }
    prometheus.write([rank], tmp_path / "run.prom", BatchJob("", "ocean"))
    lines = (tmp_path / "run.prom").read_text().splitlines()
    assert 'offpath_operations_offloaded_total{job_name="ocean",node="a\\"b",rank="0"} 3.0' in lines
    assert 'offpath_wait_seconds_total{job_name="ocean",node="a\\"b",rank="0"} 1.5e-06' in lines
    collective = 'collective="ialltoall",job_name="ocean",node="a\\"b",path="host",rank="0"'
    assert f"offpath_collectives_total{{{collective}}} 1.0" in lines
    assert 'offpath_service_cpu_seconds_total{job_name="ocean",node="a\\"b"} 1.0' in lines
    assert 'offpath_process_cpu_seconds_total{job_name="ocean",node="a\\"b",rank="0"} 2.0' in lines
    assert 'offpath_energy_joules_total{job_name="ocean",node="a\\"b",rank="0"} 5.0' in lines
    assert [file.name for file in tmp_path.iterdir()] == ["run.prom"]
    names = [line.split()[2] for line in lines if line.startswith("# TYPE")]
    assert len(names) == len(set(names)) > 0
    assert {line.split("{")[0] for line in lines if not line.startswith("#")} == set(names)


def browse(file):
    """The page's document after its scripts ran in a real browser."""
    browser = next((name for name in BROWSERS if shutil.which(name)), None)
    if browser is None:
        pytest.skip(f"there is no {BROWSERS[0]} (a page is nothing without a browser)")
    command = [browser, "--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=5000",
               f"--user-data-dir={file.parent / 'profile'}", "--dump-dom", file.as_uri()]  # fmt: skip
    result = succeeded(captured(command, timeout=110))
    return result.stdout


def test_the_page_in_a_browser(trace):
    html = trace.with_suffix(".html")
    assert offpath("report", str(trace), "-o", str(html)).returncode == 0
    shown = browse(html)
    assert 'data-ready="1"' in shown and "data-error" not in shown
    assert 'data-drawn="12"' in shown  # of each rank three calls, two waits, one operation at its service
    for heading in ("Where each rank", "Timeline", "By call site", "Message sizes", "Who waits for whom", "and why"):
        assert heading in shown
    assert "app+0x40" in shown and "http" not in html.read_text().replace("http://www.w3.org", "")


def test_two_runs_side_by_side_in_a_browser(trace):
    html = trace.with_suffix(".html")
    assert offpath("report", str(trace), str(trace), "-o", str(html)).returncode == 0
    shown = browse(html)
    assert 'data-ready="2"' in shown and "data-error" not in shown
    assert "The two runs" in shown and "1.00" in shown


def test_what_a_page_shows_is_never_markup(run):
    for each in run.operations:
        each.site = sites.Site("app", 1, symbol="</script><script>x<")
    assert "<script>x" not in page.page([("</title><b>", run)])


def test_three_traces_are_too_many(trace):
    assert_one_line_error(offpath("report", *[str(trace)] * 3), "side by side")


def test_a_program_without_mpi_leaves_no_trace(witness_env, tmp_path):
    result = succeeded(offpath("run", "-q", "--trace", str(tmp_path / "t.json"), "--", "true", env=witness_env))
    assert "the recording is empty" in result.stderr and len(result.stderr.splitlines()) == 1
    assert list(tmp_path.iterdir()) == []


def mpirun(mpi):
    program = paths().bench / mpi / "collectives"
    require(paths().lib / f"liboffpath_mpi_{mpi}.so", program)
    extra = ["--oversubscribe"] if mpi == mpis.OPENMPI else []
    return [mpis.launcher(mpi), *extra, "-np", "2", str(program)]


@pytest.mark.machine
@pytest.mark.parametrize("mpi", [mpis.OPENMPI, mpis.MPICH])
def test_a_real_run(mpi, tmp_path):
    trace = tmp_path / "t.json"
    result = succeeded(offpath(
        "run", "--share", "--policy", "ialltoall:64K-inf:dpu", "--trace", str(trace), "--summary", "--metrics",
        str(tmp_path / "m.prom"), "--", *mpirun(mpi), "--collective", "ialltoall", "--sizes", "1024,262144",
        "--repeats", "3", "--work-ns", "1000000,1000000", env=AS_ROOT,
    ))  # fmt: skip
    check_format(json.loads(trace.read_text()))
    run = perfetto.load(trace)
    posted = [each for each in run.operations if each.kind == "ialltoall"]
    dpu = [each for each in posted if each.path == "dpu"]
    assert dpu and {each.why for each in posted} == {"policy"}
    assert any(each.path == "host" for each in posted)
    for each in dpu:
        assert each.begin_ns <= each.started_ns <= each.first_byte_ns <= each.done_ns <= each.wait.end_ns
        assert each.bytes >= 64 << 10 and not each.failed
        assert "movement.cpp" in each.site.text or "collectives" in each.site.text  # with symbols, without
    assert "on the DPU" in result.stderr and "ialltoall" in result.stderr
    assert "offpath_operations_offloaded_total" in (tmp_path / "m.prom").read_text()
    assert sorted(file.name for file in tmp_path.iterdir()) == ["m.prom", "t.json"]


@pytest.mark.machine
def test_a_real_sample(tmp_path):
    trace = tmp_path / "t.json"
    succeeded(offpath(
        "run", "-q", "--share", "--policy", "ialltoall:64K-inf:dpu", "--trace", str(trace), "--trace-sample", "4", "--",
        *mpirun(mpis.OPENMPI), "--collective", "ialltoall", "--sizes", "262144", "--repeats", "20", "--work-ns",
        "100000", env=AS_ROOT,
    ))  # fmt: skip
    run = operations.join(record.load(trace))
    assert [rank.sample for rank in run.ranks] == [4, 4]
    for rank in run.ranks:
        places = {(post["offset"], post["file"], post["comm"]) for post in rank.posts}
        known = len(rank.posts) + rank.operations_left_out
        assert known / 4 <= len(rank.posts) < known / 4 + len(places)
    posted = [each for each in run.operations if each.kind == "ialltoall"]
    assert posted and all(each.wait is not None and each.done_ns is not None for each in posted)
    assert {each.index for each in posted if each.rank == 0} == {each.index for each in posted if each.rank == 1}


def test_a_sample_without_a_recording_is_one_line(witness_env):
    result = offpath("run", "--trace-sample", "4", "--", "true", env=witness_env)
    assert_one_line_error(result, "--trace-sample", status=2)


@pytest.mark.machine
def test_the_guides_commands_run(tmp_path):
    command = mpirun(mpis.OPENMPI)
    for words in commands(ROOT / "docs" / "guide-telemetry.md", "./offpath"):
        if words[1] == "top":
            continue  # needs a job that runs: test_top.py
        stand_ins = {"./my_mpi_program": command[-1], "9400": "0"}
        words = [stand_ins.get(word, word) for word in words[1:]]
        if "mpirun" in words:
            at = words.index("mpirun")
            words[at : at + 1] = [command[0], "--oversubscribe"]
            words += ["--sizes", "262144", "--repeats", "2"]
        result = offpath(*words, env=AS_ROOT, cwd=tmp_path)
        assert result.returncode == 0, (words, result.stderr)
