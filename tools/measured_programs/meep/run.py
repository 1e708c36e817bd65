# SPDX-License-Identifier: BSD-3-Clause
"""A pulse in a bent wave guide, in two dimensions that the ranks share."""

import meep as mp

guide = [
    mp.Block(mp.Vector3(12, 1, mp.inf), center=mp.Vector3(-2.5, -3.5), material=mp.Medium(epsilon=12)),
    mp.Block(mp.Vector3(1, 12, mp.inf), center=mp.Vector3(3.5, 2), material=mp.Medium(epsilon=12)),
]
source = mp.ContinuousSource(wavelength=2 * 11**0.5, width=20)
simulation = mp.Simulation(
    cell_size=mp.Vector3(16, 16, 0),
    boundary_layers=[mp.PML(1.0)],
    geometry=guide,
    sources=[mp.Source(source, mp.Ez, mp.Vector3(-7, -3.5), size=mp.Vector3(0, 1))],
    resolution=20,
)
simulation.run(until=60)
energy = simulation.field_energy_in_box(mp.Volume(center=mp.Vector3(), size=mp.Vector3(14, 14, 0)))
if mp.am_master():
    print(f"ENERGY {energy:.12e}")
