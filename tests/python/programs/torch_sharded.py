# SPDX-License-Identifier: BSD-3-Clause
"""A rank of fully sharded trainings (PyTorch 2.8 and newer): over the backend offpath what they are over gloo.

RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT as torchrun sets them; the arguments seed what is drawn and say what is
tried. "waits", "overlaps": the service is killed in the middle of such a training.
"""

import os
import signal
import sys
import warnings
from datetime import timedelta

import offpath.torch
import torch
import torch.distributed as dist
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks, post_localSGD_hook, powerSGD_hook
from torch.distributed.algorithms.model_averaging.averagers import PeriodicModelAverager
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.fsdp import FullyShardedDataParallel, MixedPrecisionPolicy, fully_shard
from torch.distributed.fsdp.wrap import ModuleWrapPolicy
from torch.distributed.optim import PostLocalSGDOptimizer
from torch.distributed.tensor import DTensor
from torch.nn.parallel import DistributedDataParallel

SEED = int(sys.argv[1])
ODD = 33  # no number of ranks here divides it: FSDP pads
BF16 = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)


class Layer(torch.nn.Sequential):
    def __init__(self):
        super().__init__(torch.nn.Linear(ODD, ODD), torch.nn.Tanh())


class Net(torch.nn.Module):
    """`twice`: each layer is used twice in a step."""

    def __init__(self, twice=False):
        super().__init__()
        torch.manual_seed(SEED)
        self.layers = torch.nn.ModuleList(Layer() for _ in range(4))
        self.head = torch.nn.Linear(ODD, 3)
        self.uses = 1 + twice

    def forward(self, given):
        for _ in range(self.uses):
            for layer in self.layers:
                given = layer(given)
        return self.head(given)


def sharded(group, overlaps, twice=False, hooked=None, **more):
    model, mesh = Net(twice), DeviceMesh.from_group(group, "cpu")
    for layer in model.layers:
        fully_shard(layer, mesh=mesh, **more)
    fully_shard(model, mesh=mesh, **more)
    if overlaps:
        offpath.torch.overlap(model)
    if hooked == "module":
        for module in (*model.layers, model):
            module.set_all_reduce_hook(lambda gradients: gradients.mul_(2))
    for parameter in model.parameters():
        if hooked == "parameter":
            parameter.register_post_accumulate_grad_hook(lambda each: each.grad.mul_(2))
    return model


def flat(group, overlaps):
    return FullyShardedDataParallel(
        Net(), group, device_id=torch.device("cpu"), auto_wrap_policy=ModuleWrapPolicy({Layer})
    )


# Each with whether it overlaps.
WAYS = {
    "FSDP": flat,
    "fully_shard": sharded,
    "each layer twice": lambda *given: sharded(*given, twice=True),
    "bfloat16": lambda *given: sharded(*given, mp_policy=BF16),
    "hooks of all_reduce": lambda *given: sharded(*given, hooked="module"),
    "hooks of parameters": lambda *given: sharded(*given, hooked="parameter"),
}


def batch(step):
    generator = torch.Generator().manual_seed(1000 * step + dist.get_rank())
    return torch.randn(8, ODD, generator=generator), torch.randint(0, 3, (8,), generator=generator)


def trained(model, accumulates=1, steps=3, clips=False, optimizer=None):
    optimizer = optimizer or torch.optim.Adam(model.parameters(), lr=0.01)
    losses = []
    for step in range(steps):
        optimizer.zero_grad()
        for part in range(accumulates):
            given, labels = batch(step * accumulates + part)
            loss = torch.nn.functional.cross_entropy(model(given), labels)
            loss.backward()
            losses.append(loss.detach())
        if clips:
            torch.nn.utils.clip_grad_norm_(model.parameters(), 0.1)
        optimizer.step()
    return torch.stack(losses)


def check(what, ours, theirs):
    """With two ranks a sum has one order; with more, offpath's is another one than gloo's."""
    same = torch.equal(ours, theirs) if dist.get_world_size() == 2 else torch.allclose(ours, theirs, rtol=1e-4)
    assert same, f"{what}: {ours.tolist()} and not {theirs.tolist()}"


def check_ways(gloo, world):
    for name, made in WAYS.items():
        theirs = trained(made(gloo, False))
        check(name, trained(made(world, False)), theirs)
        if made is not flat:
            check(f"{name}, overlap", trained(made(world, True)), theirs)
    check("overlap on gloo", trained(sharded(gloo, True)), trained(sharded(gloo, False)))


def check_accumulation(gloo, world):
    for overlaps in (False, True):
        model = sharded(world, overlaps)
        check("accumulated", trained(model, 3, clips=True), trained(sharded(gloo, overlaps), 3, clips=True))
        assert all(isinstance(each, DTensor) for each in model.parameters())
        whole = {name: each.full_tensor() for name, each in model.state_dict().items()}
        assert whole["head.weight"].shape == (3, ODD) and whole["head.weight"].isfinite().all()


def replicated(group, hook):
    # powerSGD begins collectives in callbacks: with several buckets their order would be each rank's own, on CPUs.
    model = DistributedDataParallel(Net(), process_group=group, bucket_cap_mb=25 if hook == "powerSGD" else 0.005)
    if hook == "powerSGD":
        state = powerSGD_hook.PowerSGDState(group, matrix_approximation_rank=1, start_powerSGD_iter=2)
        model.register_comm_hook(state, powerSGD_hook.powerSGD_hook)
        return trained(model, steps=5)
    if hook == "local SGD":
        alone = [dist.new_group([rank], backend=dist.get_backend(group)) for rank in range(dist.get_world_size())]
        state = post_localSGD_hook.PostLocalSGDState(group, alone[dist.get_rank()], start_localSGD_iter=2)
        model.register_comm_hook(state, post_localSGD_hook.post_localSGD_hook)
        averager = PeriodicModelAverager(period=2, warmup_steps=2, process_group=group)
        inner = torch.optim.SGD(model.parameters(), lr=0.1)
        return trained(model, steps=5, optimizer=PostLocalSGDOptimizer(inner, averager))
    model.register_comm_hook(group, {"float16": default_hooks.fp16_compress_hook,
                                     "bfloat16": default_hooks.bf16_compress_hook}[hook])  # fmt: skip
    return trained(model, steps=5)


def check_hooks(gloo, world):
    """float16 is added up as float32 here, and by gloo as itself; with two addends the sum is the same."""
    for hook in ("float16", "bfloat16", "powerSGD", "local SGD"):
        ours, theirs = replicated(world, hook), replicated(gloo, hook)
        same = torch.equal if dist.get_world_size() == 2 else lambda one, other: torch.allclose(one, other, rtol=2e-2)
        assert same(ours, theirs), f"{hook}: {ours.tolist()} and not {theirs.tolist()}"


def check_loss(world, overlaps):
    """An error in the step under way, of every rank; none hangs."""
    model = sharded(world, overlaps)
    trained(model)
    dist.barrier()
    if dist.get_rank() == 0:
        os.kill(world.session.counters()["service_pid"], signal.SIGKILL)
    try:
        trained(model, steps=1000)
    except offpath.OffpathError as error:
        print(f"rank {dist.get_rank()}: {type(error).__name__}: {error}", flush=True)
    os._exit(0)


def main():
    warnings.simplefilter("ignore")
    dist.init_process_group("offpath", timeout=timedelta(seconds=60))
    world = dist.group.WORLD
    if sys.argv[2] in ("waits", "overlaps"):
        check_loss(world, sys.argv[2] == "overlaps")
    gloo = dist.new_group(backend="gloo")
    {"ways": check_ways, "accumulation": check_accumulation, "hooks": check_hooks}[sys.argv[2]](gloo, world)
    dist.barrier()
    print(f"rank {dist.get_rank()} of {dist.get_world_size()}: the same", flush=True)
    dist.destroy_process_group()


main()
