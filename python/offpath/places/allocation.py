# SPDX-License-Identifier: BSD-3-Clause
"""The nodes of a job as a place for measurements: programs are started by the user's own launcher."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import shlex
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from offpath.base import console, files, handover, processes
from offpath.base.errors import UserError
from offpath.base.paths import built, paths
from offpath.base.processes import Completed
from offpath.launch import checks, cluster_files, injection, local, mpis, own_rank, policy_table
from offpath.launch import stats as statistics
from offpath.launch.injection import OffloadOptions
from offpath.places import comparison
from offpath.places.asked import OnNodes

KIND = ("arch", "processor", "cores")  # in what nodes of one kind are alike
START = "offpath-node "
SPECIAL_STEPS = 0xFFFFFFF0  # from this number on
PMI = {mpis.OPENMPI: "pmix", mpis.MPICH: "pmi2"}


@dataclass(frozen=True)
class Launcher:
    """What was asked for: --launch and what belongs to it."""

    words: tuple[str, ...]
    mpi: str
    cluster: str
    cores: str | None
    share: bool

    @property
    def counts_nodes(self) -> bool:
        """Whether it can be asked for a number of nodes."""
        return any("{nodes}" in word for word in self.words)

    def command(self, nodes: int, ppn: int) -> list[str]:
        numbers = {"{nodes}": nodes, "{ppn}": ppn, "{ranks}": nodes * ppn}
        return [functools.reduce(lambda text, name: text.replace(name, str(numbers[name])), numbers, word)
                for word in self.words]  # fmt: skip


def launcher(asked: OnNodes, mpi: str) -> Launcher | None:
    """None where this is not asked for. Raises UserError for what cannot start ranks of one MPI, and where nobody says
    which cluster this is."""
    asked.check()
    if asked.launch is None:
        return None
    try:
        words = shlex.split(asked.launch)
    except ValueError as error:
        raise UserError(f"--launch: {asked.launch} is no command line ({error}). Check the quotes.") from None
    if not words:
        raise UserError("--launch is empty (it should start the ranks). Give a launcher, like 'srun --mpi=pmi2'.")
    mpis.executable(words[0])
    mpis.refuse_submission(words[0])
    kind = mpis.launcher_kind(words[0])
    if kind is None:
        raise UserError(f"--launch: {words[0]} is no launcher known here. Give an mpirun, or srun with its options.")
    if kind == mpis.SLURM:
        chosen = comparison.chosen_mpis(mpi)
        if len(chosen) > 1:
            raise UserError(
                "srun starts programs of any MPI, and a policy and a machine file are for one. Give --mpi openmpi or "
                "--mpi mpich."
            )
        kind = chosen[0]
    elif mpi not in (comparison.BOTH, kind):
        raise UserError(f"{words[0]} belongs to {mpis.TITLES[kind]}, not to what --mpi says. Leave --mpi out.")
    named = cluster_files.checked(asked.cluster, "--cluster") if asked.cluster else cluster_files.name()
    if named is None:
        raise UserError("Nothing says which cluster this is (what is found is kept by its name). Give --cluster NAME.")
    checks.core_list(asked.cores)
    if (own_rank.job_size() or 1) > 1:
        raise UserError(
            "This was started once for each rank (it starts MPI jobs itself). Run it once, in the job's script, and "
            "put the launcher into --launch."
        )
    if mpis.launcher_kind(words[0]) == mpis.SLURM and "--overlap" not in words and in_step(os.environ):
        raise UserError(
            "This runs inside a step of the job (its srun would wait for the cores that the step has). Run it in the "
            "job's script itself, or put --overlap into --launch."
        )
    return Launcher(tuple(words), kind, named, asked.cores, asked.share)


def in_step(environ: Mapping[str, str]) -> bool:
    """Whether srun has started us; a batch script or an interactive shell is a step of another sort."""
    step = environ.get("SLURM_STEP_ID", "")
    return step.isdigit() and int(step) < SPECIAL_STEPS


@dataclass
class AllocationPlace:
    """Two nodes or more, all of one kind, with as many ranks on each."""

    launcher: Launcher
    command: list[str]
    nodes: list[str]
    ppn: int
    facts: dict  # of the first rank's node, with what was measured there
    timeout_s: float = comparison.RUN_TIMEOUT_S

    def run(self, mpi: str, argv: Sequence[str], offload: bool, env: Mapping[str, str]) -> Completed:
        del mpi  # there is one
        with handover.folder() as folder, statistics.private_file(folder) as stats_file:
            chosen = dict(env)
            if offload:
                options = OffloadOptions(
                    policy=env.get("OFFPATH_POLICY"), policy_file=policy_table.NO_FILE, cores=self.launcher.cores,
                    share=self.launcher.share, stats_file=stats_file,
                )  # fmt: skip
                chosen |= injection.variables(options, paths())
                chosen.pop(policy_table.FILE_VARIABLE, None)
            result = _run(self.launcher.mpi, [*self.command, *argv], chosen, self.timeout_s)
            result.stats = statistics.read(stats_file)
        result.raise_if_interrupted()
        return result

    @property
    def meta(self) -> dict:
        return {
            "place": "allocation",
            "hardware": f"cluster {self.launcher.cluster}",
            "launch": shlex.join(self.command),
            "nodes": len(self.nodes),
            "node_names": self.nodes,
            "ppn": self.ppn,
            "cores": [self.facts["allowed"]],
            "cores_available": len(self.facts["allowed"]),
            "processor": self.facts["processor"],
            "machine": self.facts["arch"],
            "shared_cores": self.launcher.share,
            "rate": None,
            "rate_bits_per_s": None,
        }


def place(chosen: Launcher, nodes: int = 2, ppn: int = 1, measure: Sequence[str] = ()) -> AllocationPlace:
    """Looks at the nodes first. Raises UserError where nothing could be measured, or nothing that holds elsewhere.
    `measure`: a program that the first rank runs; what it prints is facts["measured"]."""
    command = chosen.command(nodes, ppn)
    facts = look(chosen, command, measure)
    names, per_node = checked(facts)
    where = AllocationPlace(chosen, command, names, per_node, facts[0])
    try_mpi(where, len(facts))
    console.note(f"measuring on {len(names)} nodes of cluster {chosen.cluster}: {', '.join(names[:8])}")
    return where


def look(chosen: Launcher, command: Sequence[str], measure: Sequence[str] = (), tried: bool = False) -> list[dict]:
    """What the ranks say of their nodes, the first rank first. `tried`: also what can be done there. Raises UserError
    where nothing was started."""
    needed = [built(paths().service), built(paths().preload_library), paths().backend_library(chosen.mpi)]
    probe = [sys.executable, str(node_facts_file()), *(["--try"] if tried else measure), "--", *map(str, needed)]
    result = _run(chosen.mpi, [*command, *probe], {}, comparison.RUN_TIMEOUT_S)
    result.raise_if_interrupted()
    facts = facts_of(result.stdout or "")
    if result.returncode != 0 or not facts:
        raise UserError(
            f"{shlex.join(command)} did not start anything ({_said(result)}). Try: {shlex.join([*command, 'hostname'])}"
        )
    return sorted(facts, key=lambda each: each["rank"] if each["rank"] is not None else 1 << 30)


def facts_of(text: str) -> list[dict]:
    """What the ranks have said, whatever launchers put around it."""
    found = []
    for part in text.split(START)[1:]:
        with contextlib.suppress(json.JSONDecodeError):
            facts, _ = json.JSONDecoder().raw_decode(part)
            if isinstance(facts, dict) and {"rank", "node", "missing"} <= facts.keys():
                found.append(facts)
    return found


def checked(facts: Sequence[dict]) -> tuple[list[str], int]:
    """The nodes' names and how many ranks each has. Raises UserError unless they are fit to be measured on."""
    ranks = Counter(each["node"] for each in facts)
    for each in facts:
        if each["missing"]:
            raise UserError(
                f"{each['missing'][0]} is not on node {each['node']} (all nodes need it). Install Offpath on all nodes "
                "under the same path."
            )
    if len(ranks) < 2:
        raise UserError(
            f"All {len(facts)} ranks are on node {facts[0]['node']} (nothing would cross the network). Ask for two "
            "nodes or more, and for one rank on each."
        )
    kinds = Counter(tuple(each[field] for field in KIND) for each in facts)
    if len(kinds) > 1:
        said = "; ".join(f"{arch}, {processor}, {cores} cores" for arch, processor, cores in kinds)
        raise UserError(
            f"The nodes are of different kinds ({said}), and what is found would hold for none. Ask for nodes of one "
            "kind (Slurm: --constraint)."
        )
    if len(set(ranks.values())) > 1:
        raise UserError(
            f"The nodes have {min(ranks.values())} to {max(ranks.values())} ranks. Ask for as many on each node."
        )
    return sorted(ranks), max(ranks.values())


def try_mpi(where: AllocationPlace, ranks: int) -> None:
    """Whether what is started so becomes one MPI job, and whether we see what its first rank writes."""
    program = str(paths().bench_program("collectives", where.launcher.mpi))
    with handover.folder() as folder:
        argv = [program, "--collective", "ialltoall", "--repeats", "1", "--sizes", "1024", "--json"]
        result = where.run(where.launcher.mpi, [*argv, str(folder / "out.json")], False, {})
        written = files.json_if_any(folder / "out.json")
        found = written and written["rows"][0]["ranks"]
    if result.returncode != 0:
        raise UserError(f"An MPI program does not run there ({_said(result)}). {_pmi_advice(where.launcher)}")
    if found is None:
        raise UserError(
            f"The nodes do not write where we read, in {Path.cwd()} (results come that way). Start it in a folder that "
            "all nodes share."
        )
    if found > ranks:
        raise UserError(
            f"Of {found} ranks only {ranks} were understood (something breaks their lines up). Have the launcher print "
            "whole lines, and nothing between."
        )
    if found != ranks:
        raise UserError(
            f"{ranks} processes were jobs of {found} rank each (they do not find each other). "
            f"{_pmi_advice(where.launcher)}"
        )


def _pmi_advice(chosen: Launcher) -> str:
    if mpis.launcher_kind(chosen.words[0]) == mpis.SLURM:
        return f"Try srun --mpi={PMI[chosen.mpi]}; srun --mpi=list shows what there is."
    return f"Is {chosen.words[0]} the one of the MPI that Offpath was built with?"


def _run(mpi: str, argv: Sequence[str], chosen: Mapping[str, str], timeout_s: float) -> Completed:
    command, extra = injection.with_variables(argv, chosen)
    environment = os.environ | local.native_environment(mpi, crowded=False) | extra
    try:
        return processes.run(command, environment, timeout=timeout_s)
    except subprocess.TimeoutExpired:
        raise UserError(
            f"{command[0]} did not end within {timeout_s:.0f} s (are the nodes free?). Try again."
        ) from None


def _said(result: Completed) -> str:
    return f"{comparison.last_words(result.said)}; exit {result.exit_status}"


def node_facts_file() -> Path:
    return Path(__file__).parent / "node_facts.py"
