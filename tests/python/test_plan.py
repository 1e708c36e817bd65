# SPDX-License-Identifier: BSD-3-Clause
"""The planner: files it refuses, predictions that follow from the model, the guide's commands."""

import json
import statistics

import pytest
from bench_support import assert_self_contained
from conftest import AS_ROOT, ROOT, assert_one_line_error, offpath, require, succeeded
from offpath.base.errors import UserError
from offpath.base.paths import paths
from offpath.launch import mpis
from offpath.plan import calibrate, compressing, machine, model, pages, predict, replay, scale
from offpath.trace import profile, sites
from test_docs import commands

BARRIER = {"op": 0, "kind": "ibarrier", "comm": 0, "bytes": 0, "root": 0, "blocking": True, "call": "barrier"}


@pytest.fixture(autouse=True)
def built():
    require(paths().prefix / "bin" / "offpath-model")


def rank_lines(rank: int, size: int = 4 << 20, compute_ns: int = 30_000_000, host: str | None = None) -> list[dict]:
    """Post an alltoall, compute, wait."""
    place = {"file": "/nowhere/app", "offset": 64}
    return [
        {"format": "offpath-profile", "version": 1, "rank": rank, "ranks": 2, "host": host or f"node{rank}",
         "mpi": "openmpi"},
        {"comm": 0, "members": [0, 1]},
        BARRIER | {"begin_ns": 1000, "end_ns": 50_000} | place,
        {"op": 1, "kind": "ialltoall", "comm": 0, "bytes": size, "root": 0, "call": "ialltoall", "begin_ns": 60_000,
         "end_ns": 70_000} | place,
        {"wait": [1], "call": "Wait", "begin_ns": 70_000 + compute_ns,
         "end_ns": 90_000 + compute_ns + size * 4} | place,
        {"end_ns": 100_000 + compute_ns + size * 4},
    ]  # fmt: skip


@pytest.fixture
def good(tmp_path):
    file = tmp_path / "profile.jsonl"
    write(file, rank_lines(0) + rank_lines(1))
    return file


def write(file, lines):
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))


def test_offloading_hides_what_the_host_waits_for(good):
    found = profile.load(good)
    prediction = predict.predict(found, machine.default(), found.node_of)
    assert prediction.verdict == "worth it"
    # 2 MiB at 1 Gbit/s, 16.8 ms, behind 30 ms of work
    assert prediction.host - prediction.dpu == pytest.approx(16.8e6, rel=0.25)
    assert prediction.limit <= prediction.dpu < prediction.host


def test_nothing_beats_the_limit(tmp_path):
    """Nor do ranks of one node with a DPU of many cores, which only copies."""
    file = tmp_path / "profile.jsonl"
    write(file, rank_lines(0, compute_ns=0, host="node") + rank_lines(1, compute_ns=0, host="node"))
    found = profile.load(file)
    for cores in (1, 8, 64):
        faster = machine.changed(machine.default(), dpu_cores=cores)
        prediction = predict.predict(found, faster, found.node_of, model.DPU, dpu_cores=cores)
        assert prediction.limit <= prediction.dpu


def test_what_offloading_takes_and_saves(good, capsys):
    """Waits are no processor time. More cores, which do the same work sooner, take no more."""
    found = profile.load(good)
    start = machine.default()
    here = predict.predict(found, start, found.node_of)
    assert here.node_saved == pytest.approx(2 * (here.recorded - here.offloaded)) and here.node_saved > 0
    assert 0 < here.core_more < here.offloaded
    more = {}
    for cores in (1, 8):
        changed = machine.changed(start, dpu_cores=cores)
        more[cores] = predict.predict(found, changed, found.node_of, dpu_cores=cores).core_more
    assert more[8] == pytest.approx(more[1], rel=0.1)
    predict.show(here, predict.calls_of(found))
    assert f"price      takes {here.core_more / 1e9:.3g} core-s more, saves" in capsys.readouterr().out
    said = predict.to_json(here, predict.calls_of(found))
    assert (said["core_more_ns"], said["node_saved_ns"]) == (round(here.core_more), round(here.node_saved))


def test_what_is_not_shown_is_said(good):
    lines = [json.loads(line) for line in good.read_text().splitlines()]
    posted = {"kind": "ibarrier", "blocking": True, "comm": 0, "bytes": 0, "root": 0, "call": "barrier", "file": "/x"}
    for end in (-1, 5):
        last = lines[end]["end_ns"]
        lines[end : end or None] = [
            *(posted | {"op": 9 + i, "offset": i, "begin_ns": last + i, "end_ns": last + i + 1} for i in range(30)),
            {"end_ns": last + 40},
        ]
    write(good, lines)
    assert "11 more, of 0." in offpath("plan", str(good)).stdout  # the others are at one place


def test_other_hardware_is_compared_with_itself(good):
    """A run that was recorded on a fast network, or on one node, takes longer on a slow one, offloaded or not."""
    found = profile.load(good)
    fast, slow = (machine.changed(machine.default(), link=link) for link in ("10gbit", "1gbit"))
    here, there = (predict.predict(found, each, found.node_of, recorded_on=fast) for each in (fast, slow))
    assert here.alone == pytest.approx(here.recorded) and here.told == here.host
    assert (there.told, there.error) == (here.told, here.error)  # of the recorded run, wherever is asked about
    assert there.alone / here.alone == pytest.approx(there.host / here.host) and there.alone > 1.1 * here.alone
    assert there.node_saved == pytest.approx(2 * (there.alone - there.offloaded))
    assert there.offloaded == pytest.approx(there.alone / (1 + there.gain))
    one = predict.predict(found, slow, [0, 0])
    assert one.told == predict.predict(found, slow, found.node_of).host != one.host
    argv = ["plan", str(good), "--link", "10mbit"]
    planned = json.loads(offpath(*argv, "--json").stdout)
    assert planned["host_ns"] > 10 * planned["recorded_ns"]
    assert planned["host_ns"] / planned["offloaded_ns"] == pytest.approx(1 + planned["gain"], rel=1e-6)
    assert f"there      {planned['host_ns'] / 1e9:.4f} s, not offloaded" in offpath(*argv).stdout


def test_the_mpis_own_thread_is_a_choice_where_it_hides_as_much(good, tmp_path):
    """Of what Open MPI's was measured to hide over TCP; no other MPI, no other collective, not within a node."""
    answer = offpath("plan", str(good))
    (line,) = [line for line in answer.stdout.splitlines() if line.startswith("try first")]
    assert "OMPI_MCA_btl_tcp_progress_thread=1 (over TCP Open MPI's own thread hides ialltoall as well)" in line
    assert json.loads(offpath("plan", str(good), "--json").stdout)["own_thread"] in line

    lines = rank_lines(0) + rank_lines(1)
    other_mpi = [line | {"mpi": "mpich"} if "mpi" in line else line for line in lines]
    iallreduce = {"kind": "iallreduce", "call": "iallreduce"}
    reductions = [line | iallreduce if line.get("op") == 1 else line for line in lines]
    for other, options in ((other_mpi, ()), (reductions, ()), (lines, ("--nodes", "1"))):
        file = tmp_path / "other.jsonl"
        write(file, other)
        said = offpath("plan", str(file), *options)
        assert said.returncode == 0 and "verdict" in said.stdout and "try first" not in said.stdout


def test_a_service_that_costs_more_than_it_hides_is_not_worth_it(good):
    slow = machine.default()
    slow["service"] |= {"send_ns_per_byte": 20, "receive_ns_per_byte": 20}
    found = profile.load(good)
    assert predict.predict(found, slow, found.node_of, model.DPU).verdict == "not worth it"


def test_a_late_rank_is_late_in_the_replay(tmp_path):
    file = tmp_path / "profile.jsonl"
    write(file, rank_lines(0) + rank_lines(1, compute_ns=90_000_000))
    times = replay.scenario(profile.load(file)).run(machine.default(), [0, 1], model.HOST)
    assert times.total > 90e6 + 16e6


@pytest.mark.parametrize(
    "change, words",
    [
        (lambda lines: lines[:-1], "rank 1 has no end"),
        (lambda lines: lines[:6], "rank 1 of 2 is missing"),
        (lambda lines: lines[1:], "first line is no header"),
        (lambda lines: [lines[0] | {"format": "trace"}, *lines[1:]], "its format is not"),
        (lambda lines: [lines[0] | {"version": 99}, *lines[1:]], "version 99"),
        (lambda lines: [lines[0] | {"rank": 7}, *lines[1:]], "rank 7 of 2"),
        (lambda lines: [*lines[:4], lines[4] | {"end_ns": 1}, *lines[5:]], "line 5 makes no sense"),
        (lambda lines: [*lines[:3], lines[3] | {"bytes": -1}, *lines[4:]], "line 4 makes no sense"),
        (lambda lines: [*lines[:3], lines[3] | {"kind": "ibcast"}, *lines[4:]], "do not fit together"),
        (lambda lines: [lines[0], lines[1] | {"members": [0, {}]}, *lines[2:]], "line 2 makes no sense"),
        (lambda lines: [lines[0], lines[1] | {"members": [0, 2]}, *lines[2:]], "line 2 makes no sense"),
        (lambda lines: [*lines[:3], lines[3] | {"root": 2}, *lines[4:]], "line 4 makes no sense"),
        (lambda lines: [*lines[:3], lines[3] | {"kind": "put", "root": -1}, *lines[4:]], "line 4 makes no sense"),
        (lambda lines: [*lines[:3], lines[3] | {"op": {}}, *lines[4:]], "line 4 makes no sense"),
        (lambda lines: [*lines[:3], lines[3] | {"comm": {}}, *lines[4:]], "line 4 makes no sense"),
        (lambda lines: [*lines[:3], lines[3] | {"offset": [1]}, *lines[4:]], "line 4 makes no sense"),
        (lambda lines: [*lines[:4], lines[4] | {"wait": [{}]}, *lines[5:]], "line 5 makes no sense"),
        (lambda lines: [*lines[:5], {"end_ns": "late"}, *lines[6:]], "line 6 makes no sense"),
        (lambda lines: [], "is empty"),
    ],
)
def test_bad_profiles_are_one_line(good, change, words):
    lines = [json.loads(line) for line in good.read_text().splitlines()]
    write(good, change(lines))
    with pytest.raises(UserError, match=words.replace("(", r"\(")):
        replay.scenario(profile.load(good))


def test_a_profile_cut_in_a_line_or_foreign(good, tmp_path):
    text = good.read_text()
    good.write_text(text[: len(text) * 2 // 3])
    assert_one_line_error(offpath("plan", str(good)), "cut short")
    good.write_bytes(b"\x7fELF\xff\xfe\x00")
    assert_one_line_error(offpath("plan", str(good)), "no profile")
    assert_one_line_error(offpath("plan", str(tmp_path / "missing")), "cannot be read")


@pytest.mark.parametrize(
    "section, field, value, words",
    [
        ("network", "rate_bytes_per_ns", None, "network.rate_bytes_per_ns is missing"),
        ("network", "rate_bytes_per_ns", 0, "network.rate_bytes_per_ns is 0"),
        ("network", "latency_ns", -5, "network.latency_ns is -5"),
        ("service", "speed", "fast", "service.speed is 'fast'"),
        ("service", "wake_ns", {"median": 1e14}, "service.wake_ns is 1e+14"),
        ("native", "family", "lam", "native.family"),
        ("cores", "compute_flop_per_ns", {"min": 1}, "cores.compute_flop_per_ns is None"),
        ("codecs", "lz4", {"encode_ns_per_byte": "x"}, "codecs.lz4.encode_ns_per_byte is 'x'"),
        ("codecs", "lz4", 1, "it should be a section"),
    ],
)
def test_bad_machines_are_one_line(good, tmp_path, section, field, value, words):
    wrong = machine.default()
    if value is None:
        del wrong[section][field]
    else:
        wrong.setdefault(section, {})[field] = value
    file = tmp_path / "machine.json"
    file.write_text(json.dumps(wrong))
    assert_one_line_error(offpath("plan", str(good), "--machine", str(file)), words)


def test_other_bad_input_is_one_line(good, tmp_path):
    machine_file = tmp_path / "machine.json"
    assert_one_line_error(offpath("plan", str(good), "--machine", str(machine_file)), "cannot be read")
    machine_file.write_text("{")
    assert_one_line_error(offpath("plan", str(good), "--machine", str(machine_file)), "not JSON")
    machine_file.write_text(json.dumps(machine.default()))
    with_machine = ("plan", str(good), "--machine", str(machine_file))
    assert_one_line_error(offpath(*with_machine, "--nodes", "3", "--ppn", "2"), "do not fit the profile")
    assert_one_line_error(offpath(*with_machine, "--link", "fast"), "not a link rate")
    assert_one_line_error(offpath(*with_machine, "--dpu-speed", "0"), "speed")
    for speed in ("0", "-1", "nan"):
        assert_one_line_error(offpath("plan", "scale", "--nodes", "2", "--dpu-speed", speed), "speed")
    assert_one_line_error(offpath("plan", "scale", "--nodes", "2,x"), "--nodes 2,x is not usable")
    assert_one_line_error(offpath("bench", "plan", "--mpi", "lam"), "lam")


def test_calibration_finds_what_was_put_in():
    """Times of a known machine, made by the model, are given back by the fitted one, and so are others."""
    where = model.Placement(2)
    truth = machine.default()
    truth["network"] |= {"latency_ns": 30_000, "rate_bytes_per_ns": 0.0625}
    truth["service"] |= {"wake_ns": 40_000, "send_ns_per_byte": 0.9, "receive_ns_per_byte": 1.35}
    measured = calibrate.Measured({}, {}, {})
    for path in (model.HOST, model.DPU):
        for size in (calibrate.SHORT, calibrate.LONG):
            times = model.bench(truth, where, "ialltoall", size, path, 30e6, repeats=3)
            measured.pure[path, size], measured.total[path, size] = times.pure, times.total
            measured.compute[path, size] = 30e6
    fitted = machine.default()
    calibrate.fit(fitted, where, measured)
    for section, field in (
        ("network", "latency_ns"), ("network", "rate_bytes_per_ns"), ("service", "wake_ns"),
        ("service", "receive_ns_per_byte"),
    ):  # fmt: skip
        assert fitted[section][field] == pytest.approx(truth[section][field], rel=0.1), field
    for kind in ("ialltoall", "ibcast", "iallreduce"):
        times = [model.bench(each, where, kind, 4 << 20, model.DPU, 50e6).total for each in (truth, fitted)]
        assert times[1] == pytest.approx(times[0], rel=0.03)


@pytest.mark.parametrize("mpi", [mpis.OPENMPI, mpis.MPICH])
def test_calibration_tells_crossing_of_the_mpi_from_that_of_the_service(mpi):
    where = model.Placement(4)
    truth, fitted = machine.default(), machine.default()
    truth["native"]["family"] = fitted["native"]["family"] = mpi
    for section, path, efficiency in (("native", model.HOST, 0.65), ("service", model.DPU, 0.8)):
        truth[section]["crossing_efficiency"] = efficiency
        kind = calibrate.crossing_kind(mpi, path)
        pure_ns = model.bench(truth, where, kind, calibrate.LONG, path, 0, repeats=3).pure
        calibrate.fit_crossing(fitted, where, path, pure_ns)
    for section in ("native", "service"):
        field = "crossing_efficiency"
        assert fitted[section][field] == pytest.approx(truth[section][field], rel=0.02), section


def test_faster_links_and_own_cores_never_hurt(good):
    found = profile.load(good)
    scenario = replay.scenario(found)
    start = machine.default()
    base = scenario.run(start, found.node_of, model.DPU).total
    for better in (machine.changed(start, link="10gbit"), machine.changed(start, dpu_cores=2)):
        assert scenario.run(better, found.node_of, model.DPU).total <= base


def test_predictions_are_pages_too(tmp_path):
    found = {
        "recorded_ns": 4e9, "host_ns": 4e9, "offloaded_ns": 3e9, "limit_ns": 2e9, "gain": 0.25, "error": 0.1,
        "verdict": "worth it",
        "sites": [{"call": "MPI_Wait", "site": "a<b.c:7", "host_ns": 3e9, "offloaded_ns": 1e9, "offloaded": True}],
    }  # fmt: skip
    html = pages.replay(found, "p.jsonl")
    assert_self_contained(html)
    assert "a&lt;b.c:7" in html and "+25.0%" in html and html.count("<svg") == 2
    assert "there, not offloaded" not in html
    assert "there, not offloaded" in pages.replay(found | {"host_ns": 5e9}, "p.jsonl")
    rows = [{"operation": "fft", "nodes": nodes, "host_ns": 8 / nodes, "dpu_ns": 4 / nodes} for nodes in (2, 4, 8)]
    html = pages.scale({"bytes": 1, "points": 64, "rows": rows})
    assert_self_contained(html)
    assert "64^3 points" in html and html.count("stroke-width: 2") == 2


def test_scale_reaches_thousands_of_nodes():
    result = scale.scale(machine.default(), [2, 64, 4096], 1, 1 << 20, 1024)
    assert {row["operation"] for row in result["rows"]} == {"ialltoall", "iallgather", "ibcast", "iallreduce", "fft"}
    fft = [row for row in result["rows"] if row["operation"] == "fft"]
    assert fft[0]["host_ns"] > fft[1]["host_ns"] > 0
    assert all(row["dpu_ns"] > 0 for row in result["rows"])


def test_call_sites_without_symbols_are_offsets():
    (site,) = sites.look_up([("/nowhere/app", 64)]).values()
    assert site.text == site.source == "app+0x40"


@pytest.mark.machine
@pytest.mark.parametrize("mpi", [mpis.OPENMPI, mpis.MPICH])
def test_a_real_run_is_recorded_and_planned(mpi, tmp_path):
    program = paths().bench / mpi / "collectives"
    require(paths().lib / f"liboffpath_profile_{mpi}.so", program)
    file = tmp_path / "profile.jsonl"
    extra = ["--oversubscribe"] if mpi == mpis.OPENMPI else []
    command = ["profile", "-o", str(file), "--", mpis.launcher(mpi), *extra, "-np", "2", str(program)]
    for kind in ("ialltoallv", "iallgatherv", "igather", "ireduce_scatter"):
        succeeded(offpath(
            *command, "--collective", kind, "--sizes", "65536", "--repeats", "2", "--work-ns", "100000", env=AS_ROOT
        ))
        found = profile.load(file)
        kinds = [record["kind"] for record in found.ranks[0].records if "op" in record]
        assert kinds.count(kind) >= 4
        for options in ((), ("--nodes", "2")):
            answer = succeeded(offpath("plan", str(file), *options, "--json"))
            planned = json.loads(answer.stdout)
            assert planned["limit_ns"] <= planned["host_ns" if options else "recorded_ns"]
        assert any("measure.cpp" in row["site"] or "collectives" in row["site"] for row in planned["sites"])


@pytest.mark.machine
def test_the_guides_commands_run(tmp_path):
    program = paths().bench / mpis.OPENMPI / "collectives"
    require(program, paths().prefix / "bin" / "offpath-machine")
    for words in commands(ROOT / "docs" / "guide-planner.md", "./offpath"):
        if words[1] == "bench":
            continue  # minutes in a lab
        words = [str(program) if word == "./my_mpi_program" else word for word in words[1:]]
        if "mpirun" in words:
            at = words.index("mpirun")
            words[at : at + 1] = [mpis.launcher(mpis.OPENMPI), "--oversubscribe"]
            words += ["--sizes", "262144", "--repeats", "2"]
        if words[0] == "calibrate":
            words += ["--loopback", "--repeats", "3"]
        result = offpath(*words, env=AS_ROOT, cwd=tmp_path)
        assert result.returncode == 0, (words, result.stderr)


@pytest.mark.parametrize("link, bytes_per_ns", [("1kbit", 1.25e-7), ("400gbit", 50), ("1.6tbit", 200)])
def test_links_of_every_network_are_planned(link, bytes_per_ns):
    """From a modem's to those that no lab emulates."""
    planned = machine.changed(machine.default(), link=link)
    assert planned["network"]["rate_bytes_per_ns"] == pytest.approx(bytes_per_ns)
    assert model.bench(planned, model.Placement(2), "ialltoall", 1 << 20, model.HOST, 0).pure > 0


def test_compression_is_priced():
    """Where the link is the limit times fall with the ratio; where a codec is, they do not."""
    where = model.Placement(2)

    def saved(link: str, codec: str, ratio: float) -> float:
        plain = machine.changed(machine.default(), link=link, dpu_cores=1)
        coded = compressing.changed(plain, codec, ratio)
        raw, short = (
            model.bench(each, where, "ialltoall", 4 << 20, model.DPU, 0).pure for each in (plain, coded)
        )
        return 1 - short / raw

    assert 0.57 < saved("1gbit", "lz4", 2.5) < 0.61
    assert saved("100mbit", "zstd", 4) > 0.74
    assert saved("100gbit", "zstd", 4) < 0
    for wrong in ("lz4", "lz4=0.5", "gzip=2", "lz4=2.5x"):
        with pytest.raises(UserError, match="lz4=2.5, with"):
            compressing.parse(wrong)


def test_measurements_of_a_quiet_machine_are_predicted():
    """Published medians: one row sets the service's cost per byte, the others are predicted."""
    rows = json.loads((ROOT / "tests" / "python" / "golden" / "planner_measured.json").read_text())["rows"]
    lab, where = machine.default(), model.Placement(2)
    lab["network"]["burst_bytes"] = 131072
    lab["memory"] |= {"copy_bytes_per_ns": 16, "cma_bytes_per_ns": 7.4, "reduce_bytes_per_ns": 9}

    def times(row: dict) -> list[float]:
        here = machine.changed(lab, link=row["rate"])
        here["native"]["family"] = row["mpi"]
        work_ns = 1e6 * row["host_efficiency"] * row["host_total_ms"]
        return [
            model.bench(here, where, row["collective"], row["bytes"], path, work_ns, repeats=3).total / 1e6
            for path in (model.HOST, model.DPU)
        ]

    anchor, *others = rows
    start = lab["service"]["send_ns_per_byte"], lab["service"]["receive_ns_per_byte"]

    def scale_costs(factor: float) -> None:
        lab["service"] |= {"send_ns_per_byte": start[0] * factor, "receive_ns_per_byte": start[1] * factor}

    calibrate.bisect(scale_costs, lambda: times(anchor)[1], anchor["offpath_total_ms"], 1)
    errors = []
    for row in others:
        host, dpu = times(row)
        errors.append(abs(dpu / row["offpath_total_ms"] - 1))
        gain = row["host_total_ms"] / row["offpath_total_ms"] - 1
        assert gain * (host / dpu - 1) > 0, row
    assert statistics.median(errors) <= 0.10 and max(errors) <= 0.25
