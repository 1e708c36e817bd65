# SPDX-License-Identifier: BSD-3-Clause
"""`offpath run --metrics PORT`: addresses, Prometheus' text format, and real jobs that are scraped."""

import contextlib
import errno
import os
import re
import socket
import threading
import urllib.error
import urllib.request

import pytest
from conftest import LIMIT_S, assert_one_line_error, eventually, offpath
from offpath.base.errors import UserError
from offpath.base.files import new_secret
from offpath.telemetry import batch_job, jobs, metrics_server, metrics_token, prometheus
from offpath.telemetry.batch_job import BatchJob
from prometheus_client import generate_latest, parser
from strangers import assert_slow_one_is_sent_away
from test_top import folder, healthy, late, running, serve  # noqa: F401


@pytest.mark.parametrize(
    "text, address",
    [("9400", ("127.0.0.1", 9400)), ("0.0.0.0:80", ("0.0.0.0", 80)), ("[::1]:80", ("::1", 80)), ("run.prom", None),
     ("./9400", None), ("folder/x:80", None), ("x.9", None)],
)  # fmt: skip
def test_a_number_is_a_port(text, address):
    assert prometheus.address(text) == address


def test_a_port_in_use_is_one_line_before_the_program_starts(witness_env, tmp_path):
    with metrics_server.serving("127.0.0.1", 0, BatchJob()) as url:
        port = url.rpartition(":")[2].partition("/")[0]
        result = offpath("run", "--metrics", port, "--", "touch", str(tmp_path / "started"), env=witness_env)
    assert_one_line_error(result, port, "in use", status=2)
    assert not (tmp_path / "started").exists()


@pytest.fixture
def served(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    with metrics_server.serving("127.0.0.1", 0, BatchJob()) as url:
        yield url


@pytest.mark.parametrize("header", [{}, {"Authorization": "Bearer "}, {"Authorization": "Bearer " + "0" * 64}])
def test_other_users_read_no_metrics(served, header):
    with pytest.raises(urllib.error.HTTPError, match="401") as refused:
        urllib.request.urlopen(urllib.request.Request(served, headers=header), timeout=LIMIT_S)
    told = f"{refused.value.headers}{refused.value.read().decode()}"
    assert "Bearer TOKEN" in told and str(metrics_token.file()) not in told and "Python" not in told
    with urllib.request.urlopen(
        urllib.request.Request(served, headers=metrics_token.header()), timeout=LIMIT_S
    ) as answer:
        assert answer.status == 200


def test_the_token_is_the_users_own_and_stays(served):
    token = metrics_token.read_or_make()
    assert len(token) == 64 and metrics_token.read_or_make() == token
    assert (
        metrics_token.file().stat().st_mode & 0o777 == 0o600 and len(list(metrics_token.file().parent.iterdir())) == 1
    )
    metrics_token.file().chmod(0o644)
    with pytest.raises(UserError, match="others could read"):
        metrics_token.read_or_make()


def test_a_secret_is_there_whole_or_not_at_all(tmp_path, monkeypatch):
    """Two runs make it at a time, and a disk gets full."""
    path = tmp_path / "key"

    def draw(count):
        seen.append(path.exists())
        raise OSError(errno.ENOSPC, "No space left on device")

    seen = []
    monkeypatch.setattr(os, "urandom", draw)
    with pytest.raises(OSError, match="No space"):
        new_secret(path)
    assert seen == [False] and list(tmp_path.iterdir()) == []
    monkeypatch.undo()
    new_secret(path)
    assert len(path.read_text()) == 65 and path.stat().st_mode & 0o777 == 0o600
    with pytest.raises(FileExistsError):
        new_secret(path)
    assert list(tmp_path.iterdir()) == [path]


def test_a_token_is_made_where_a_run_was_killed_making_it(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    metrics_token.file().parent.mkdir()
    metrics_token.file().with_name(f".metrics.token.{os.getpid()}").touch()
    assert len(metrics_token.read_or_make()) == 64


def test_who_sends_no_token_keeps_nobody_out(served):
    threads = threading.active_count()
    host, port = served.removeprefix("http://").partition("/")[0].split(":")
    with contextlib.ExitStack() as opened:
        strangers = [opened.enter_context(socket.create_connection((host, int(port)))) for _ in range(100)]
        with urllib.request.urlopen(
            urllib.request.Request(served, headers=metrics_token.header()), timeout=LIMIT_S
        ) as answer:
            assert answer.status == 200
        assert eventually(lambda: threading.active_count() <= threads + 16)
        assert_slow_one_is_sent_away(strangers[-1], b"G")


def test_there_is_no_such_port(witness_env):
    assert_one_line_error(offpath("run", "--metrics", "65536", "--", "true", env=witness_env), "65536", status=2)


NO_JOB = BatchJob()


def families(text: str) -> dict:
    return {family.name: family for family in parser.text_string_to_metric_families(text)}


def live(snapshots, node, job=NO_JOB):
    return families(generate_latest(prometheus.registry(lambda: prometheus.live(snapshots, node, job))).decode())


def test_live_metrics_are_prometheus_text(serve):  # noqa: F811
    serve(healthy())
    with jobs.watched(None) as (job,):
        found = live([job.last], 'a"b\\')
    (done,) = [each for each in found["offpath_operations_done"].samples if each.labels["rank"] == "1"]
    assert done.value == 6 and done.labels["node"] == 'a"b\\'
    assert found["offpath_operations_in_flight"].type == "gauge"
    assert max(each.value for each in found["offpath_oldest_operation_seconds"].samples) == 2
    assert live([], "node")["offpath_operations_done"].samples == []


def test_metrics_say_which_job_they_are_of(serve):  # noqa: F811
    serve(healthy())
    with jobs.watched(None) as (job,):
        found = live([job.last], "node", batch_job.current(None, {"SLURM_JOB_ID": "77", "SLURM_JOB_NAME": "ocean"}))
    labels = [sample.labels for family in found.values() for sample in family.samples]
    assert labels and all((each["job_id"], each["job_name"]) == ("77", "ocean") for each in labels)


@pytest.mark.parametrize(
    "name, environment, labels",
    [
        (None, {}, {}),
        (None, {"PBS_JOBID": "12.server", "PBS_JOBNAME": "run"}, {"job_id": "12.server", "job_name": "run"}),
        (None, {"FLUX_JOB_ID": "f2oKx"}, {"job_id": "f2oKx"}),
        (None, {"SLURM_JOB_NAME": "a", "OFFPATH_JOB_NAME": "b"}, {"job_name": "b"}),
        ("c", {"SLURM_JOB_NAME": "a", "OFFPATH_JOB_NAME": "b"}, {"job_name": "c"}),
    ],
)
def test_the_label_of_a_job(name, environment, labels):
    assert batch_job.current(name, environment).labels == labels


def test_metrics_of_a_real_job(late, folder):  # noqa: F811
    with running(late, folder, "--metrics", "0") as (job, post):
        line = job.stderr.readline()
        url = re.fullmatch(r"offpath: metrics at (http://127\.0\.0\.1:\d+/metrics)\n", line)[1]

        def scrape():
            asked = urllib.request.Request(url, headers=metrics_token.header())
            with urllib.request.urlopen(asked, timeout=LIMIT_S) as answer:
                assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
                return families(answer.read().decode())

        def of_ranks(found, name):
            return {each.labels["rank"]: each.value for each in found[f"offpath_{name}"].samples}

        def late_is_under_way(found):  # the two before it have their moments, too
            done, in_flight = of_ranks(found, "operations_done"), of_ranks(found, "operations_in_flight")
            return done == {"0": 2, "1": 2} and in_flight == {"0": 1, "1": 0}

        found = eventually(lambda: late_is_under_way(found := scrape()) and found)
        assert of_ranks(found, "oldest_operation_seconds")["1"] == 0
        assert found["offpath_worker_cpu_seconds"].samples[0].value > 0
        with pytest.raises(urllib.error.HTTPError, match="404"):
            urllib.request.urlopen(urllib.request.Request(url + "x", headers=metrics_token.header()), timeout=LIMIT_S)
        post.touch()
        assert eventually(lambda: of_ranks(scrape(), "operations_done")["0"] > 2)
