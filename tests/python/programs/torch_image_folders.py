# SPDX-License-Identifier: BSD-3-Clause
"""Makes small pictures in FOLDER, as torchvision reads them: ImageFolder and FashionMNIST."""

import struct
import sys
from pathlib import Path

import numpy
from PIL import Image

HOME = Path(sys.argv[1])


def folders():
    """{train,val}/CLASS/NUMBER.png"""
    for part, count in (("train", 24), ("val", 8)):
        for number in range(count):
            folder = HOME / part / "abcdef"[number % 6]
            folder.mkdir(parents=True, exist_ok=True)
            drawn = numpy.random.default_rng(number)
            pixels = drawn.integers(0, 128, (48, 40 + number, 3)) + 20 * (number % 6)
            Image.fromarray(pixels.astype("u1")).save(folder / f"{number}.png")


def fashion():
    raw = HOME / "FashionMNIST" / "raw"
    raw.mkdir(parents=True)
    for part, count in (("train", 24), ("t10k", 6)):
        pixels = numpy.random.default_rng(count).integers(0, 256, (count, 28, 28)).astype("u1")
        labels = (numpy.arange(count) % 3).astype("u1")
        (raw / f"{part}-images-idx3-ubyte").write_bytes(struct.pack(">IIII", 0x803, count, 28, 28) + pixels.tobytes())
        (raw / f"{part}-labels-idx1-ubyte").write_bytes(struct.pack(">II", 0x801, count) + labels.tobytes())


folders()
fashion()
