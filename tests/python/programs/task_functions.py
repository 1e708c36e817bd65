# SPDX-License-Identifier: BSD-3-Clause
"""Functions for the tests of tasks in Python; the executors' interpreter imports them by their names."""

import os
import sys
import time


def axpy(x, y, a):
    y += a * x
    return float(y.sum())


def doubled(x, y):
    y[:] = 2 * x
    return x.flags.writeable, y.flags.writeable, y.shape, str(y.dtype)


def copied(x, y):
    y[:] = x
    return str(x.dtype), y.shape


def interrupts():
    raise KeyboardInterrupt


def fails(x):
    raise KeyError(f"no atom in {x.shape}")


def odd():
    class Own(Exception):
        def __init__(self, one, two):
            super().__init__("cannot be pickled")

    raise Own(1, 2)


def returns(count):
    return b"x" * count


def crashes():
    os.kill(os.getpid(), 11)


def leaves():
    sys.exit(3)


def sleeps(seconds=1000):
    time.sleep(seconds)


def sleeps_as(process):
    process[0] = os.getpid()
    time.sleep(1000)


def process():
    return os.getpid()


def machine():
    """Processes of one machine have the same answer."""
    return os.readlink("/proc/self/ns/pid")


def sums(x, out):
    out[0] = x.sum()


def plain(x, y):
    """Also where there is no NumPy."""
    for i in range(len(y)):
        y[i] = x[i] + 1


def notes(x, y, file, count):
    """That it has run, and on what."""
    y[:] = 2 * x
    with open(file, "a") as into:
        into.write(f"{count} {float(x.sum())}\n")
    return b"x" * count


class Awkward:
    """Read by the process that is named it takes a while, or fails."""

    def __init__(self, process, fails):
        self.of = process, fails

    def __reduce__(self):
        return _read, self.of


class AwkwardError(Exception):
    def __reduce__(self):
        return _read, self.args


def _read(process, fails):
    if os.getpid() == process and fails:
        raise ImportError("it is not here")
    if os.getpid() == process:
        time.sleep(0.3)
    return Awkward(process, fails)


def awkward(process, fails):
    return Awkward(process, fails)


def raises_awkward(process):
    raise AwkwardError(process, True)


def says(text):
    raise ValueError(text)


class SilentError(Exception):
    def __str__(self):
        raise RuntimeError("nothing to say")


def silent():
    raise SilentError


def first(x):
    """Byte of it."""
    return memoryview(x).cast("B")[0]
