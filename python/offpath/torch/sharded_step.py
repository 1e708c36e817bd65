# SPDX-License-Identifier: BSD-3-Clause
"""A rank of `offpath bench training --parts sharded`: steps of one sharded model with different backends, in turns.

Rank 0 prints one line of JSON: times of each way in seconds, one for each round.
"""

from __future__ import annotations

import math

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.fsdp import fully_shard

import offpath.torch
from offpath.torch.training_step import begin, difference, end, largest_of_all, model_of, share_of, timed

WARMUP = 2
WAYS = {"gloo": ("gloo", False), "gloo, overlap": ("gloo", True),
        "offpath": ("offpath", False), "offpath, overlap": ("offpath", True)}  # fmt: skip


class Sharded:
    """What is measured, in one way."""

    def __init__(self, mesh: DeviceMesh, overlaps: bool, layers: int, width: int):
        self.group, self._plain = mesh.get_group(), model_of(layers, width)
        self._model = model_of(layers, width)
        for layer in self._model:  # type: ignore[attr-defined]
            fully_shard(layer, mesh=mesh)
        fully_shard(self._model, mesh=mesh)
        if overlaps:
            offpath.torch.overlap(self._model)
        self._optimizer = torch.optim.SGD(self._model.parameters(), lr=0.01)
        self._layer = torch.zeros(width * width)
        self._shard = torch.zeros(width * width // dist.get_world_size())
        self._averages = torch.zeros_like(self._shard)
        self._layers = layers
        self.losses: list[float] = []

    def compute(self, batch: torch.Tensor) -> None:
        """A step without communication, of a model that is whole."""
        self._plain.zero_grad()
        self._plain(batch).square().mean().backward()

    def exchange(self, batch: torch.Tensor) -> None:
        """What is communicated in a step, alone: each layer is gathered twice, and its gradients are reduced."""
        for _ in range(self._layers):
            for part in (self.gather, self.gather, self.reduce):
                part(batch)

    def gather(self, _: torch.Tensor) -> None:
        dist.all_gather_into_tensor(self._layer, self._shard, group=self.group)

    def reduce(self, _: torch.Tensor) -> None:
        dist.reduce_scatter_tensor(self._averages, self._layer, op=dist.ReduceOp.AVG, group=self.group)

    def fill(self, turn: int) -> None:
        """What is communicated alone differs from turn to turn and from rank to rank."""
        mine = float((turn + 1) * (dist.get_rank() + 1))
        self._shard.fill_(mine)
        self._layer.fill_(mine)
        self._averages.zero_()

    def is_right(self, what: str, turn: int) -> bool:
        """Whether it brought what fill() wrote, of all ranks."""
        written = [float((turn + 1) * (rank + 1)) for rank in range(dist.get_world_size())]
        average = sum(written) / len(written) if what == "reduce" else written[dist.get_rank()]
        gathered = self._layer.view(len(written), -1) == torch.tensor(written)[:, None]
        return bool((what not in ("gather", "exchange") or gathered.all())
                    and (what not in ("reduce", "exchange") or (self._averages == average).all()))  # fmt: skip

    def step(self, batch: torch.Tensor) -> None:
        self._optimizer.zero_grad()
        loss = self._model(batch).square().mean()
        loss.backward()
        self._optimizer.step()
        self.losses.append(loss.item())


def main() -> None:
    options, groups = begin()
    meshes = {name: DeviceMesh.from_group(group, "cpu") for name, group in groups.items()}
    peers = {
        way: Sharded(meshes[backend], overlaps, options.layers, options.width)
        for way, (backend, overlaps) in WAYS.items()
    }
    batch = share_of(peers["gloo"], options.share, options.width)
    measured = ("compute", "gather", "reduce", "exchange", "step")
    times: dict[str, dict[str, list[float]]] = {way: {what: [] for what in measured} for way in peers}
    right = True
    for turn in range(WARMUP + options.rounds):
        for way, peer in peers.items():
            for what, found in times[way].items():
                peer.fill(turn)
                seconds = timed(getattr(peer, what), batch)
                right = right and peer.is_right(what, turn)
                if turn >= WARMUP:
                    found.append(seconds)
    errors = [difference([torch.tensor(peer.losses)], [torch.tensor(peers["gloo"].losses)]) for peer in peers.values()]
    if not right:
        errors.append(math.inf)
    end({
        "model_bytes": options.layers * options.width**2 * 4, "rows": len(batch), "layers": options.layers,
        "largest_difference": largest_of_all(errors), "times": times, "torch": torch.__version__,
    })  # fmt: skip


if __name__ == "__main__":
    main()
