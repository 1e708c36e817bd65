# SPDX-License-Identifier: BSD-3-Clause
"""Tasks whose service is on another machine. Arguments: a native function LIBRARY:scale; lost: it loses that one."""

import os
import secrets
import sys
import time
from pathlib import Path

import numpy as np
import offpath

sys.path.insert(0, os.path.dirname(__file__))
import task_functions as functions


def check_functions(session, native):
    machine = session.task(functions.machine).wait()
    assert machine != functions.machine(), "it ran here"
    for make in (session.empty, np.zeros):  # both are copied
        x, y, z = make((300, 500)), make((300, 500)), make((300, 500))
        x[:], y[:] = np.arange(x.size).reshape(x.shape), 1
        first = session.task(functions.axpy, 2.0, inputs=[x], inouts=[y])
        then = session.task(native, argument=np.float64(3).tobytes(), inputs=[y], outputs=[z], after=[first])
        assert then.wait() is None and (z == 3 * (2 * x + 1)).all() and first.wait() == y.sum()
        assert session.task(functions.axpy, 1, inputs=[make(0)], inouts=[make(0)]).wait() == 0
    try:
        session.task(functions.fails, inputs=[np.zeros((2, 3))]).wait()
    except KeyError as error:
        assert "no atom in (2, 3)" in str(error) and "task_functions.py" in str(error.__cause__), error.__cause__
    else:
        raise AssertionError("it has not failed")


def check_inputs_that_stay(session):
    """One copy serves many tasks; another version is another copy; the first is not read again."""
    x, out = session.empty(200000), session.empty(1)
    for version in range(1, 4):
        x[:] = version
        for _ in range(20):
            session.task(functions.sums, inputs=[offpath.Unchanged(x, version)], outputs=[out]).wait()
            assert out[0] == version * x.size
    x[:] = 99
    session.task(functions.sums, inputs=[offpath.Unchanged(x, 3)], outputs=[out]).wait()
    assert out[0] == 3 * x.size, "it was copied again"
    session.task(functions.sums, inputs=[x], outputs=[out]).wait()
    assert out[0] == 99 * x.size


def check_last_words(session, native):
    for function, words in ((functions.crashes, "interpreter was ended by signal 11"), (native, "a factor of 0")):
        argument = bytes(8) if function is native else b""
        arrays = {"inputs": [np.zeros(3)], "outputs": [np.zeros(3)]} if function is native else {}
        task = session.task(function, argument=argument, **arrays)
        try:
            task.wait()
        except offpath.TaskError as error:
            assert words in str(error), error
            assert task.outcome()["executor"] > 0
        else:
            raise AssertionError(f"{words}: it has not failed")
    crash = session.task(native, argument=np.float64(-11).tobytes(), inputs=[np.zeros(3)], outputs=[np.zeros(3)])
    try:
        crash.wait()
    except offpath.TaskError as error:
        assert "crashed with signal 11" in str(error) and "libscale.so" in str(error), error
        assert crash.outcome()["signal"] == 11
    assert session.task(functions.process).wait() > 0, "another executor was started"


def check_mistakes(session, native):
    library = native.rpartition(":")[0]
    for name, signature, words in (
        (f"{library}.not:scale", None, "it is not on the executor's machine"),
        (f"{library}:other", None, "exports no function"),
        (f"{library}:scale", "scale 2", "has the signature"),
    ):
        try:
            session.task(name, signature=signature)
        except offpath.ArgumentError as error:
            assert words in str(error), error
        else:
            raise AssertionError(f"{words}: it was registered")


def lose(session):
    """Tasks under way when the DPU is lost: they end with that, those that wait for them, too."""
    session.task(functions.process).wait()
    running = session.task(functions.sleeps)
    waiting = session.task(functions.process, after=[running])
    Path(os.environ["LOST_READY"]).touch()
    while not Path(os.environ["LOST_GO"]).exists():
        time.sleep(0.01)
    for task in (running, waiting):
        try:
            task.wait()
        except (offpath.ServiceLostError, offpath.NotStartedError) as error:
            print(f"lost: {type(error).__name__}", flush=True)


def main():
    native, *what = sys.argv[1:]
    with offpath.attach(secrets.token_bytes(32), node_only=True) as session:
        assert not session.shares_memory, "the service is on this machine"
        if what == ["lost"]:
            return lose(session)
        check_functions(session, native)
        check_inputs_that_stay(session)
        check_last_words(session, native)
        check_mistakes(session, native)
    print("all is well", flush=True)


if __name__ == "__main__":
    main()
