# SPDX-License-Identifier: BSD-3-Clause
"""Saves a checkpoint, changes what it was made of, and reads it. Arguments: its file; "alone": without a group."""

import sys

import offpath.torch
import torch
import torch.distributed as dist

if "alone" not in sys.argv:
    dist.init_process_group("offpath")
model = torch.nn.Linear(1000, 1000)
optimizer = torch.optim.Adam(model.parameters())
model(torch.ones(1000)).sum().backward()
optimizer.step()
weights = model.weight.detach().clone()

saving = offpath.torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": 3}, sys.argv[1])
optimizer.step()  # beside it
assert not torch.equal(model.weight, weights)
saving.wait()
read = torch.load(sys.argv[1])
model.load_state_dict(read["model"])
optimizer.load_state_dict(read["optimizer"])
print("the same" if read["epoch"] == 3 and torch.equal(model.weight, weights) else "another state")
