# SPDX-License-Identifier: BSD-3-Clause
"""Offpath on the nodes of a site, as tests of ReFrame 4: does it work there, and what does it gain?

    reframe -C config.py -c offpath_checks.py -r

Each job asks for `nodes` nodes with one rank and `cores` cores, one of which is left to the service. `offpath` is
started in it, and starts the ranks by the launcher of the partition. docs/guide-administration.md says what can be set.
"""

import json
import os

import reframe as rfm
import reframe.utility.sanity as sn
from reframe.core.backends import getlauncher
from reframe.core.builtins import parameter, performance_function, run_after, sanity_function, variable

RESULTS = "results.json"
SRUN = {"openmpi": "--mpi=pmix", "mpich": "--mpi=pmi2"}


class OffpathCheck(rfm.RunOnlyRegressionTest):
    """What both have in common: where they run, and the launcher as words for --launch."""

    offpath = variable(str, value="offpath")  # the command, with a path where no module puts it into PATH
    mpi = variable(str, value="openmpi")  # or mpich: what the launcher starts
    nodes = variable(int, value=2)
    cores = variable(int, value=2)
    launcher_options = variable(str, value="")  # words behind the launcher's own, like "-hostfile hosts"

    valid_systems = ["*"]
    valid_prog_environs = ["*"]
    maintainers = ["offpath"]
    tags = {"offpath"}

    @run_after("init")
    def ask_for_nodes(self):
        self.num_tasks, self.num_tasks_per_node, self.num_cpus_per_task = self.nodes, 1, self.cores
        self.executable = self.offpath

    @run_after("setup")
    def launch_inside(self):
        """Offpath starts the ranks; the job's script starts Offpath alone."""
        self.job.num_tasks = self.num_tasks  # which ReFrame itself says later
        words = self.job.launcher.run_command(self.job).split()
        if words[0] == "srun":
            words += ["--cpus-per-task", str(self.cores), SRUN[self.mpi]]
        self.launch = " ".join([*words, *self.launcher_options.split()])
        self.job.launcher = getlauncher("local")()

    @property
    def found(self):
        with open(os.path.join(self.stagedir, RESULTS)) as file:
            return json.load(file)

    def is_there(self):
        """What Offpath says where it has written nothing."""
        with open(os.path.join(self.stagedir, self.stderr.evaluate())) as file:
            said = file.read().strip().splitlines() or ["it said nothing"]
        path = os.path.join(self.stagedir, RESULTS)
        return sn.assert_true(os.path.exists(path) and os.path.getsize(path), said[-1])


@rfm.simple_test
class OffpathSelftest(OffpathCheck):
    """Nothing is in the way on the nodes; results are right alone and offloaded, something was offloaded, and a program
    survives its service."""

    descr = "offpath selftest"
    tags = {"offpath", "sanity"}

    @run_after("setup")
    def command(self):
        self.executable_opts = ["selftest", "--json", "--mpi", self.mpi, "--launch", f"'{self.launch}'", ">", RESULTS]

    @sanity_function
    def works(self):
        sn.evaluate(self.is_there())
        rows = self.found["rows"]
        bad = "; ".join(f"{row['what']}: {row['found']}" for row in rows if row["verdict"] == "no")
        offloaded = [row for row in rows if row["what"].endswith(", offloaded")]
        killed = [row for row in rows if row["what"].endswith("a service is killed")]
        return sn.all([sn.assert_false(bad, bad), sn.assert_true(offloaded and killed, "it was not tried")])


@rfm.simple_test
class OffpathGain(OffpathCheck):
    """What offloading gains beside computation, on idle nodes; and which share of its wire it fills, where the
    partition's extras have `link_gbit`."""

    collective = parameter(["ialltoall", "iallreduce"])
    size = variable(str, value="4M")  # all bytes that a rank sends
    least_gain = variable(float, value=0.0)  # below that it fails
    share = variable(bool, value=False)  # the service may use the ranks' core

    descr = "offpath tune, of which nothing is kept"
    tags = {"offpath", "performance"}

    @run_after("setup")
    def command(self):
        self.executable_opts = [
            "tune", "--dry-run", "--json", RESULTS, "--cluster", self.current_system.name, "--mpi", self.mpi,
            "--launch", f"'{self.launch}'", "--collectives", self.collective, "--sizes", self.size,
            *(["--share"] if self.share else []),
        ]  # fmt: skip
        self.reference = {"*": {"gain": (self.least_gain, 0, None, "times")}}

    def row(self, peer):
        return next(row for row in self.found["measurements"][0]["rows"] if row["peer"] == peer)

    @sanity_function
    def results_are_right(self):
        sn.evaluate(self.is_there())
        rows = [self.row(peer) for peer in ("host", "dpu")]  # the latter exists only where something was offloaded
        return sn.assert_true(all(row["verified"] for row in rows), "results differ")

    @performance_function("times")
    def gain(self):
        return self.row("dpu")["speedup"]

    @run_after("sanity")
    def how_full_the_wire_is(self):
        """Of an alltoall, as each byte but a rank's own crosses it once. Of others it depends on the algorithm."""
        link_gbit = self.current_partition.extras.get("link_gbit")
        if link_gbit and self.collective == "ialltoall":
            row = self.row("dpu")
            gbit_per_s = 8 * row["bytes"] * (row["ranks"] - 1) / row["ranks"] / row["t_pure_ns"]
            self.perf_variables["wire"] = sn.make_performance_function(lambda: gbit_per_s / link_gbit, "of 1")
