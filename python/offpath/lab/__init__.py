# SPDX-License-Identifier: BSD-3-Clause
"""An emulated cluster on one machine: `with Lab(nodes=2) as lab: lab.mpirun(...)`."""

from offpath.lab.cluster import Lab

__all__ = ["Lab"]
