# SPDX-License-Identifier: BSD-3-Clause
"""Tasks from Python: native functions by name, and Python functions."""

import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import offpath
import pytest
from api_support import environment, require_executors  # noqa: F401
from conftest import PROGRAMS, ROOT, captured, eventually, together
from offpath.api import calling
from offpath.api.buffers import Buffer
from offpath.api.versions import Versions
from offpath.base.paths import paths
from offpath.tasks import letters
from test_api_session import session, team_of  # noqa: F401

sys.path.append(str(PROGRAMS))
import task_functions as functions  # noqa: E402

NATIVE = """
#include <offpath/task.h>
#include <stdio.h>
static int scale(const offpath_task_t* task) {
  const double factor = *(const double*)task->argument;
  const double* x = (const double*)task->ranges[0].address;
  double* y = (double*)task->ranges[1].address;
  for (uint64_t i = 0; i < task->ranges[1].bytes / sizeof(double); ++i) y[i] = factor * x[i];
  if (factor == 0) { snprintf(task->message, task->message_bytes, "a factor of 0"); return 7; }
  return 0;
}
OFFPATH_TASK_FUNCTION(scale, "scale(double, in double[], out double[]) 1");
"""


def build(folder, text=NATIVE):
    (folder / "scale.c").write_text(text)
    library = folder / "libscale.so"
    command = ["gcc", "-shared", "-fPIC", f"-I{ROOT}/include", folder / "scale.c", "-o", library]
    subprocess.run(command, check=True)
    return library


@pytest.fixture(scope="module", autouse=True)
def executors():
    require_executors()


@pytest.fixture(scope="module")
def native(tmp_path_factory):
    return f"{build(tmp_path_factory.mktemp('native'))}:scale"


def test_native_functions(session, native):  # noqa: F811
    x, y, z = session.empty(1000), session.empty(1000), np.zeros(1000)
    x[:] = np.arange(1000)
    first = session.task(native, argument=np.float64(2).tobytes(), inputs=[x], outputs=[y])
    then = session.task(native, argument=np.float64(3).tobytes(), inputs=[y], outputs=[z], after=[first])
    assert then.wait() is None and (y == 2 * x).all() and (z == 6 * x).all()
    assert first.done and "scale" in first.describe() and first.outcome()["executor"] > 0
    fails = session.task(native, argument=bytes(8), inputs=[x], outputs=[y])
    with pytest.raises(offpath.TaskError, match="returned 7: a factor of 0"):
        fails.wait()
    assert fails.outcome()["code"] == 7
    with pytest.raises(offpath.DependenceError):
        session.task(native, argument=bytes(8), inputs=[x], outputs=[y], after=[fails]).wait()


@pytest.mark.parametrize(
    "name, signature, words",
    [
        ("scale", None, "library.so:symbol"),
        ("/nowhere/lib.so:scale", None, "cannot load"),
        ("{library}:other", None, "exports no function"),
        ("{library}:scale", "scale 2", "has the signature"),
    ],
)
def test_functions_that_are_not_there(session, native, name, signature, words):  # noqa: F811
    with pytest.raises(offpath.ArgumentError, match=words):
        session.task(name.replace("{library}", native.rpartition(":")[0]), signature=signature)


def test_python_functions(session):  # noqa: F811
    """On memory that is mapped, and on memory that is not."""
    for make in (session.empty, np.zeros):
        x, y = make((20, 50)), make((20, 50))
        x[:], y[:] = 3, 1
        assert session.task(functions.axpy, 2.0, inputs=[x], inouts=[y]).wait() == 7000 and (y == 7).all()
        assert offpath.task(functions.axpy, inputs=[x], inouts=[y], options={"a": 1}).wait() == 10000
    small, out = np.arange(6, dtype="i2").reshape(2, 3), session.empty((2, 3), "i2")
    assert session.task(functions.doubled, inputs=[small], outputs=[out]).wait() == (False, True, (2, 3), "int16")
    assert (out == 2 * small).all() and session.task(functions.returns, 0).wait() == b""
    assert session.task(functions.axpy, 1, inputs=[np.zeros(0)], inouts=[np.zeros(0)]).wait() == 0
    first, second = (session.task(functions.process).wait() for _ in range(2))
    assert first != os.getpid() and second != os.getpid()


KINDS = {
    "complex": "c16",
    "single complex": "c8",
    "long complex": np.clongdouble,
    "half": "f2",
    "the other byte order": ">f8",
    "bytes": "S5",
    "text": "U3",
    "bytes without a meaning": "V6",
    "structures": [("position", "f8", (3,)), ("charge", "c8"), ("name", "S4")],
    "aligned structures": np.dtype(
        [("kind", "i1"), ("weight", "f8"), ("inner", [("x", "i2"), ("y", "i4")])], align=True
    ),
}


@pytest.mark.parametrize("kind", KINDS)
def test_arrays_of_all_kinds(session, kind):  # noqa: F811
    kind = np.dtype(KINDS[kind])
    if kind.kind in "fc":  # not any bytes are equal to themselves
        given = np.arange(20).astype(kind).reshape(4, 5)
    else:
        given = np.frombuffer(bytes(range(48, 48 + 60)) * kind.itemsize, kind)[:20].reshape(4, 5)
    for make in (session.empty, np.empty):
        x, y = make((4, 5), kind), make((4, 5), kind)
        x[:] = given
        assert session.task(functions.copied, inputs=[x], outputs=[y]).wait() == (str(kind), (4, 5))
        assert (y == x).all()  # padding is nobody's


def test_objects_are_refused(session):  # noqa: F811
    with pytest.raises(offpath.ArgumentError, match="Python objects"):
        session.task(functions.copied, inputs=[np.array([None])], outputs=[np.zeros(1)])


def test_order(session):  # noqa: F811
    y, last = session.empty(10), ()
    for i in range(30):
        last = [session.task(functions.axpy, 1.0, inputs=[np.full(10, i)], inouts=[y], after=last)]
    assert last[0].wait() == 10 * sum(range(30))
    team = team_of(session)
    reduced = team.iallreduce(y, y)
    assert session.task(functions.axpy, 0, inputs=[np.zeros(10)], inouts=[y], after=[reduced]).wait() == y.sum()


def test_exceptions_come_back(session):  # noqa: F811
    task = session.task(functions.fails, inputs=[np.zeros((2, 3))])
    with pytest.raises(KeyError, match="no atom in") as caught:
        task.wait()
    assert isinstance(caught.value.__cause__, offpath.TaskError)
    assert 'task_functions.py", line' in str(caught.value.__cause__) and "in fails" in str(caught.value.__cause__)
    assert task.done
    with pytest.raises(KeyError):
        task.test()
    with pytest.raises(RuntimeError, match="Own: cannot be pickled"):
        session.task(functions.odd).wait()
    for function, words in ((functions.leaves, "SystemExit: 3"), (functions.interrupts, "KeyboardInterrupt")):
        with pytest.raises(offpath.TaskError, match=words):  # this program goes on
            session.task(function).wait()
    with pytest.raises(ValueError, match="Write results into outputs"):
        session.task(functions.returns, 1 << 20).wait()
    stays = np.ones(3)
    with pytest.raises(TypeError):  # axpy takes a third one
        session.task(functions.axpy, inputs=[np.zeros(3)], inouts=[stays]).wait()
    assert (stays == 1).all()


@pytest.mark.parametrize("text", ["\u9519" * 10000, "\udcff", "\udcff" * 10000], ids=["long", "half a letter", "both"])
def test_what_an_exception_says_may_be_anything(session, text):  # noqa: F811
    with pytest.raises((ValueError, RuntimeError), match="ValueError|\udcff") as caught:
        session.task(functions.says, text).wait()
    assert "ValueError: " in str(caught.value.__cause__)
    before = session.task(functions.process).wait()
    with pytest.raises(functions.SilentError):
        session.task(functions.silent).wait()
    assert session.task(functions.process).wait() == before, "the interpreter was ended"


def test_all_threads_that_wait_have_the_result(session):  # noqa: F811
    task = session.task(functions.awkward, os.getpid(), False)
    found = together(task.wait, [()] * 4)
    assert [type(one) for one in found] == [functions.Awkward] * 4


def test_a_result_that_cannot_be_read_here_is_an_error_each_time(session):  # noqa: F811
    for task, words in (
        (session.task(functions.awkward, os.getpid(), True), "there is no result .*ImportError: it is not here"),
        (session.task(functions.raises_awkward, os.getpid()), "AwkwardError"),
    ):
        for _ in range(2):
            with pytest.raises(offpath.TaskError, match=words):
                task.wait()
        assert task.done


def test_a_process_may_attach_anew(environment):  # noqa: F811
    """Its shared memory is another one then, under the same name for those who look from outside."""
    token = secrets.token_bytes(32)
    with offpath.attach(token, node_only=True):  # the service, and with it the interpreter, stays
        for again in range(3):
            with offpath.attach(token, node_only=True) as session:
                x, y = session.empty(100), session.empty(100)
                x[:] = again
                assert session.task(functions.axpy, 2.0, inputs=[x], inouts=[y]).wait() == 200 * again
                assert (y == 2 * again).all()
                del x, y


def test_modules_are_found_as_the_program_finds_them(session, tmp_path, monkeypatch):  # noqa: F811
    """The first one of a name counts, also where the executor knows another folder that has one."""
    text = "def which():\n    return {!r}\n"
    for folder in ("early", "late"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "found_twice.py").write_text(text.format(folder))
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path / 'late'}:{ROOT / 'python'}")
    monkeypatch.setattr(sys, "path", [str(tmp_path / "early"), *sys.path, str(tmp_path / "late")])
    import found_twice

    with offpath.attach(secrets.token_bytes(32), node_only=True) as other:
        assert other.task(found_twice.which).wait() == "early" == found_twice.which()


def test_a_task_comes_after_a_file_that_was_short(session, tmp_path):  # noqa: F811
    saving = session.save(tmp_path / "empty.npy", np.zeros(0))
    team = team_of(session)
    assert session.task(functions.returns, 1, after=[saving]).wait() == b"x"
    team.after(saving)
    team.barrier()
    with pytest.raises(offpath.ArgumentError, match="more than 32 bits"):
        session.task(functions.process, priority=1 << 31)


@pytest.mark.parametrize(
    "make", [lambda i: np.full(20000, i), lambda i: np.full((2, 20000), i)[0], lambda i: np.full(20000, i).tobytes()]
)
def test_an_input_that_does_not_change_is_itself(session, make):  # noqa: F811
    """Another one at the same place, where the first one has gone, is another one."""
    for i in range(6):
        assert session.task(functions.first, inputs=[offpath.Unchanged(make(i * 0x0101010101010101))]).wait() == i


def test_numbers_of_versions():
    versions, array, text = Versions(), np.zeros((4, 100)), bytearray(100)
    number = [versions.number(Buffer(array[1]), 1) for _ in range(2)]
    assert number == [1, 1] and versions.number(Buffer(array[1]), 2) == 2 and versions.number(Buffer(array[2]), 2) == 3
    assert versions.number(Buffer(array), 0) == 0
    assert len({versions.number(Buffer(memoryview(text)), 7) for _ in range(3)}) == 1
    many = np.zeros(3000)
    assert len({versions.number(Buffer(many[i : i + 1]), 1) for i in range(3000)}) == 3000 > len(versions._known)


def test_crashes_limits_and_cancelling(session):  # noqa: F811
    with pytest.raises(offpath.TaskError, match="interpreter was ended by signal 11"):
        session.task(functions.crashes).wait()
    with pytest.raises(offpath.TaskError, match="longer than its limit of 100 ms"):
        session.task(functions.sleeps, limit=0.1).wait()
    running = session.task(functions.sleeps)
    waiting = session.task(functions.process, after=[running])
    with pytest.raises(offpath.StateError, match="under way"):
        waiting.outcome()
    waiting.cancel()
    with pytest.raises(offpath.CancelledError):
        waiting.wait()
    running.cancel()
    with pytest.raises(offpath.CancelledError):
        running.wait()
    assert session.task(functions.process).wait() > 0


def lives(process):
    try:
        with open(f"/proc/{process}/stat") as stat:
            return stat.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_an_interpreter_that_still_starts_ends_with_its_executor(session, tmp_path, monkeypatch):  # noqa: F811
    """Later it would run what it was asked for, with nobody there who could end it."""
    said = tmp_path / "said"
    slow = tmp_path / "slow_python"
    slow.write_text(
        f"#!/bin/sh\necho $$ $PPID >{said}.new; mv {said}.new {said}\n"
        f'while [ ! -e {tmp_path}/go ]; do sleep 0.02; done\nexec {sys.executable} "$@"\n'
    )
    slow.chmod(0o755)
    monkeypatch.setenv("OFFPATH_TASK_PYTHON", str(slow))
    own = offpath.attach(secrets.token_bytes(32), node_only=True)
    try:
        task = own.task(functions.sleeps)
        eventually(said.exists)
        interpreter, executor = map(int, said.read_text().split())
        os.kill(executor, signal.SIGKILL)
        with pytest.raises(offpath.TaskError, match="signal 9"):
            task.wait()
        eventually(lambda: not lives(interpreter))
    finally:
        own.close()


def test_an_interpreter_that_is_not_there_is_named(session, tmp_path, monkeypatch):  # noqa: F811
    monkeypatch.setenv("OFFPATH_TASK_PYTHON", str(tmp_path / "no_python"))
    own = offpath.attach(secrets.token_bytes(32), node_only=True)
    try:
        with pytest.raises(offpath.TaskError, match="cannot execute .*No such file"):
            own.task(functions.process).wait()
    finally:
        own.close()


def test_a_library_of_another_release_is_one_line(session, tmp_path, monkeypatch):  # noqa: F811
    library = tmp_path / "liboffpath_python.so"
    (tmp_path / "old.c").write_text(
        "#include <offpath/task.h>\n"
        "static int python(const offpath_task_t* task) { return task == 0; }\n"
        'OFFPATH_TASK_FUNCTION(python, "python 1");\n'
    )
    subprocess.run(["gcc", "-shared", "-fPIC", f"-I{ROOT}/include", tmp_path / "old.c", "-o", library], check=True)
    monkeypatch.setattr("offpath.api.task.native_file", lambda name: str(tmp_path / name))
    with pytest.raises(offpath.ArgumentError, match="is of another release than this package") as wrong:
        session.task(functions.process)
    assert str(library) in str(wrong.value) and "\n" not in str(wrong.value)


def test_wrong_tasks(session, native):  # noqa: F811
    x = np.zeros(10)
    for make, words in (
        (lambda: session.task(functions.axpy, 1, inputs=[x], inouts=[x]), "overlap"),
        (lambda: session.task(functions.axpy, 1, inputs=[x[::2]]), "input 0 is not C-contiguous"),
        (lambda: session.task(functions.axpy, 1, outputs=[b"x"]), "output 0 is read-only"),
        (lambda: session.task(functions.returns, bytes(1 << 17)), "65536 bytes"),
        (lambda: session.task(functions.returns, lambda: 1), "an argument cannot be pickled"),
        (lambda: session.task(native, 3), "takes bytes"),
        (lambda: session.task(3), "is int"),
    ):
        with pytest.raises(offpath.ArgumentError, match=words):
            make()


def test_functions_without_a_name(session):  # noqa: F811
    try:
        import cloudpickle  # noqa: F401
    except ImportError:
        with pytest.raises(offpath.ArgumentError, match="install cloudpickle"):
            calling.pickled(lambda: 1)
        return
    more = 5
    assert session.task(lambda x: x + more, 2).wait() == 7


def test_numba(session, tmp_path, monkeypatch):  # noqa: F811
    pytest.importorskip("numba", reason="there is no Numba")
    code = "import numba\n\n@numba.njit\ndef kernel(x, y):\n    for i in range(len(x)):\n        y[i] = 2 * x[i]\n"
    (tmp_path / "compiled_kernel.py").write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    import compiled_kernel

    x, y = session.empty(100), session.empty(100)
    x[:] = 3
    session.task(compiled_kernel.kernel, inputs=[x], outputs=[y]).wait()
    assert (y == 6).all()


def test_reports():
    assert letters.unpack(letters.pack(letters.Ending(value=[1]))[0]).value == [1]
    assert letters.unpack(bytes(letters.REPORT_BYTES)) is None
    assert letters.unpack(b"\xff" * letters.REPORT_BYTES) is None
    long = letters.unpack(letters.pack(letters.Ending(error=ValueError("x" * 100000), text="t"))[0])
    assert type(long.error) is RuntimeError and len(str(long.error)) <= 2000


NO_NUMPY = """
import array, sys, offpath
sys.path.append({folder!r})
import task_functions
with offpath.init() as team:
    x, y = array.array("i", [1, 2]), array.array("i", [0, 0])
    offpath.task(task_functions.plain, inputs=[x], outputs=[y]).wait()
    print(list(y))
"""


def test_without_numpy(environment, tmp_path):  # noqa: F811
    """Neither in the program nor in the interpreter."""
    bare = tmp_path / "bare"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", bare], check=True)
    command = [bare / "bin" / "python", "-c", NO_NUMPY.format(folder=str(PROGRAMS))]
    done = captured(command, env=environment, timeout=60)
    assert done.stdout == "[2, 3]\n", done.stderr


def test_a_task_that_is_dropped_under_way_keeps_what_it_writes(session):  # noqa: F811
    """The next one must not be told to say how it went in the same place."""
    for _ in range(3):
        session.task(functions.sleeps, 0.3)
        assert session.task(functions.returns, 2).wait() == b"xx"


def test_a_collective_comes_after_a_task_and_a_task_after_that(session):  # noqa: F811
    team = team_of(session)
    y = np.ones(10)
    first = session.task(functions.axpy, 2.0, inputs=[np.ones(10)], inouts=[y])
    team.after(first)
    summed = team.iallreduce(y, np.empty(10))
    last = session.task(functions.axpy, 1.0, inputs=[np.ones(10)], inouts=[y], after=[summed])
    assert last.wait() is not None
    assert (summed.wait() == 3).all() and (y == 4).all()
    fails = session.task(functions.leaves)
    team.after(fails)
    with pytest.raises(offpath.DependenceError):
        team.allreduce(y)
    assert (team.allreduce(y) == 4).all()


CONTAINED = """
import os, secrets, sys, offpath
sys.path.append(sys.argv[1])
import task_functions

def field(process, name):
    with open(f"/proc/{process}/status") as status:
        return next(line.split()[1] for line in status if line.startswith(name + ":"))

with offpath.attach(secrets.token_bytes(32), node_only=True) as session:
    executor = field(session.task(task_functions.process).wait(), "PPid")
    service = field(executor, "PPid")
    rights = [field(process, "NoNewPrivs") for process in (executor, service)]
    print(*rights, os.stat(f"/proc/{executor}").st_uid == os.getuid())
    try:
        open(f"/proc/{service}/environ").close()
        print("open to the user's other processes")
    except PermissionError:
        print("closed")
"""


def test_services_and_executors_are_contained(environment, tmp_path):  # noqa: F811
    """A service holds its job's token: no core file has it. Nobody gains rights by what an executor starts."""
    folder = Path(tempfile.mkdtemp(prefix="offpath-nobody-"))
    command = [sys.executable, "-c", CONTAINED, str(PROGRAMS)]
    own = {"OFFPATH_RUNTIME_DIR": str(folder), "OFFPATH_SERVICE_PATH": str(paths().service)}
    if os.getuid() == 0:  # root would see everything; this tree may lie in a folder that only root can enter
        os.chown(folder, 65534, -1)
        keep = [f"--{kind}-caps=-all,+dac_read_search" for kind in ("inh", "ambient")]
        command = ["setpriv", "--reuid=65534", "--clear-groups", *keep, *command]
    try:
        done = captured(command, env=environment | own, cwd=folder, timeout=60)
    finally:
        shutil.rmtree(folder)
    assert done.stdout == "1 1 True\nclosed\n", done.stdout + done.stderr


def parent_of(process):
    with open(f"/proc/{process}/stat") as stat:
        return int(stat.read().rpartition(")")[2].split()[1])


@pytest.mark.parametrize("which", [int, parent_of], ids=["interpreter", "executor"])
def test_one_that_is_stopped(session, which):  # noqa: F811
    """A task is begun again; one that has changed what it reads fails instead."""
    interpreter = session.task(functions.process).wait()
    os.kill(which(interpreter), signal.SIGSTOP)
    assert session.task(functions.process).wait() != interpreter
    interpreter = session.empty(1)
    running = session.task(functions.sleeps_as, inouts=[interpreter])
    eventually(lambda: interpreter[0] > 0)
    os.kill(which(int(interpreter[0])), signal.SIGSTOP)
    with pytest.raises(offpath.TaskError, match="was stopped by a signal"):
        running.wait()


def test_tasks_go_on_with_the_next_service(environment):  # noqa: F811
    session = offpath.attach(secrets.token_bytes(32), node_only=True)  # noqa: F811
    ones, sums = np.ones((40, 1000)), np.zeros((40, 1))
    tasks = [session.task(functions.sums, inputs=[x], outputs=[out]) for x, out in zip(ones, sums)]
    slow = [session.task(functions.sleeps, 0.02) for _ in range(10)]
    tasks[3].wait(60)
    os.kill(session.counters()["service_pid"], signal.SIGKILL)
    later = session.task(functions.process)
    for task in (*tasks, *slow):
        task.wait(60)
    assert (sums == 1000).all() and later.wait(60) > 0 and not session.alive
    session.close()
