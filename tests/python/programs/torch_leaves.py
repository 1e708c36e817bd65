# SPDX-License-Identifier: BSD-3-Clause
"""A program that ends while one of its works is not over: its peer takes no part."""

import offpath.torch  # noqa: F401
import torch
import torch.distributed as dist

dist.init_process_group("offpath")
rank = dist.get_rank()
if rank == 0:
    dist.all_reduce(torch.ones(3), async_op=True).get_future()
print(f"rank {rank}: left")
