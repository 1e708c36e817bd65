# SPDX-License-Identifier: BSD-3-Clause
"""Small models and generated pictures, for `offpath bench training` and for trying things out. Nothing is downloaded.

Sources: He et al., Deep residual learning (ResNet-20 of CIFAR-10); Zhang et al., ShuffleNet (groups, shuffles).
"""

from __future__ import annotations

import random
from typing import Any

import numpy
import torch
from torch import nn

SHAPES = {"cifar10": (3, 32, 10), "tiny-imagenet": (3, 64, 200)}  # channels, width, classes


class Pictures(torch.utils.data.Dataset):  # type: ignore[type-arg]
    """`count` pictures of a data set's shape, each a pattern of its class under noise. `effort`: how many times over a
    sample is changed at random (cropped, flipped, its colours and its noise); 0: not at all."""

    def __init__(self, count: int, shape: str = "cifar10", effort: int = 1):
        self.channels, self.width, self.classes = SHAPES[shape]
        self._count, self._effort = count, effort

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        label = index % self.classes
        drawn = numpy.random.default_rng(index)
        line = numpy.sin(numpy.arange(self.width) * (1 + label) * 0.2)
        plain = numpy.outer(line, line)[None] + drawn.normal(0, 0.3, (self.channels, self.width, self.width))
        picture = torch.from_numpy(plain.astype("f4"))
        for _ in range(self._effort):
            picture = self._changed(picture)
        return picture, label

    def _changed(self, picture: torch.Tensor) -> torch.Tensor:
        padded = nn.functional.pad(picture, (4, 4, 4, 4))
        left, top = random.randrange(9), random.randrange(9)
        picture = padded[:, top : top + self.width, left : left + self.width]
        if random.random() < 0.5:
            picture = picture.flip(2)
        brightness, contrast = 1 + 0.2 * torch.rand(2)
        return (picture - picture.mean()) * contrast + picture.mean() * brightness + 0.05 * torch.randn(picture.shape)


class Block(nn.Module):
    def __init__(self, inside: int, outside: int, stride: int):
        super().__init__()
        self.first, self.norm1 = nn.Conv2d(inside, outside, 3, stride, 1, bias=False), nn.BatchNorm2d(outside)
        self.second, self.norm2 = nn.Conv2d(outside, outside, 3, 1, 1, bias=False), nn.BatchNorm2d(outside)
        same = inside == outside and stride == 1
        self.short: Any = nn.Identity() if same else nn.Conv2d(inside, outside, 1, stride, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        inner = self.norm2(self.second(torch.relu(self.norm1(self.first(x)))))
        return torch.relu(inner + self.short(x))


class Shuffled(nn.Module):
    """Grouped 1x1 convolutions around a depthwise one, and a shuffle between them."""

    def __init__(self, width: int, groups: int = 4):
        super().__init__()
        self.groups = groups
        self.first = nn.Conv2d(width, width, 1, groups=groups, bias=False)
        self.depth = nn.Conv2d(width, width, 3, 1, 1, groups=width, bias=False)
        self.last = nn.Conv2d(width, width, 1, groups=groups, bias=False)
        self.norm = nn.BatchNorm2d(width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        inner = torch.relu(self.first(x))
        shape = inner.shape
        inner = inner.view(shape[0], self.groups, -1, *shape[2:]).transpose(1, 2).reshape(shape)
        return torch.relu(x + self.norm(self.last(self.depth(inner))))


def resnet(classes: int, depth: int = 3, width: int = 16) -> nn.Module:
    """6 x depth + 2 layers: ResNet-20 with 3."""
    layers: list[nn.Module] = [nn.Conv2d(3, width, 3, 1, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU()]
    inside = width
    for stage in range(3):
        for place in range(depth):
            outside = width << stage
            layers.append(Block(inside, outside, 2 if stage and not place else 1))
            inside = outside
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inside, classes))


def shufflenet(classes: int, depth: int = 3, width: int = 32) -> nn.Module:
    stages: list[nn.Module] = [nn.Conv2d(3, width, 3, 2, 1, bias=False)]
    for _ in range(3):
        stages += [*(Shuffled(width) for _ in range(depth)), nn.AvgPool2d(2)]
    return nn.Sequential(*stages, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, classes))


MODELS = {"resnet20": resnet, "shufflenet": shufflenet}


def wrong_ones(model: nn.Module, pictures: Any, batch: int = 64) -> int:
    """How many pictures a model takes for others."""
    model.eval()
    wrong = 0
    for begin in range(0, len(pictures), batch):
        made = [pictures[index] for index in range(begin, min(begin + batch, len(pictures)))]
        found = model(torch.stack([picture for picture, _ in made])).argmax(1)
        wrong += int((found != torch.tensor([label for _, label in made])).sum())
    return wrong
