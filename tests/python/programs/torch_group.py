# SPDX-License-Identifier: BSD-3-Clause
"""A rank of a PyTorch program: every collective of the backend offpath, and a training that gloo repeats.

RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT as torchrun sets them; the argument seeds what is drawn."""

import functools
import gc
import os
import random
import sys
import weakref
from datetime import timedelta

import offpath.torch
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

SEED = int(sys.argv[1])
FLOATS = [torch.float32, torch.float64, torch.float16, torch.bfloat16]
INTEGERS = [torch.int32, torch.int64, torch.uint8, torch.int16]


def drawn(dtype, count, seed):
    """Small numbers, so that sums are exact in every type and in every order."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(1, 4, (count,), generator=generator).to(dtype)


def same(found, wanted, what):
    assert len(found) == len(wanted), what
    for one, other in zip(found, wanted):
        assert torch.equal(one, other), f"{what}: {one} and not {other}"


def check_reductions(group, rank, size, draw):
    operators = {dist.ReduceOp.SUM: torch.add, dist.ReduceOp.PRODUCT: torch.mul, dist.ReduceOp.MIN: torch.minimum,
                 dist.ReduceOp.MAX: torch.maximum}  # fmt: skip
    for dtype in FLOATS + INTEGERS:
        count, operator, seed = draw.choice([1, 7, 5000]), draw.choice(list(operators)), draw.randrange(1 << 30)
        root = draw.randrange(size)
        wanted = functools.reduce(operators[operator], [drawn(dtype, count, seed + member) for member in range(size)])
        mine = drawn(dtype, count, seed + rank)
        dist.all_reduce(mine, operator, group=group)
        same([mine], [wanted], f"all_reduce {dtype}")
        mine = drawn(dtype, count, seed + rank)
        dist.reduce(mine, root, operator, group=group)
        same([mine], [wanted if rank == root else drawn(dtype, count, seed + rank)], f"reduce {dtype}")
    truth = torch.tensor([rank == 0, True, False])
    dist.all_reduce(truth, dist.ReduceOp.MAX, group=group)
    assert truth.tolist() == [True, True, False]
    mean = torch.full((3,), float(rank))
    dist.all_reduce(mean, dist.ReduceOp.AVG, group=group)
    assert mean.tolist() == [(size - 1) / 2] * 3
    mean = torch.tensor([(1 << 40) + 3, (1 << 60) + 1, -rank])
    dist.all_reduce(mean, dist.ReduceOp.AVG, group=group)
    assert mean.tolist() == [(1 << 40) + 3, (1 << 60) + 1, -((size - 1) // 2)]
    for dtype in (torch.uint8, getattr(torch, "uint16", torch.int16), getattr(torch, "uint64", torch.int8)):
        mean = torch.tensor([7, 0], dtype=dtype)
        dist.all_reduce(mean, dist.ReduceOp.AVG, group=group)
        assert mean.tolist() == [7, 0]
    truth = torch.tensor([rank == 0, False])
    dist.all_reduce(truth, dist.ReduceOp.AVG, group=group)
    assert truth.tolist() == [True, False]
    parts = [torch.full((2 + part,), float(rank + part)) for part in range(size)]
    out = torch.empty(2 + rank)
    dist.reduce_scatter(out, parts, group=group)
    assert out.tolist() == [sum(other + rank for other in range(size))] * (2 + rank)


def check_moves(group, rank, size, draw):
    for dtype in FLOATS + INTEGERS + [torch.bool]:
        count, root, seed = draw.choice([1, 7, 5000]), draw.randrange(size), draw.randrange(1 << 30)

        everyone = [drawn(dtype, count, seed + member) for member in range(size)]

        mine = everyone[rank].clone()
        dist.broadcast(mine, root, group=group)
        same([mine], [everyone[root]], f"broadcast {dtype}")
        out = [torch.empty(count, dtype=dtype) for _ in range(size)]
        dist.all_gather(out, everyone[rank], group=group)
        same(out, everyone, f"all_gather {dtype}")
        out = [torch.empty(count, dtype=dtype) for _ in range(size)] if rank == root else None
        dist.gather(everyone[rank], out, root, group=group)
        same(out or [], everyone if rank == root else [], f"gather {dtype}")
        mine = torch.empty(count, dtype=dtype)
        dist.scatter(mine, everyone if rank == root else None, root, group=group)
        same([mine], [everyone[rank]], f"scatter {dtype}")
    send = torch.arange(size * 3) + 100 * rank
    recv = torch.empty_like(send)
    dist.all_to_all_single(recv, send, group=group)
    same([recv], [torch.cat([torch.arange(rank * 3, rank * 3 + 3) + 100 * peer for peer in range(size)])], "all_to_all")


def check_messages(group, rank, size):
    """Both ways at a time, two tags, and the later one received first."""
    after, before = (rank + 1) % size, (rank - 1) % size
    works = [dist.isend(torch.tensor([rank, tag]), after, tag=tag, group=group) for tag in (1, 2)]
    for tag in (2, 1):
        got = torch.empty(2, dtype=torch.int64)
        dist.recv(got, before, tag=tag, group=group)
        assert got.tolist() == [before, tag]
    for work in works:
        work.wait()


def check_tags(group, rank, size):
    """A tag for each message, and one for several that are under way: no team is left of most of them."""
    after, before = (rank + 1) % size, (rank - 1) % size
    tags = [*range(-5, 295), 1000, 1000, 1000, -1]
    works = [dist.isend(torch.tensor([rank, at]), after, tag=tag, group=group) for at, tag in enumerate(tags)]
    for tag in sorted(set(tags), reverse=True):
        for at in [at for at, each in enumerate(tags) if each == tag]:
            got = torch.empty(2, dtype=torch.int64)
            dist.recv(got, before, tag=tag, group=group)
            assert got.tolist() == [before, at], tag
    for work in works:
        work.wait()
    assert sum(isinstance(each, offpath.Team) for each in gc.get_objects()) < 200


def check_forgotten(group, rank, size):
    """Works that nobody waits for give back what they keep, though an older one is under way."""
    after, before = (rank + 1) % size, (rank - 1) % size
    oldest, kept = dist.irecv(torch.empty(1), before, tag=3, group=group), []
    for number in range(20):
        given = torch.full((1000,), float(number))
        kept.append(weakref.ref(given))
        dist.isend(given, after, group=group)
    for number in range(20):
        dist.recv(got := torch.empty(1000), before, group=group)
        assert got.tolist() == [float(number)] * 1000
    dist.barrier(group=group)
    dist.all_reduce(given := torch.ones(3), group=group)
    gc.collect()
    assert not any(each() is not None for each in kept[:-1])
    dist.isend(torch.empty(1), after, tag=3, group=group)
    oldest.wait()


def check_sub_groups(rank, size):
    ranks = list(range(0, size, 2))
    group = dist.new_group(ranks, backend="offpath", timeout=timedelta(seconds=60))
    if rank in ranks:
        mine = torch.tensor([rank])
        dist.all_reduce(mine, group=group)
        assert mine.item() == sum(ranks)


def check_futures(group, size):
    """Told in order and with the result, also from inside of a callback."""
    works = [dist.all_reduce(torch.full((100,), float(i)), async_op=True, group=group) for i in range(5)]
    seen = [work.get_future().then(lambda done: done.value()[0][0].item()) for work in works]
    assert [future.wait() for future in seen] == [float(i * size) for i in range(5)]
    assert all(work.is_completed() and work.is_success() for work in works)
    outer = dist.all_reduce(torch.ones(3), async_op=True, group=group).get_future()
    inner = outer.then(lambda _: dist.all_reduce(torch.ones(4), async_op=True, group=group).get_future().wait()[0])
    assert inner.wait().tolist() == [size] * 4


def check_shards(group, rank, size):
    """What FSDP calls, whatever torch's version calls it; and memory that it gives back when a tensor was moved."""
    shards = [torch.full((3,), float(rank + 10 * each)) for each in range(2)]
    wholes = [torch.empty(3 * size) for _ in shards]
    group.allgather_into_tensor_coalesced(wholes, shards).wait()
    for each, whole in enumerate(wholes):
        assert whole.tolist() == [other + 10.0 * each for other in range(size) for _ in range(3)]
    group.reduce_scatter_tensor_coalesced(shards, wholes).wait()
    assert [shard.tolist() for shard in shards] == [[size * (rank + 10.0 * each)] * 3 for each in range(2)]
    own = wholes[0][3 * rank : 3 * rank + 3].fill_(rank)  # gathered in place
    for gather, whole in ((group._allgather_base, wholes[0]), (group.all_gather_single, wholes[0])):
        gather(whole, own).wait()
        assert whole.tolist() == [float(other) for other in range(size) for _ in range(3)]
    group._reduce_scatter_base(shards[0], wholes[0]).wait()
    group.reduce_scatter_single(shards[1], wholes[0]).wait()
    assert shards[0].tolist() == shards[1].tolist() == [float(size * rank)] * 3
    wholes[1].storage().resize_(0)


def check_time_limits(group, rank, size):
    """The others come only when rank 0 has given up once."""
    if rank == 0:
        work = dist.barrier(async_op=True, group=group)
        try:
            work.wait(timedelta(milliseconds=50))
        except offpath.WaitTimeout:
            pass
        else:
            raise AssertionError("a barrier of one")
        for peer in range(1, size):
            dist.send(torch.zeros(1), peer, group=group)
        work.wait()
    else:
        dist.recv(torch.zeros(1), 0, group=group)
        dist.barrier(group=group)


def trained(group, rank):
    torch.manual_seed(SEED)
    model = torch.nn.Sequential(torch.nn.Linear(20, 50), torch.nn.ReLU(), torch.nn.Linear(50, 3))
    parallel = DistributedDataParallel(model, process_group=group, bucket_cap_mb=0.001)
    optimizer = torch.optim.SGD(parallel.parameters(), lr=0.1)
    losses = []
    for step in range(5):
        generator = torch.Generator().manual_seed(1000 * step + rank)
        batch, labels = torch.randn(8, 20, generator=generator), torch.randint(0, 3, (8,), generator=generator)
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(parallel(batch), labels)
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    return torch.stack(losses)


def check_errors(group):
    band, size = dist.ReduceOp.BAND, dist.get_world_size(group)
    ones = [1] * size
    others = [torch.empty(3, dtype=torch.float64) for _ in range(size)]
    for call, words in (
        (lambda: dist.all_reduce(torch.empty(4, 4).t(), group=group), "contiguous"),
        (lambda: dist.all_reduce(torch.empty(3), band, group=group), "integers"),
        (lambda: dist.all_gather(others, torch.empty(3), group=group), "type"),
        (lambda: dist.scatter(torch.empty(3), others, src=dist.get_rank(), group=group), "type"),
        (lambda: dist.all_to_all_single(torch.empty(size), torch.empty(size + 1), ones, ones, group), "rows"),
    ):  # fmt: skip
        try:
            call()
        except (RuntimeError, ValueError) as error:
            assert words in str(error), error
        else:
            raise AssertionError(f"no word of {words}")


def check_death(rank):
    """A rank that dies is an error of the others, in a wait, in a future, and where works are looked at alone."""
    waits = dist.all_reduce(torch.ones(3), async_op=True)
    waits.wait()
    if rank == 1:
        os._exit(0)
    work, polled = (dist.all_reduce(torch.ones(1 << 20), async_op=True) for _ in range(2))
    for wait in (work.get_future().wait, work.wait):
        try:
            wait()
        except offpath.OffpathError as error:
            said = str(error)
        else:
            raise AssertionError("all is well")
    while not polled.is_completed():
        pass
    assert not polled.is_success() and isinstance(polled.exception(), offpath.OffpathError)
    print(f"rank {rank}: {said}", flush=True)
    os._exit(0)


def main():
    if "launched" in sys.argv:
        offpath.torch.init_process_group(timeout=timedelta(seconds=60))
    else:
        dist.init_process_group("offpath", timeout=timedelta(seconds=60))
    rank, size = dist.get_rank(), dist.get_world_size()
    assert dist.get_backend() == "offpath"
    group = dist.group.WORLD
    draw = random.Random(SEED)
    check_reductions(group, rank, size, draw)
    check_moves(group, rank, size, draw)
    check_messages(group, rank, size)
    check_tags(group, rank, size)
    check_forgotten(group, rank, size)
    check_sub_groups(rank, size)
    check_futures(group, size)
    check_shards(group, rank, size)
    losses = [trained(where, rank) for where in (group, dist.new_group(backend="gloo"))]
    assert torch.equal(*losses) if size == 2 else torch.allclose(*losses), losses
    check_errors(group)
    check_time_limits(group, rank, size)
    dist.barrier()
    if "dies" in sys.argv:
        check_death(rank)
    dist.destroy_process_group()
    print(f"rank {rank} of {size}: the same", flush=True)


main()
