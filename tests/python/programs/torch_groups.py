# SPDX-License-Identifier: BSD-3-Clause
"""A rank of a program whose first group of the backend offpath is not that of all ranks, or is made again.

Arguments: "grid" (four ranks), "again", or "alone" with a file."""

import faulthandler
import os
import sys
from datetime import timedelta

import offpath.torch
import torch
import torch.distributed as dist

LONG = timedelta(seconds=240)


def total(rank, group):
    mine = torch.tensor([float(rank)])
    dist.all_reduce(mine, group=group)
    return mine.item()


def grid():
    """The default group is another backend's; rows, then columns, then all."""
    dist.init_process_group("gloo", timeout=LONG)
    rank = dist.get_rank()
    sessions = set()
    for groups in ([[0, 1], [2, 3]], [[0, 2], [1, 3]], [[0, 1, 2, 3]]):
        made = [dist.new_group(ranks, timeout=LONG, backend="offpath") for ranks in groups]
        for ranks, group in zip(groups, made):
            if rank in ranks:
                assert total(rank, group) == sum(ranks), ranks
                sessions.add(id(group.session))
    assert len(sessions) == 1, "a process has one service"


def again():
    """Groups of the same name on the same store, which has what the ones before have left."""
    dist.init_process_group("gloo", timeout=LONG)
    rank, store = dist.get_rank(), dist.distributed_c10d._get_default_store()
    for _ in range(4):
        group = offpath.torch.ProcessGroup(dist.PrefixStore("again", store), rank, 2, LONG)
        mine = torch.tensor([float(rank)])
        group.allreduce([mine]).wait()
        assert mine.item() == 1.0


def alone():
    """Rank 0 has saved a checkpoint before it met the others."""
    if os.environ["RANK"] == "0":
        offpath.torch.save({"epoch": 0}, sys.argv[2]).wait()
    dist.init_process_group("offpath", timeout=LONG)
    assert total(dist.get_rank(), None) == 1.0


def main():
    faulthandler.dump_traceback_later(280, exit=True)
    {"grid": grid, "again": again, "alone": alone}[sys.argv[1]]()
    print(f"rank {dist.get_rank()}: met", flush=True)
    dist.barrier()
    dist.destroy_process_group()


main()
