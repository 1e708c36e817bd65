# SPDX-License-Identifier: BSD-3-Clause
"""Everything that a team of offpath.init() can do, on all ranks: "N checks" from each, or what was wrong and status 1.
Arguments: how to begin (launcher, mpi4py, store FOLDER RANK SIZE)."""

import sys

import numpy as np
import offpath

wrong, checks = [], 0


def check(what, got, expected):
    global checks
    checks += 1
    if not np.array_equal(got, expected):
        wrong.append(f"{what}: {got} is not {expected}")


def refused(what, error, call, *words):
    global checks
    checks += 1
    try:
        call()
    except error as caught:
        wrong.extend(f"{what}: no {word!r} in {caught}" for word in words if word not in str(caught))
    else:
        wrong.append(f"{what}: went well")


def begin(how="launcher", *arguments):
    if how == "mpi4py":
        from mpi4py import MPI

        return offpath.init(MPI.COMM_WORLD)
    if how == "store":
        folder, rank, size = arguments
        return offpath.init(store=offpath.FolderStore(folder), rank=int(rank), size=int(size))
    return offpath.init()


def collectives(team):
    rank, size, every = team.rank, team.size, np.arange(team.size)
    long = np.arange(50000, dtype="f4") + rank
    for numbers in (np.arange(5) + rank, long, offpath.empty(70000, "i8") + rank):
        check("allreduce", team.allreduce(numbers), (numbers - rank) * size + every.sum())
        check("max", team.allreduce(numbers, op="max"), numbers - rank + size - 1)
        check("allgather", team.allgather(numbers)[:, 1], numbers[1] - rank + every)
        check("scan", team.scan(np.full(3, rank + 1)), np.full(3, (rank + 1) * (rank + 2) // 2))
        buffer = numbers.copy()
        check("bcast", team.bcast(buffer, root=size - 1), numbers - rank + size - 1)
    in_place = np.full((2, 2), rank, complex)
    check("in place", team.allreduce(in_place, in_place, algorithm="ring"), np.full((2, 2), every.sum()))
    check("of truth values", team.allreduce(np.array([rank == 0, True]), op="land"), [size == 1, True])
    table = np.arange(3 * size).reshape(size, 3) + 100 * rank
    check("alltoall", team.alltoall(table), 100 * every[:, None] + np.arange(3) + 3 * rank)
    check("reduce_scatter", team.reduce_scatter(table), (np.arange(3) + 3 * rank)[None] * size + 100 * every.sum())
    counts = list(every + 1)
    all_of_them = np.repeat(every, counts)
    check("allgatherv", team.allgatherv(np.full(rank + 1, rank), counts), all_of_them)
    check("counts", team.reduce_scatter(all_of_them, counts=counts), np.full(rank + 1, rank * size))
    got = np.full(size * size, -1)
    team.alltoallv(np.full((rank + 1) * size, rank), [rank + 1] * size, got, counts, recv_displs=list(every * size))
    check("alltoallv", got.reshape(size, size)[:, 0], every)
    check("gather", team.gather(np.array([rank]), root=0) if rank == 0 else team.gather(np.array([rank])) is None,
          every[:, None] if rank == 0 else True)  # fmt: skip
    check("scatter", team.scatter(np.arange(size) if rank == 0 else None, np.zeros(1, int)), [rank])
    odd, mine = np.arange(3 * size, dtype="f4"), np.zeros(3, "f4")
    one = odd.view(f"V{odd.nbytes}")  # one element, which goes over the parts' edges
    team.scatter(one if rank == 0 else None, mine)
    check("scatter of others", mine, odd.reshape(size, 3)[rank])
    odd[:] = 0
    team.gather(mine, one if rank == 0 else None)
    check("gather of others", odd if rank == 0 else 0, np.arange(3 * size) if rank == 0 else 0)
    check("reduce", team.reduce(np.array([rank]), root=size - 1) if rank == size - 1 else team.reduce(
        np.array([rank]), root=size - 1) is None, [every.sum()] if rank == size - 1 else True)  # fmt: skip
    right, left, halo = (rank + 1) % size, (rank - 1) % size, bytearray(4)
    team.exchange({right: b"%04d" % rank}, {left: halo})
    check("exchange", halo == b"%04d" % left, True)


def operations(team):
    numbers = np.full(100000, 1.0)
    with team.iallreduce(numbers) as op:
        pass
    check("with", op.result[:1], [team.size])
    many = [team.iallreduce(np.full(100 * i, i)) for i in range(20)]
    check("many", [op.wait(timeout=60).sum() for op in many], [100 * i * i * team.size for i in range(20)])
    for _ in range(5):  # nobody holds operation or buffers
        team.iallreduce(np.ones(200000))
        team.ialltoall(np.ones(team.size * 50000))
    team.barrier()
    later = team.sub(range(team.size))
    if team.rank == 0:
        op = later.ibarrier()
    if team.rank == 0 and team.size > 1:
        refused("timeout", TimeoutError, lambda: op.wait(0.01), "barrier", "waits for")
        check("not done", op.done, False)
    team.barrier()
    if team.rank != 0:
        op = later.ibarrier()
    op.wait()


def windows(team):
    memory = np.zeros(team.size + 1)
    with team.window(memory) as window:
        for target in range(team.size):
            window.put(np.array([team.rank + 1.0]), target, 8 * team.rank)
            window.accumulate(np.ones(1), target, 8 * team.size)
        window.flush()
        team.barrier()
        check("put", memory, [*range(1, team.size + 1), team.size])
        got = np.zeros(2)
        window.get(got, (team.rank + 1) % team.size).wait()
        check("get", got, [1, 2] if team.size > 1 else [1, 1])
        team.barrier()
        before = np.zeros(1)
        window.fetch(np.ones(1), before, 0, 8 * team.size).wait()
        check("fetch", team.size <= before[0] < 2 * team.size, True)
        window.lock(0)
        window.unlock(0)
        refused("range", IndexError, window.put(np.ones(3), 0, 8 * team.size).wait)
        refused("flush", offpath.WindowRangeError, window.flush, "outside")
        refused("offset", offpath.ArgumentError, lambda: window.put(np.ones(1), 0, -8), "before")


def wrong_use(team):
    if team.size == 1:
        return
    other = team.sub(range(team.size))
    lengths = np.zeros(8 if team.rank else 1000)
    refused("other lengths", offpath.OffpathError, lambda: other.bcast(lengths, 0)) if team.rank == 1 else None
    if team.rank != 1:
        try:
            other.bcast(lengths, 0)
        except offpath.OffpathError:
            pass
    refused("root", offpath.ArgumentError, lambda: team.bcast(lengths, team.size), "no member")
    refused("size", offpath.ArgumentError, lambda: team.allreduce(np.zeros(3), np.zeros(4)), "32 bytes", "24")
    refused("overlap", offpath.ArgumentError, lambda: team.allreduce(lengths[:4], lengths[1:5]), "overlap")
    refused("read-only", offpath.ArgumentError, lambda: team.allreduce(np.zeros(1), b"12345678"), "read-only")


team = begin(*sys.argv[1:])
with team:
    collectives(team)
    operations(team)
    windows(team)
    wrong_use(team)
    halves = team.split(team.rank % 2, key=-team.rank)
    mine = [rank for rank in range(team.size) if rank % 2 == team.rank % 2][::-1]
    check("split", halves.allgather(np.array([team.rank])).ravel(), mine)
    check("nobody's", team.split(-1) is None, True)
for line in wrong:
    print(f"rank {team.rank}: {line}", file=sys.stderr)
print(f"rank {team.rank} of {team.size}: {checks} checks")
sys.exit(1 if wrong else 0)
