# SPDX-License-Identifier: BSD-3-Clause
"""One of two ranks whose futures wait for each other. Arguments: what of it, else all.

Rank 1 takes part in what rank 0 has begun when rank 0 says so: until then it is under way, whatever else is fast."""

import faulthandler
import sys
import threading
import time
from datetime import timedelta
from unittest import mock

import offpath.torch
import torch
import torch.distributed as dist
from offpath.torch.groups import Channels
from offpath.torch.works import Work
from torch.nn.parallel import DistributedDataParallel

LONG = timedelta(seconds=240)


def say():
    dist.send(torch.zeros(1), 1, tag=1)


def hear():
    dist.recv(torch.zeros(1), 0, tag=1)


def begun(count=1):
    return [dist.all_reduce(torch.ones(3), async_op=True) for _ in range(count)]


def finish():
    hear()
    for work in begun(2):
        work.wait()


def late(rank, group):
    """A future that takes longer than its group's limit says so, and the operation goes on."""
    if rank == 1:
        return finish()
    group._team.timeout, before = 0.1, group._team.timeout
    work, other = begun(2)
    group._team.timeout = before
    try:
        work.get_future().wait()
    except offpath.WaitTimeout as error:
        assert "not done after 0.1 s" in str(error), error
    else:
        raise AssertionError("a sum of one")
    say()
    assert work.wait(LONG) and work.result()[0].tolist() == [2.0] * 3 and other.wait(LONG)


def gradients(rank, group):
    """What DistributedDataParallel waits for in C++."""
    model = DistributedDataParallel(torch.nn.Linear(10, 2))
    if rank == 1:
        hear()
        return model(torch.ones(1, 10)).sum().backward()
    group._team.timeout, before = 0.1, group._team.timeout
    try:
        model(torch.ones(1, 10)).sum().backward()
    except (RuntimeError, offpath.WaitTimeout) as error:  # torch may put its own around it
        assert "not done after 0.1 s" in str(error), error
        say()
    else:
        raise AssertionError("gradients of one")
    group._team.timeout = before


def nested(rank, group):
    """A callback waits for a future that was asked for before."""
    if rank == 1:
        return finish()
    first, second = (work.get_future() for work in begun(2))
    both = first.then(lambda done: (done.value()[0], second.wait()[0]))
    say()
    assert [one.tolist() for one in both.wait()] == [[2.0] * 3] * 2


def blocked(rank, group):
    """The first future of all can be told only when the program has gone on."""
    got = torch.zeros(1)
    if rank == 1:
        begun()[0].wait()
        hear()
        dist.send(torch.ones(1), 0, tag=2)
        return
    first = dist.irecv(got, 1, tag=2).get_future()
    assert begun()[0].get_future().wait()[0].tolist() == [2.0] * 3
    say()
    assert first.wait()[0].tolist() == [1.0] and got.tolist() == [1.0]


def refused(rank, group):
    """The system has no thread left when a future is asked for; later it has."""
    if rank == 1:
        return finish()
    for thread in threading.enumerate():
        if thread.name == "offpath-torch":  # of futures that were told before
            thread.join()
    work, other = begun(2)
    with mock.patch("threading.Thread.start", side_effect=RuntimeError("can't start new thread")):
        try:
            work.get_future()
        except RuntimeError:
            pass
        else:
            raise AssertionError("there was a thread")
    futures = [other.get_future(), work.get_future()]
    say()
    assert [future.wait()[0].tolist() for future in futures] == [[2.0] * 3] * 2


class Slow:
    """An operation that takes half a second of a clock."""

    timeout, done, _session = None, True, None

    def __init__(self, clock, waited):
        self.clock, self.waited = clock, waited

    def wait(self, seconds):
        self.waited.append(seconds)
        self.clock[0] += 0.5


def limits(rank, group):
    """A limit is one of all operations of a work together."""
    clock, waited = [time.monotonic()], []
    with mock.patch("time.monotonic", lambda: clock[0]):
        Work([Slow(clock, waited) for _ in range(4)], [], None).wait(timedelta(seconds=1))
    assert waited == [1.0, 0.5, 0.0, 0.0], waited
    assert group.allreduce_coalesced([]).get_future().wait() == [] and group.allreduce_coalesced([]).wait()


class Pairs:
    """Makes teams of two; while the first is made, another thread wants the same one."""

    rank = 0

    def __init__(self):
        self.made, self.second = [], threading.Event()

    def sub(self, ranks, label):
        self.made.append(label)
        if len(self.made) > 1:
            self.second.set()
        else:
            self.thread = threading.Thread(target=self.channels.send, args=(None, 1, 0))
            self.thread.start()
            self.second.wait(1)  # never, if it has to wait for this one
        return mock.Mock()


def threads(rank, group):
    """Two threads are the first ones to use a channel: they share it."""
    pairs = Pairs()
    pairs.channels = Channels(pairs)
    pairs.channels.send(None, 1, 0)
    pairs.thread.join()
    assert len(pairs.made) == 1, pairs.made


def main():
    faulthandler.dump_traceback_later(280, exit=True)
    dist.init_process_group("offpath", timeout=LONG)
    rank = dist.get_rank()
    whats = [late, gradients, nested, blocked, refused, limits, threads]
    for what in whats:
        if what.__name__ in (sys.argv[1:] or [each.__name__ for each in whats]):
            what(rank, dist.group.WORLD)
            dist.barrier()
    print(f"rank {rank}: told", flush=True)
    dist.destroy_process_group()


main()
