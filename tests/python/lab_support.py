# SPDX-License-Identifier: BSD-3-Clause
"""What programs/traced.c does in each of its rounds; the fixtures `lab` and `traced` are in conftest.py."""

POLICY = "ialltoall:0-inf:dpu,window:dpu"
ROUNDS, BLOCK, SHORTS = 4, 65536, 20
