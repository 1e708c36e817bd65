# SPDX-License-Identifier: BSD-3-Clause
"""Sequences that descend from one another by chance, always the same: python3 sequences.py TAXA SITES"""

import random
import sys

taxa, sites = (int(word) for word in sys.argv[1:])
chance = random.Random(7)
found = ["".join(chance.choice("ACGT") for _ in range(sites))]
while len(found) < taxa:
    parent = chance.choice(found)
    found.append("".join(chance.choice("ACGT") if chance.random() < 0.12 else base for base in parent))
print(f" {taxa} {sites}", *(f"t{index:03d}      {each}" for index, each in enumerate(found)), sep="\n")
