# SPDX-License-Identifier: BSD-3-Clause
"""An atom of oxygen and one of carbon on a grid of points that is divided among the ranks."""

from ase import Atoms
from gpaw import GPAW
from gpaw.mpi import world

atoms = Atoms("CO", [(0, 0, 0), (0, 0, 1.14)])
atoms.center(vacuum=2.5)
atoms.calc = GPAW(
    mode="fd",
    h=0.22,
    xc="LDA",
    txt=None,
    parallel={"domain": world.size},
    maxiter=8,
    convergence={"minimum iterations": 8, "energy": 10, "density": 10, "eigenstates": 10},
)
energy = atoms.get_potential_energy()
if world.rank == 0:
    print(f"ENERGY {energy:.6f}")
