# SPDX-License-Identifier: BSD-3-Clause
"""Fully sharded training (torch's fully_shard) whose communication goes on beside the computation.

On CPUs FSDP waits for each gather and each reduction where it begins, whatever the backend: there is no stream that
could wait in its place. torch lets both be replaced, and what is here waits where a result is needed.
"""

from __future__ import annotations

import math
from typing import Any, TypeVar

import numpy
import torch
import torch.distributed as dist
from torch.autograd import Variable

from offpath.api.failures import ArgumentError, OffpathError
from offpath.api.memory import lend
from offpath.torch.process_group import ProcessGroup

Model = TypeVar("Model", bound=torch.nn.Module)


def overlap(model: Model) -> Model:
    """For a model that fully_shard was called for. Each module's parameters are gathered while the one before it, as
    model.modules() has them, computes; gradients are reduced while backward() goes on, which waits for all of them at
    its end. With the backend offpath both take place in memory that the service maps."""
    sharded = [module for module in model.modules() if hasattr(module, "set_custom_reduce_scatter")]
    if not sharded:
        raise ArgumentError(
            "the model has no module that this PyTorch's fully_shard was called for (overlap changes how these "
            "communicate). Call torch.distributed.fsdp.fully_shard(module) first, of PyTorch 2.8 or newer."
        )
    memory = Memory()
    for module in sharded:
        module.set_custom_all_gather(Gather(memory, module))
        module.set_custom_reduce_scatter(Reduce(memory, module))
    for module, following in zip(sharded, sharded[1:]):
        module.set_modules_to_forward_prefetch([following])
    return model


class Memory:
    """FSDP asks for the same lengths in each step. What it lets go of is given out again."""

    def __init__(self) -> None:
        self._free: dict[int, list[Any]] = {}

    def tensor(self, group: Any, count: int, dtype: torch.dtype) -> torch.Tensor:
        """In memory that the service of that group maps, where it has one."""
        if not isinstance(group, ProcessGroup):
            return torch.empty(count, dtype=dtype)
        nbytes = count * dtype.itemsize
        free = self._free.setdefault(nbytes, [])
        try:
            memory = free.pop() if free else lend(group.session, nbytes, "u1")
        except OffpathError:  # there is no more, or the service is lost, which the operation will say
            return torch.empty(count, dtype=dtype)
        return torch.from_numpy(numpy.asarray(_Loan(memory, free))).view(dtype)


class _Loan:
    """Lives as long as a tensor, or an operation, uses the memory."""

    def __init__(self, memory: Any, free: list[Any]):
        self._memory, self._free = memory, free
        self.__array_interface__ = memory.__array_interface__

    def __del__(self) -> None:
        self._free.append(self._memory)


class Communication:
    """What one module does; the names and arguments of its methods are torch's."""

    def __init__(self, memory: Memory, module: Any):
        self._memory, self._module = memory, module
        meshes = [each.device_mesh for each in module.parameters() if hasattr(each, "device_mesh")]
        self._group = meshes[0].get_group(meshes[0].ndim - 1) if meshes else None

    def allocate(self, size: Any, *, dtype: torch.dtype, device: torch.device) -> torch.Tensor:
        return self._memory.tensor(self._group, math.prod(size), dtype)


class Gather(Communication):
    def __call__(
        self, output_tensor: torch.Tensor, input_tensor: torch.Tensor, group: Any, async_op: bool = False
    ) -> Any:
        """FSDP waits for what is returned before it uses the parameters."""
        return dist.all_gather_into_tensor(output_tensor, input_tensor, group=group, async_op=True)


class Reduce(Communication):
    _last: Any = None

    def __call__(
        self, output_tensor: torch.Tensor, input_tensor: torch.Tensor, group: Any, op: Any, async_op: bool = False
    ) -> None:
        work = dist.reduce_scatter_tensor(output_tensor, input_tensor, op=op, group=group, async_op=True)
        before, self._last = self._last, work
        if op == dist.ReduceOp.AVG and self._is_only_kept(output_tensor.dtype):
            Variable._execution_engine.queue_callback(work.wait)  # type: ignore[no-untyped-call, unused-ignore]
        else:
            if before is not None:  # of a module that is used twice: FSDP adds this result to that one
                before.wait()
            work.wait()

    def _is_only_kept(self, dtype: torch.dtype) -> bool:
        """Whether FSDP makes the result the parameters' gradients as it is, so that nobody looks at it before
        backward() ends. Where this is not known, as FSDP is another one, it does not."""
        try:
            (group,) = self._module._get_fsdp_state()._fsdp_param_groups
            return group._all_reduce_hook is None and all(
                each.sharded_param.grad is None
                and not each.sharded_param._post_accumulate_grad_hooks
                and each.sharded_param.device_mesh.ndim == 1
                and each.sharded_param.dtype == dtype
                and getattr(each, "sharded_grad_dtype", None) in (None, dtype)
                and not each.offload_to_cpu
                for each in group.fsdp_params
            )
        except (AttributeError, ValueError):
            return False
