# SPDX-License-Identifier: BSD-3-Clause
"""Two systems to begin with: this machine (`--system here`), and a cluster with Slurm (`--system cluster:nodes`)."""

ENVIRONS = {"environs": ["default"]}

site_configuration = {
    "systems": [
        {
            "name": "here",
            "descr": "the machine where ReFrame runs: its mpirun starts all ranks",
            "hostnames": [".*"],
            "partitions": [
                {"name": "default", "scheduler": "local", "launcher": "mpirun", "max_jobs": 1, **ENVIRONS}
            ],
        },
        {
            "name": "cluster",
            "descr": "Slurm; say here how fast the network of its nodes is",
            "hostnames": [],
            "modules": [],  # the module file of packaging/modulefiles, if PATH has no offpath
            "partitions": [
                {
                    "name": "nodes", "scheduler": "slurm", "launcher": "srun", "access": ["--exclusive"],
                    "extras": {"link_gbit": 100}, **ENVIRONS,
                }
            ],
        },
    ],
    "environments": [{"name": "default"}],
}  # fmt: skip
