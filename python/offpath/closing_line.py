# SPDX-License-Identifier: BSD-3-Clause
"""The one line at the end of a run: what was offloaded, what was not and why, and what to try."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Sequence

from offpath import stats
from offpath.mpis import MPICH, OPENMPI, SLURM, STANDARD_ABI, TITLES, uses_standard_abi
from offpath.sizes import rough_size_text, saved_time, seconds
from offpath.stats import PETSC, total

STARVED = "Leave the service a core of its own (OFFPATH_SERVICE_CORES), or start fewer ranks than the node has cores"
PASSED = ("off", "communicator", "blocking")  # why a call came to no decision, as the library counts it


def closing_line(
    lines: Sequence[dict], launcher: str | None = None, started: int | None = None, command: Sequence[str] = ()
) -> str:
    """Of the ranks' lines. `launcher`: whose mpirun started them; `started`: how many it did, if that is known;
    `command`: what was run, which says more where there are no lines."""
    solvers = [line for line in lines if line.get("mpi") == PETSC]
    ranks = [line for line in lines if line.get("mpi") != PETSC]
    apart = _apart(ranks, launcher, started)
    if apart:
        return apart
    if not lines and any(uses_standard_abi(path) for path in map(shutil.which, command) if path):
        return f"all MPI calls were native ({STANDARD_ABI}). Build the program with mpicc of Open MPI or MPICH."
    if not lines:
        pmi = ", was started without the PMI that its MPI knows (srun --mpi=list)" if launcher == SLURM else ""
        return (
            f"no rank reported (the program does not use MPI, did not reach MPI_Finalize{pmi}, or its ranks do not see "
            "this folder). See: offpath run --help"
        )
    parts = []
    if ranks or not solvers:
        parts.append(_calls(ranks))
    parts += _windows(ranks) + _messages(ranks) + _solvers(solvers)
    parts += _moved(lines) + _compressed(lines)
    text = _who(ranks or solvers) + "; ".join(parts)
    failed = total(lines, "failed_count")
    text += f"; {failed} FAILED" if failed else ""
    lost = Counter((str(line["loss"]), str(line.get("cure", ""))) for line in lines if line.get("loss")).most_common(2)
    text += "".join(f"; {problem}" for (problem, _), _ in lost)
    starved = max((line.get("starved_ns", 0) for line in lines), default=0)
    text += f"; the service waited for a processor for {seconds(starved)}" if starved else ""
    hint = lost[0][0][1] if lost else STARVED if starved else "" if stats.offloaded_count(list(lines)) else _hint(ranks)
    return text + "." + (f" {hint}." if hint else "")


def _who(lines: Sequence[dict]) -> str:
    nodes = {line.get("node") for line in lines}
    mpi = lines[0].get("mpi", "")
    who = f"{_many(len(lines), 'rank')} on {_many(len(nodes), 'node')}"
    about = [TITLES.get(mpi, mpi)] if mpi else []
    about += [f"step {lines[0]['step']}"] if "step" in lines[0] else []  # several may write into one file
    return who + (f" ({', '.join(about)}): " if about else ": ")


def _calls(ranks: Sequence[dict]) -> str:
    """Collectives: seen, offloaded, native and why."""
    passed = _passed(ranks)
    offloaded, decided = total(ranks, "offloaded_count"), total(ranks, "native_count")
    native = decided + sum(passed.values())
    text = f"{_many(offloaded + native, 'call')} seen, {offloaded} offloaded"
    if offloaded:
        text += f" ({'; '.join([rough_size_text(total(ranks, 'offloaded_bytes')), *_most_offloaded(ranks)])})"
    text += f", {native} native"
    reasons = Counter(str(rank["reason"]).rstrip(".") for rank in ranks if rank.get("reason"))
    if reasons:
        return text + ": " + "; ".join(reason for reason, _ in reasons.most_common(3))
    forms = total([rank.get("why", {}) for rank in ranks], "form_count")
    why = {
        "by policy": decided - forms,
        "in forms that the service does not do, such as user-defined operators": forms,
        "blocking": passed["blocking"],
        "on communicators the policy leaves out": passed["communicator"],
    }
    said = [f"{count} {name}" for name, count in why.items() if count]
    return text + (f" ({', '.join(said)})" if said else "")


def _windows(ranks: Sequence[dict]) -> list[str]:
    windows = [rank["windows"] for rank in ranks if isinstance(rank.get("windows"), dict)]
    operations, native = total(windows, "operations_count"), total(windows, "native_count")
    natively = total(windows, "natively_count")
    if not operations and not native and not natively:
        return []
    text = f"{_many(operations, 'one-sided operation')} offloaded"
    text += f" ({rough_size_text(total(windows, 'operations_bytes'))})" if operations else ""
    text += f", {natively} native ({rough_size_text(total(windows, 'natively_bytes'))})" if natively else ""
    return [text + (f", {_many(native, 'window')} native" if native else "")]


def _messages(ranks: Sequence[dict]) -> list[str]:
    """Point-to-point messages that the policy gives to the service, and the memory they lay in."""
    messages = [rank["messages"] for rank in ranks if isinstance(rank.get("messages"), dict)]
    offloaded, native, failed = (total(messages, f"{name}_count") for name in ("offloaded", "native", "failed"))
    if not offloaded and not native:
        return []
    size, staging = (rough_size_text(total(messages, f"{name}_bytes")) for name in ("offloaded", "staging"))
    text = f"{_many(offloaded, 'message')} offloaded ({size} through {staging} of staging memory)"
    text += f", {native} native for want of room" if native else ""
    return [text + (f", {failed} FAILED" if failed else "")]


def _moved(lines: Sequence[dict]) -> list[str]:
    """Buffers that lie in shared memory, and what of the ranks' memory was used in place."""
    parts = [
        f"{_many(total(lines, f'{name}_count'), 'buffer')} {done} ({rough_size_text(total(lines, f'{name}_bytes'))})"
        for name, done in (("lent", "allocated"), ("moved", "moved"))
        if total(lines, f"{name}_count")
    ]
    used, copied = (rough_size_text(total(lines, f"{name}_bytes")) for name in ("in_place", "copied"))
    return [", ".join([*parts, f"{used} used in place", f"{copied} copied"])] if parts else []


def _compressed(lines: Sequence[dict]) -> list[str]:
    """What was saved on the wire."""
    plain, wire = total(lines, "coded_bytes"), total(lines, "wire_bytes")
    sampled, left = total(lines, "sampled_bytes"), total(lines, "sampled_left_bytes")
    if sampled:
        ratio = sampled / max(left, 1)
        text = f"compression would save {100 * (sampled - left) // sampled} % on the wire, by samples"
        # Whether that is worth the time depends on the link.
        return [text + (f" (in time: offpath plan PROFILE --compress lz4={ratio:.1f})" if ratio > 1.1 else "")]
    if not plain:
        return []
    saved = 100 * (plain - wire) // plain
    time = saved_time(total(lines, "saved_ns"))
    time = f"; {time}" if time else ""
    lost = max(line.get("largest_error", 0) for line in lines) if total(lines, "lossy_bytes") else 0
    text = f"{rough_size_text(plain)} went compressed as {rough_size_text(wire)} ({saved} % saved{time})"
    of_numbers = rough_size_text(total(lines, "lossy_bytes"))
    return [text + (f"; {of_numbers} of numbers lost at most {lost:.2g}" if lost else "")]


def _solvers(lines: Sequence[dict]) -> list[str]:
    if not lines:
        return []
    offloaded, native = total(lines, "offloaded_count"), total(lines, "native_count")
    text = f"PETSc solvers: {offloaded} vector steps offloaded, {native} native"
    why = next((str(line["reason"]).rstrip(".") for line in lines if line.get("reason")), "")
    return [text + (f": {why}" if native and why else "")]


def _apart(ranks: Sequence[dict], launcher: str | None, started: int | None) -> str | None:
    """Processes that were started together and do not know of each other."""
    alone = len(ranks) > 1 or (started or 1) > 1
    if not ranks or not alone or any(rank.get("size") != 1 for rank in ranks):
        return None
    count = max(len(ranks), started or 1)
    built = ranks[0].get("mpi", "")
    if built in (OPENMPI, MPICH) and launcher in (OPENMPI, MPICH) and built != launcher:
        cause = f"the program is built with {TITLES[built]}, and started by {TITLES[launcher]}"
        cure = f"Start it with {TITLES[built]}'s mpirun"
    else:
        cause = f"the launcher and the program's {TITLES.get(built, 'MPI')} do not find each other"
        cure = "Start it with the mpirun of its own MPI, or under Slurm with its PMI: srun --mpi=pmi2 or --mpi=pmix"
    return f"{count} processes ran as {count} jobs of one rank each: nothing was offloaded ({cause}). {cure}."


def _hint(ranks: Sequence[dict]) -> str:
    """What to try where nothing was offloaded; the reasons of the library say it themselves."""
    passed = _passed(ranks)
    if any("the policy offloads nothing on 1 node" in str(rank.get("reason", "")) for rank in ranks):
        return (
            "Within one node MPI copies through shared memory, and offloading does not pay by itself: run on several "
            'nodes, or try it with --policy "*:dpu"'
        )
    if any(rank.get("reason") for rank in ranks):
        return ""
    if total(ranks, "native_count"):
        return 'Sizes that pay: offpath info --policy; for this machine: offpath tune; all sizes: --policy "*:dpu"'
    if passed["blocking"]:
        return "Blocking calls are offloaded with --blocking all"
    return ""


def _passed(ranks: Sequence[dict]) -> Counter:
    counts = Counter({name: 0 for name in PASSED})
    for rank in ranks:
        counts.update({name: rank.get("passed", {}).get(f"{name}_count", 0) for name in PASSED})
    return counts


def _most_offloaded(ranks: Sequence[dict]) -> list[str]:
    """ "12 ialltoall, 4 iallreduce" as the only element; none if nothing is known of it."""
    counts = Counter({name: sums["offloaded_count"] for name, sums in stats.by_collective(list(ranks)).items()})
    named = [f"{count} {name}" for name, count in counts.most_common(3) if count]
    if not named:
        return []
    more = sum(1 for count in counts.values() if count) > len(named)
    return [", ".join(named) + (", ..." if more else "")]


def _many(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"
