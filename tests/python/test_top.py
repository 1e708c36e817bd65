# SPDX-License-Identifier: BSD-3-Clause
"""`offpath top`: what it shows of made-up services and real ones, and what it refuses."""

import contextlib
import io
import json
import os
import pty
import re
import signal
import subprocess
import threading
from pathlib import Path

import observation_support as made
import pytest
from conftest import AS_ROOT, LIMIT_S, PROGRAMS, ROOT, assert_one_line_error, eventually, offpath, succeeded
from offpath.base import words
from offpath.base.errors import UserError
from offpath.launch import mpis
from offpath.telemetry import jobs, observation
from offpath.telemetry import top as view
from rich.console import Console
from test_telemetry import mpirun


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The runtime folder of a test."""
    (tmp_path / "run").mkdir(mode=0o700)
    monkeypatch.setenv("OFFPATH_RUNTIME_DIR", str(tmp_path / "run"))
    return tmp_path / "run"


@pytest.fixture
def serve(folder):
    with contextlib.ExitStack() as stack:

        def start(*arguments, **options):
            service = made.Service(folder, *arguments, **options)
            stack.callback(service.end)
            return service

        yield start


def healthy() -> bytes:
    return made.header() + made.page([made.client(2, 1, in_flight=1, members=(0,)), made.client(1, 0)])


def top(*arguments: str):
    return offpath("top", *arguments)


def refused(which=None) -> str:
    """The one line that there is instead of a job."""
    with pytest.raises(UserError) as error, jobs.watched(which):
        pass
    assert "\n" not in str(error.value)
    return str(error.value)


def shown(*data) -> str:
    Console(width=200, file=(text := io.StringIO())).print(view.screen(list(data)))
    return text.getvalue()


def test_no_job_is_one_line(folder):
    assert_one_line_error(top("--once"), "no offloaded job", str(folder), status=1)
    assert "no job '77'" in refused("77")


def test_a_job_is_named_by_its_processes_or_its_name(serve):
    serve(healthy(), name="1c0ffee")
    for which in ("1c0ffee", "1c0", str(os.getpid()), str(os.getppid())):  # the service is this process
        with jobs.watched(which) as (job,):
            assert job.name == "1c0ffee"
    for which in ("1", "c0ffee", "999999999"):
        assert f"no job '{which}'" in refused(which)


def test_a_folder_that_cannot_be_is_one_line(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("OFFPATH_RUNTIME_DIR", str(tmp_path / "file" / "run"))
    assert "OFFPATH_RUNTIME_DIR" in refused()


def test_one_look(serve):
    service = serve(healthy())
    result = top("--once", "--json", "--interval", "0.2")
    assert result.returncode == 0 and result.stderr == ""
    (job,) = json.loads(result.stdout)["jobs"]
    assert (job["job"], job["service"], job["ended"]) == ("job", os.getpid(), False)
    assert [rank["rank"] for rank in job["ranks"]] == [0, 1]
    assert job["ranks"][0]["oldest"] is None
    first = job["ranks"][1]
    assert first["oldest"] == {
        "kind": "allreduce", "bytes": 1 << 20, "age_ns": 2 * 10**9, "waits": "not_posted", "members": [0],
        "members_count": 1, "team_size": 2,
    }  # fmt: skip
    assert first["hidden_ns"] == 6 * 10**8 and (first["posted"], first["done"]) == (7, 6)
    assert service.requests == [observation.REQUEST.pack(observation.LINK_VERSION, observation.OBSERVE, 0)]


def test_a_job_whose_service_is_on_a_dpu(serve):
    serve(healthy(), flags=observation.FAR)
    (job,) = json.loads(top("--once", "--json", "--interval", "0.2").stdout)["jobs"]
    assert job["far"] and f"service is on a DPU, its agent process {os.getpid()}" in shown(job)


def test_plain_text(serve):
    serve(healthy())
    result = succeeded(top("--once", "--interval", "0.2"))
    assert "allreduce, 1.0 MiB, 2.0 s: rank 0 not called yet" in result.stdout
    assert "\x1b" not in result.stdout


FORMS = [(3, form, name) for form, name in words.texts("collective_kinds").items()]
FORMS += [(8, form, name) for form, name in words.texts("remote_kinds").items()]
FORMS += [(9, 0, "program"), (11, 0, "task"), (3, 0, "none"), (8, 100, "none")]


@pytest.mark.parametrize("kind, form, name", FORMS)
def test_every_kind_of_operation_has_its_name(serve, kind, form, name):
    """MPI_Isend, too: a put with signal."""
    serve(made.header() + made.page([made.client(1, 0, in_flight=1, kind=kind, form=form)]))
    with jobs.watched(None) as (job,):
        assert [client.oldest.kind for client in job.last.clients] == [name]


def test_a_job_that_ends_while_it_is_watched(serve):
    service = serve(healthy())
    watching = subprocess.Popen([ROOT / "offpath", "top", "--interval", "3600"], stdout=-1, stderr=-1, text=True)
    eventually(lambda: service.requests)
    service.end()
    out, err = watching.communicate(timeout=LIMIT_S)
    assert watching.returncode == 0
    assert "has ended; this is what was last seen" in out and "allreduce" in out
    assert err == "offpath: job job has ended.\n"


def test_a_job_goes_on_with_another_service(serve, folder):
    """As after `offpath service restart`, or where one was lost."""
    first = serve(healthy())
    watching = subprocess.Popen([ROOT / "offpath", "top", "--interval", "3600"], stdout=-1, stderr=-1, text=True)
    eventually(lambda: first.requests)
    first.path.unlink()
    first.path = folder / "gone"
    second = serve(healthy())
    first.end()
    eventually(lambda: second.requests)
    second.end()
    out, err = watching.communicate(timeout=LIMIT_S)
    assert (watching.returncode, err) == (0, "offpath: job job has ended.\n")
    assert "2 ranks here, service is process" in out and out.count("has ended") == 1


def test_interrupted(serve):
    service = serve(healthy())
    watching = subprocess.Popen([ROOT / "offpath", "top", "--interval", "3600"], stdout=-1, stderr=-1, text=True)
    eventually(lambda: service.requests)
    watching.send_signal(signal.SIGINT)
    out, err = watching.communicate(timeout=LIMIT_S)
    assert (watching.returncode, out, err) == (0, "", "")


def test_80_columns_are_enough(serve):
    """The oldest operation of each rank in one line, nothing cut."""
    serve(made.header() + made.page([made.client(rank, rank, in_flight=1, members=(0, 1, 2)) for rank in range(4)]))
    with jobs.watched(None) as (job,):
        data = view.job_data(job, job.last, job.last)
    Console(width=80, file=(text := io.StringIO())).print(view.screen([data]))
    lines = text.getvalue().splitlines()
    assert len(lines) <= 24 and max(map(len, lines)) <= 80 and "…" not in text.getvalue()
    assert sum("ranks 0, 1, 2" in line and line.rstrip().endswith("not called yet") for line in lines) == 4


def test_full_screen(serve):
    """What a terminal gets: a screen of its own, taken away at the end, and the last look left behind."""
    serve(healthy())
    ours, theirs = pty.openpty()
    terminal = os.environ | {"TERM": "xterm", "COLUMNS": "150", "LINES": "40"}
    command = ["timeout", str(LIMIT_S), ROOT / "offpath", "top"]
    watching = subprocess.Popen(command, stdout=theirs, stderr=-1, env=terminal)
    os.close(theirs)
    seen = b""
    with contextlib.suppress(OSError):  # the terminal's end
        while more := os.read(ours, 65536):
            before, seen = seen, seen + more
            if b"not called yet" in seen and b"not called yet" not in before:
                assert b"\x1b[?1049h" in seen and b"\x1b[?1049l" not in seen
                watching.send_signal(signal.SIGINT)
    os.close(ours)
    _, err = watching.communicate(timeout=LIMIT_S)
    assert (watching.returncode, err) == (0, b"")
    assert b"\x1b[?1049l" in seen


def test_tasks_are_shown_where_there_are_any(serve):
    """Submitted, done, failed, ns in functions, moved, returned, rerun."""
    service = serve(made.header() + made.page())
    with jobs.watched(None) as (job,):
        before = job.last
        assert "tasks of worker" not in _text(view.job_data(job, before, before))
        service.publish(0, made.page(tasks=(90, 80, 2, 3 * 10**9, 33, 31, 4), generation=4))
        data = view.job_data(job, before, job.look())
    worker = data["workers"][0]
    assert [worker[f"tasks_{name}"] for name in ("submitted", "done", "failed", "run_ns")] == [90, 80, 2, 3 * 10**9]
    shown = _text(data)
    assert "tasks of worker" in shown and "rerun" in shown and all(f" {n} " in shown for n in (90, 80, 33, 31))


def _text(data: dict) -> str:
    console = Console(width=150, file=io.StringIO())
    console.print(view.screen([data]))
    return console.file.getvalue()


def test_what_was_published_for_somebody_else_before_is_not_taken_for_what_is_now(serve):
    service = serve(healthy(), prompt=False)

    def publish():
        eventually(lambda: service.requests)
        service.publish(0, made.page([made.client(1, 0, posted=9)], generation=4))

    publishing = threading.Thread(target=publish)
    publishing.start()
    with jobs.watched(None) as (job,):
        assert [client.posted for client in job.last.clients] == [9]
    publishing.join()


def test_rates_are_of_the_time_between_looks(serve):
    service = serve(made.header() + made.page([made.client(1, 0, posted=7)], cpu_ns=10, sent=100))
    with jobs.watched(None) as (job,):
        before = job.last
        service.publish(0, made.page([made.client(1, 0, posted=9)], cpu_ns=20, sent=400, generation=4))
        data = view.job_data(job, before, job.look())
        seconds = (job.last.workers[0].updated_ns - before.workers[0].updated_ns) / 1e9
    assert data["workers"][0]["per_second"]["sent_bytes"] == pytest.approx(300 / seconds)
    assert data["ranks"][0]["per_second"]["done"] == pytest.approx(2 / seconds)


@pytest.mark.parametrize(
    "memory, words",
    [
        (made.header(version=9) + made.page(), "version 9"),
        (made.header(magic=b"\x7fELF\0\0\0\0") + made.page(), "its format"),
        (made.header()[:100], "cut short"),
        (b"", "cut short"),
        (made.header() + made.page()[:-1], "sizes"),
        (made.header(workers=2) + made.page(), "sizes"),
        (made.header(workers=2**31) + made.page(), "sizes"),
        (made.header(workers=0) + made.page(), "sizes"),
        (made.header(page=2**63) + made.page(), "sizes"),
        (made.header(most=2**31) + made.page(), "sizes"),
        (made.header(process=-5) + made.page(), "sizes"),
        (None, "nothing to read"),
    ],
    ids=map(str, range(12)),  # the bytes hold a process id, and workers must collect the same names
)
def test_what_is_no_observation_is_one_line(serve, memory, words):
    serve(memory)
    assert words in refused()


def test_memory_that_could_shrink_is_refused(serve):
    serve(healthy(), sealed=False)
    assert "cut short" in refused()


def test_a_refusal_is_passed_on(serve):
    serve(None, status=-5, text=b"the service belongs to another user")
    assert_one_line_error(top("--once"), "belongs to another user", status=2)


def test_sockets_of_others_are_no_jobs(serve, folder):
    serve(None, answer=b"something else", name="a")
    (folder / "b.sock").write_text("")
    assert "no offloaded job" in refused()
    serve(healthy(), name="c")
    with jobs.watched(None) as found:
        assert [job.name for job in found] == ["c"]


def test_wild_records_are_shown_as_far_as_they_make_sense(serve):
    wild = [made.client(1, 0, in_flight=1, kind=99), made.client(2, 0xFFFFFFFF - 4000 & 0xFF, in_flight=1, form=10**9,
            waits=10**9, members=range(8), count=2**32 - 1)]  # fmt: skip
    serve(made.header() + made.page(wild, clients_count=2**32 - 1))
    with jobs.watched(None) as (job,):
        data = view.job_data(job, job.last, job.last)
    assert len(data["ranks"]) == made.MOST and any(rank["oldest"] is None for rank in data["ranks"])
    assert "job job" in shown(data) and "exchange" not in shown(data)


def test_a_page_that_is_always_being_written_is_read_at_last(serve):
    serve(made.header() + made.page([made.client(1, 0)], generation=3))
    with jobs.watched(None) as (job,):
        assert len(job.last.clients) == 1


# ---- real jobs ----


@pytest.fixture(scope="module", params=[mpis.OPENMPI, mpis.MPICH])
def late(request, tmp_path_factory):
    """The command line of a job of two ranks, of which one is late."""
    program = tmp_path_factory.mktemp("late") / "late"
    subprocess.run([f"mpicc.{request.param}", PROGRAMS / "late.c", "-o", program], check=True)
    return [*mpirun(request.param)[:-1], str(program)]


@contextlib.contextmanager
def running(late, folder, *options):
    """Runs it, with files that let the late rank post, and end the job."""
    post, end = folder.parent / "post", folder.parent / "end"
    command = [ROOT / "offpath", "run", "-q", "--share", "--policy", "ialltoall:64K-inf:dpu", *options, "--", *late]
    job = subprocess.Popen([*command, post, end], stdout=-3, stderr=-1, text=True, env=os.environ | AS_ROOT)
    try:
        yield job, post
    finally:
        post.touch()
        end.touch()
        job.communicate(timeout=LIMIT_S)
    assert job.returncode == 0


def ranks_of(job):
    assert job.poll() is None, job.communicate()
    result = top("--once", "--json", "--interval", "0.3", str(job.pid))
    if result.returncode != 0:
        return None
    (found,) = json.loads(result.stdout)["jobs"]
    return found["ranks"] if len(found["ranks"]) == 2 else None


def test_a_real_job(late, folder):
    with running(late, folder) as (job, post):
        ranks = eventually(lambda: (found := ranks_of(job)) and (found[0]["oldest"] or {}).get("members") and found)
        assert [each["rank"] for each in ranks] == [0, 1]
        assert [each["done"] for each in ranks] == [2, 2]
        assert all(Path(f"/proc/{each['process']}").exists() for each in ranks)
        oldest = ranks[0]["oldest"]
        assert (oldest["kind"], oldest["bytes"], oldest["waits"]) == ("exchange", 1 << 19, "not_posted")
        assert (oldest["members"], oldest["members_count"], oldest["team_size"]) == ([1], 1, 2)
        eventually(lambda: ranks_of(job)[0]["share"]["waited"] == 1)
        assert ranks_of(job)[1]["in_flight"] == 0
        post.touch()
        ranks = eventually(lambda: (found := ranks_of(job))[0]["done"] > 2 and found)
        assert all(each["local_bytes"] > 0 and each["waited_ns"] > 0 for each in ranks)
        command = [ROOT / "offpath", "top", "--interval", "0.2", str(job.pid)]
        watching = subprocess.Popen(command, stdout=-1, stderr=-1, text=True)
        shown = watching.stdout.readline()
        assert re.match(r"job [0-9a-f]{16}: 2 ranks here", shown)
    out, err = watching.communicate(timeout=LIMIT_S)
    assert watching.returncode == 0 and "2 ranks here, has ended; this is what was last seen" in out
    assert re.fullmatch(r"offpath: job [0-9a-f]{16} has ended\.\n", err)
