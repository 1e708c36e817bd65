# SPDX-License-Identifier: BSD-3-Clause
"""Sessions, operations and mapped memory of one process: what they hold, what ends them, and who may use them."""

import gc
import inspect
import os
import secrets
import signal
import sys
import threading
import weakref

import numpy as np
import offpath
import pytest
from api_support import environment, finish, start  # noqa: F401
from conftest import together
from offpath.api.posting import Posting


@pytest.fixture(scope="module")
def session(environment):  # noqa: F811
    old = {name: os.environ.get(name) for name in ("OFFPATH_SERVICE_SHARE", "OFFPATH_RUNTIME_DIR")}
    os.environ.update({name: environment[name] for name in old})
    session = offpath.attach(secrets.token_bytes(32), node_only=True)
    yield session
    session.close()
    for name, value in old.items():
        os.environ.pop(name) if value is None else os.environ.update({name: value})


def team_of(session, size=1):
    """Of which nobody but member 0 exists: an operation of two members stays under way."""
    return offpath.Team(session, secrets.token_bytes(16), 0, [session.address] * size)


def test_a_session_tells_of_itself(session):
    assert session.alive and not session.closed and session.shares_memory and "attached" in repr(session)
    team = team_of(session)
    before = session.counters()
    team.allreduce(np.ones(3))
    after = session.counters()
    assert after["completed_count"] == before["completed_count"] + 1 and after["service_pid"] > 0
    assert team.nodes == 1 and not team.broken and team.lost() == {} and repr(team) == "<offpath.Team member 0 of 1>"


def test_operations_tell_of_themselves(session):
    team, stuck = team_of(session), team_of(session, 2)
    session.time_operations()
    op = team.iallreduce(np.ones(100))
    assert op.wait() is op.result
    times = op.times()
    assert 0 < times.posted_ns <= times.started_ns <= times.done_ns
    session.time_operations(False)
    with pytest.raises(offpath.StateError, match="no times"):
        team.ibarrier().times()
    waiting = stuck.iallreduce(np.ones(10))
    assert not waiting.test() and not waiting.done and "allreduce" in repr(waiting)
    with pytest.raises(offpath.StateError, match="no result yet"):
        waiting.result  # noqa: B018
    with pytest.raises(offpath.WaitTimeout, match="not done after 0.05 s: allreduce"):
        waiting.wait(0.05)
    stuck.timeout = 0.05
    with pytest.raises(TimeoutError):
        stuck.barrier()


def test_each_collective_has_a_form_that_waits():
    posting = [name for name in vars(Posting) if name.startswith("i")]
    for name in posting:
        posts, waits = (inspect.signature(getattr(offpath.Team, one)) for one in (name, name[1:]))
        assert waits.parameters == posts.parameters
        assert posts.return_annotation == f"Operation[{waits.return_annotation}]"
    assert len(posting) == 14


def test_an_operation_holds_its_buffers(session):
    stuck = team_of(session, 2)
    numbers = np.ones(5000)
    gone, op = weakref.ref(numbers), stuck.iallreduce(numbers)
    del numbers
    gc.collect()
    assert gone() is not None
    del op  # nobody wants it any more, but the service may still write there
    gc.collect()
    stuck.ibarrier()
    assert gone() is not None


def test_a_finished_operation_lets_go(session):
    team = team_of(session)
    numbers = np.ones(5000)
    gone, op = weakref.ref(numbers), team.iallreduce(numbers)
    del numbers
    op.wait()
    assert gone() is None and op.test() and op.wait() is op.result
    dropped = np.ones(5000)
    gone, _ = weakref.ref(dropped), team.iallreduce(dropped)
    del dropped, _
    team.barrier()
    while gone() is not None:  # its turn comes with one of the next
        team.barrier()


def test_mapped_arrays(session):
    numbers = session.empty((100, 1000), "f4")
    assert numbers.shape == (100, 1000) and numbers.dtype == np.float32 and not numbers.any()
    before = session.counters()["in_place_bytes"]
    numbers[:] = 3
    assert team_of(session).allreduce(numbers).sum() == 300000
    assert session.counters()["in_place_bytes"] >= before + numbers.nbytes
    part = numbers[10:20]
    del numbers
    gc.collect()
    assert part.sum() == 30000
    assert offpath.empty(0).size == 0 and offpath.empty(3, "c16").dtype == complex
    pair = offpath.empty(2, [("x", "f8"), ("n", "i4")])
    pair["n"] = 7
    assert pair[1]["n"] == 7
    for shape, dtype, words in ((3, object, "Python objects"), (-1, "f8", "negative"), (1 << 45, "f8", "no .* bytes")):
        with pytest.raises((offpath.ArgumentError, offpath.NoMemoryError), match=words):
            session.empty(shape, dtype)


def test_the_interpreter_is_free_while_one_waits(session):
    stuck = team_of(session, 2)
    op, ends = stuck.ibarrier(), threading.Event()

    def wait():
        try:
            op.wait(20)
        except offpath.OffpathError:
            pass
        ends.set()

    thread = threading.Thread(target=wait, daemon=True)
    thread.start()
    calls = [0]
    sys.setswitchinterval(10)  # nobody gives the lock away by himself
    try:
        while thread.is_alive() and calls[0] < 1000:
            calls[0] += 1
    finally:
        sys.setswitchinterval(0.005)
    assert calls[0] == 1000 and not ends.is_set()


def test_ctrl_c_ends_a_wait_and_not_the_operation(session):
    op = team_of(session, 2).ibarrier()
    # It is ignored where a shell has started us in the background.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    with pytest.raises(KeyboardInterrupt):  # whenever it comes
        threading.Timer(0.2, signal.raise_signal, [signal.SIGINT]).start()
        op.wait(60)
    signal.signal(signal.SIGINT, before)
    assert not op.test()


def test_an_exception_of_a_signal_leaves_no_call_behind(session):
    """Wherever in a call it comes: the session can be closed."""
    with offpath.attach(secrets.token_bytes(32), node_only=True) as another:
        op, caught = team_of(another, 2).ibarrier(), 0
        before = signal.signal(signal.SIGALRM, signal.default_int_handler)
        for again in range(300):
            try:
                signal.setitimer(signal.ITIMER_REAL, 0.001 + again * 1e-6)
                while not op.test() and not op.done:
                    pass
            except KeyboardInterrupt:
                caught += 1
        signal.signal(signal.SIGALRM, before)
        assert caught == 300


def test_a_wait_may_be_endless(session):
    team, two = team_of(session), team_of(session, 2)
    op = two.ibarrier()
    assert team.ibarrier().wait(float("inf")) is None
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    with pytest.raises(KeyboardInterrupt):
        threading.Timer(0.2, signal.raise_signal, [signal.SIGINT]).start()
        op.wait(float("inf"))
    signal.signal(signal.SIGINT, before)


def test_a_label_is_no_number_of_a_team(session):
    team = team_of(session)
    made = [team.sub([0]), team.sub([0], label="1"), team.sub([0], label=""), team.sub([0])]
    assert len({one._id for one in made}) == 4


def test_a_closed_session(environment):  # noqa: F811
    session = offpath.attach(secrets.token_bytes(32), node_only=True)
    team, stuck = team_of(session), team_of(session, 2)
    numbers, done, waiting = session.empty(1000), team.iallreduce(np.ones(10)), stuck.iallreduce(np.ones(1000))
    window = team.window(np.zeros(3))
    done.wait()
    said = []

    def wait():
        try:
            waiting.wait()
        except offpath.StateError as error:
            said.append(str(error))

    thread = threading.Thread(target=wait)
    thread.start()
    session.close()
    thread.join()
    assert said and "the session is closed" in said[0]
    numbers[:] = 5  # it is still memory
    assert numbers.sum() == 5000 and done.wait().sum() == 10 and session.closed and not session.alive
    for call in (
        team.barrier, lambda: waiting.test(), lambda: session.address, lambda: session.counters(), lambda: team.nodes,
        lambda: session.empty(3), lambda: window.put(np.ones(1), 0), lambda: offpath.empty(3),
    ):  # fmt: skip
        with pytest.raises(offpath.StateError):
            call()
    assert "closed" in repr(session) and "closed" in repr(waiting)
    window.close()
    team.close()
    session.close()


def test_a_closed_team_and_window(session):
    team = team_of(session)
    window = team.window(np.zeros(3))
    team.close()  # goes with the window
    window.put(np.ones(1), 0).wait()
    window.close()
    for call in (team.barrier, lambda: window.put(np.ones(1), 0), lambda: team.nodes):
        with pytest.raises(offpath.StateError, match="closed"):
            call()


@pytest.mark.parametrize(
    "make, words",
    [
        (lambda session: offpath.attach(b"short"), "32 bytes, not 5"),
        (lambda session: offpath.Team(session, b"short", 0, [session.address]), "16 bytes, not 5"),
        (lambda session: offpath.Team(session, bytes(16), 1, [session.address]), "team: "),
        (lambda session: offpath.Team(session, bytes(16), 0, [b"nowhere"]), "team: "),
        (lambda session: offpath.Team(session, bytes(16), 0, []), "team: "),
        (lambda session: team_of(session).allreduce(np.ones(3), algorithm="fast"), "no algorithm 'fast'"),
        (lambda session: team_of(session, 2).alltoall(np.ones(3, "i1")), "no 2 equal parts"),
        (lambda session: team_of(session, 2).allgather(np.ones(3), np.ones(3)), "2 times the send buffer's 24"),
        (lambda session: team_of(session, 2).reduce_scatter(np.ones(3), np.ones(1), [1, 1]), "counts"),
        (lambda session: team_of(session, 2).allgatherv(np.ones(3), [2, 2]), "own part"),
        (lambda session: team_of(session).reduce_scatter(np.ones(3), np.ones(3, "i8")), "elements"),
        (lambda session: team_of(session, 2).reduce_scatter(np.ones(3), counts=[4, -1]), "counts"),
        (lambda session: team_of(session, 2).alltoall(np.ones(3, "f4")), "no 2 equal parts"),
        (lambda session: team_of(session, 2).exchange({2: b""}, {}), "no member 2"),
        (lambda session: team_of(session, 2).sub([0, 0]), "different members"),
        (lambda session: team_of(session).scatter(None, np.ones(1)), "sends nothing"),
        (lambda session: team_of(session).allreduce(np.ones(3), np.ones(3, "i8")), "elements"),
    ],
)
def test_wrong_arguments(make, words, session):
    with pytest.raises(offpath.ArgumentError, match=words):
        make(session)


@pytest.mark.parametrize(
    "post, words",
    [
        (lambda window: window.fetch(np.ones(1), np.ones(1, "i8"), 0), "elements"),
        (lambda window: window.compare_and_swap(np.ones(1), np.ones(1, "i8"), np.ones(1), 0), "elements"),
        (lambda window: window.compare_and_swap(np.ones(1), np.ones(1), np.ones(1, "i8"), 0), "elements"),
        (lambda window: window.accumulate(np.ones(1, "?"), 0), "truth values"),
        (lambda window: window.accumulate(np.ones(1), 0, op="band"), "floating-point"),
        (lambda window: window.put(np.ones(1), 0, 1 << 64), "behind any"),
    ],
)
def test_wrong_arguments_of_windows(post, words, session):
    memory = np.zeros(3)
    with team_of(session).window(memory) as window, pytest.raises(offpath.ArgumentError, match=words):
        post(window)
    assert (memory == 0).all()


def test_shapes_and_counts_may_be_numpys(session):
    assert session.empty(np.int64(4)).shape == (4,) and session.empty((np.int8(100), 2)).shape == (100, 2)
    assert team_of(session).reduce_scatter(np.ones(200), counts=np.array([200], "u1")).shape == (200,)


def test_a_forked_child_cannot_use_it(session):
    team = team_of(session)
    op, numbers = team_of(session, 2).ibarrier(), session.empty(10)
    numbers[:] = 1
    child = os.fork()
    if child == 0:
        refused = 0
        for call in (team.barrier, op.test, lambda: session.address, lambda: session.empty(3)):
            try:
                call()
            except offpath.StateError as error:
                refused += "parent" in str(error)
        numbers += 1  # a copy
        session.close()
        del team, op
        gc.collect()
        os._exit(0 if refused == 4 and numbers.sum() == 20 else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert numbers.sum() == 10 and session.alive
    team.barrier()


def test_a_service_that_dies(environment):  # noqa: F811
    session = offpath.attach(secrets.token_bytes(32), node_only=True)
    team, waiting = team_of(session), team_of(session, 2).ibarrier()
    os.kill(session.counters()["service_pid"], signal.SIGKILL)
    with pytest.raises((offpath.ServiceLostError, offpath.NotStartedError)):
        waiting.wait(60)
    assert waiting.done and not session.alive and "lost" in repr(session)
    with pytest.raises(offpath.NotStartedError):
        team.barrier()
    with pytest.raises(offpath.StateError, match="living service"):
        session.empty(3)
    session.close()


def test_no_service(environment, tmp_path):  # noqa: F811
    code = "import offpath; offpath.init()"
    _, error = finish(start(environment | {"OFFPATH_SERVICE_PATH": "/nowhere"}, "-c", code))
    assert "NoServiceError: attach: cannot execute '/nowhere'" in error
    _, error = finish(start(environment | {"OFFPATH_PREFIX": str(tmp_path)}, "-c", code))
    assert "NoServiceError" in error and "liboffpath.so.0 does not exist" in error


def test_many_threads_use_one_session(session):
    def work(team):
        for count in range(1, 60):
            assert team.allreduce(np.full(count, 2.0)).sum() == 2 * count

    together(work, [(team_of(session),) for _ in range(4)])
