# SPDX-License-Identifier: BSD-3-Clause
"""Run by every rank on the nodes of a job, by path: which node it is on, and what that node is like. One line of JSON.

It imports nothing of Offpath: whether that is there is what it finds out. node_facts.py [MEASURE] -- FILE...: the FILEs
are looked for; rank 0 runs MEASURE, a program that prints JSON, and puts that into its line.
"""

import json
import os
import platform
import subprocess
import sys

RANKS = ("PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID")
START = "offpath-node "


def processor() -> str:
    try:
        with open("/proc/cpuinfo") as file:
            return next(line.split(":", 1)[1].strip() for line in file if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor()


def main() -> None:
    place = sys.argv.index("--")
    rank = next((int(os.environ[name]) for name in RANKS if os.environ.get(name, "").isdigit()), None)
    facts = {
        "rank": rank, "node": platform.node(), "arch": platform.machine(), "processor": processor(),
        "cores": os.cpu_count(), "allowed": sorted(os.sched_getaffinity(0)),
        "missing": [name for name in sys.argv[place + 1 :] if not os.access(name, os.R_OK)],
    }  # fmt: skip
    if rank == 0 and place > 1:
        done = subprocess.run(sys.argv[1:place], capture_output=True)
        facts["measured"] = json.loads(done.stdout) if done.returncode == 0 else None
    sys.stdout.write(START + json.dumps(facts) + "\n")  # in one piece: others write, too


main()
