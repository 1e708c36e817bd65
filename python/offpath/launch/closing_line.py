# SPDX-License-Identifier: BSD-3-Clause
"""The one line at the end of a run: what was offloaded, what was not and why, and what to try."""

from __future__ import annotations

import signal
from collections import Counter
from collections.abc import Sequence

from offpath.base import words
from offpath.base.sizes import rough_size_text, saved_time, seconds
from offpath.launch import stats
from offpath.launch.mpis import MPICH, OPENMPI, OPENSHMEM, SLURM, TITLES
from offpath.launch.stats import PETSC, total

STARVED = "Leave the service a core of its own (OFFPATH_SERVICE_CORES), or start fewer ranks than the node has cores"
LEAST_GAIN_NS, LEAST_GAIN_PART = 1_000_000_000, 0.05  # short runs are mostly their beginning and end
LEAST_WORTH_TUNING = 256 << 10  # alltoall.json: 1.38 there, 0.98 to 1.02 for 64 KiB
# Launchers have statuses of their own above 128.
SIGNALS = (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGABRT, signal.SIGBUS, signal.SIGFPE, signal.SIGKILL,
           signal.SIGSEGV, signal.SIGPIPE, signal.SIGTERM)  # fmt: skip
IRREGULAR = {row["name"] for row in words.rows("policy_rows") if row["size"] == "kBlock"}
PASSED = ("off", "communicator", "blocking")  # why a call came to no decision, as the library counts it


def closing_line(
    lines: Sequence[dict], launcher: str | None = None, started: int | None = None, status: int = 0
) -> str:
    """Of the ranks' lines. `launcher`: whose mpirun started them; `started`: how many it did, if that is known;
    `status`: how the command ended, which says more where there are no lines."""
    solvers = [line for line in lines if line.get("mpi") == PETSC]
    ranks = [line for line in lines if line.get("mpi") != PETSC]
    apart = _apart(ranks, launcher, started)
    if apart:
        return apart
    if not lines:
        pmi = ", was started without the PMI that its MPI knows (srun --mpi=list)" if launcher == SLURM else ""
        if status:
            said = "" if ended_by(status) else " See what it printed, such as too few slots."
            return f"{ending(status)}, and no rank reported (none reached MPI_Finalize{pmi}).{said}"
        return (
            f"no rank reported (the program does not call MPI_Init, did not reach MPI_Finalize{pmi}, or its ranks do "
            "not see this folder). See: offpath run --help"
        )
    parts = _calls(ranks) + _messages(ranks) + _windows(ranks) + _files(ranks) + _blocking(ranks) + _solvers(solvers)
    parts = (parts or ["nothing that Offpath knows was called"]) + _moved(lines) + _compressed(lines)
    text = _who(ranks or solvers) + "; ".join(parts)
    failed = total(lines, "failed_count")
    text += f"; {failed} FAILED" if failed else ""
    lost = Counter((str(line["loss"]), str(line.get("cure", ""))) for line in lines if line.get("loss")).most_common(2)
    text += "".join(f"; {problem}" for (problem, _), _ in lost)
    starved = max((line.get("starved_ns", 0) for line in lines), default=0)
    text += f"; the service waited for a processor for {seconds(starved)}" if starved else ""
    hint = lost[0][0][1] if lost else STARVED if starved else _hint(ranks)
    return text + "." + (f" {hint}." if hint else "")


def ending(status: int) -> str:
    """How a command ended, from its exit status as a shell has it."""
    signum = ended_by(status)
    return f"the command was ended by {signum.name}" if signum else f"the command ended with status {status}"


def ended_by(status: int) -> signal.Signals | None:
    return next((signum for signum in SIGNALS if status == 128 + signum), None)


def _who(lines: Sequence[dict]) -> str:
    nodes = {line.get("node") for line in lines}
    mpi = lines[0].get("mpi", "")
    who = f"{_many(len(lines), 'rank')} on {_many(len(nodes), 'node')}"
    about = [TITLES.get(mpi, mpi)] if mpi else []
    about += [f"step {lines[0]['step']}"] if "step" in lines[0] else []  # several may write into one file
    return who + (f" ({', '.join(about)}): " if about else ": ")


def _calls(ranks: Sequence[dict]) -> list[str]:
    """Collectives: seen, offloaded, native and why."""
    passed = _passed(ranks)
    offloaded, decided = total(ranks, "offloaded_count"), total(ranks, "native_count")
    passed["blocking"] += _seen(ranks, "blocking_collectives")
    native = decided + sum(passed.values())
    reasons = Counter(str(rank["reason"]).rstrip(".") for rank in ranks if rank.get("reason"))
    if not offloaded + native:
        return ["; ".join(reason for reason, _ in reasons.most_common(3))] if reasons else []
    kind = "operation" if ranks[0].get("mpi") == OPENSHMEM else "collective"  # puts and gets are among them
    text = f"{_many(offloaded + native, kind)}, {offloaded} offloaded"
    if offloaded:
        text += f" ({'; '.join([rough_size_text(total(ranks, 'offloaded_bytes')), *_most_offloaded(ranks)])})"
    text += f", {native} native"
    if reasons:
        return [text + ": " + "; ".join(reason for reason, _ in reasons.most_common(3))]
    forms = total([rank.get("why", {}) for rank in ranks], "form_count")
    longest = _longest_native(ranks)
    why = {
        "by policy" + (f" of up to {rough_size_text(longest)}" if longest else ""): decided - forms,
        "in forms that the service does not do, such as user-defined operators": forms,
        "blocking": passed["blocking"],
        "on communicators the policy leaves out": passed["communicator"],
    }
    return [_reasoned(text, {f"{count} {name}": count for name, count in why.items()})]


def _reasoned(text: str, why: dict[str, int]) -> str:
    """With those of the reasons that there are."""
    said = ", ".join(reason for reason, count in why.items() if count)
    return f"{text} ({said})" if said else text


def _windows(ranks: Sequence[dict]) -> list[str]:
    """One-sided operations. Those of windows that are not freed are not counted as offloaded."""
    windows = [rank["windows"] for rank in ranks if isinstance(rank.get("windows"), dict)]
    operations, elsewhere = total(windows, "operations_count"), total(windows, "elsewhere_count")
    natively, kept = total(windows, "natively_count"), total(windows, "native_count")
    if not operations + elsewhere + natively + kept:
        return []
    text = f"{_many(operations + elsewhere + natively, 'one-sided operation')}, {operations} offloaded"
    text += f" ({rough_size_text(total(windows, 'operations_bytes'))})" if operations else ""
    text += f", {elsewhere + natively} native" if elsewhere + natively else ""
    why = {f"{_many(kept, 'window')} native": kept, f"{natively} faster so, as measured": natively}
    return [_reasoned(text, why)]


def _messages(ranks: Sequence[dict]) -> list[str]:
    """Nonblocking point-to-point messages, and the memory that those lay in which the policy gave to the service."""
    messages = [rank["messages"] for rank in ranks if isinstance(rank.get("messages"), dict)]
    offloaded, no_room, failed = (total(messages, f"{name}_count") for name in ("offloaded", "native", "failed"))
    seen = max(_seen(ranks, "messages"), offloaded + no_room)
    if not seen:
        return []
    size, staging = (rough_size_text(total(messages, f"{name}_bytes")) for name in ("offloaded", "staging"))
    text = f"{_many(seen, 'message')}, {offloaded} offloaded"
    text += f" ({size} through {staging} of staging memory)" if offloaded else ""
    text += f", {seen - offloaded} native" if seen > offloaded else ""
    left = seen - offloaded - no_room
    long = max(_seen(ranks, "long_messages") - offloaded - no_room, 0)  # of those that are left
    short = left - long
    why = {
        f"{long} of 512 KiB or more": long if not offloaded else 0,
        f"{short} {'that the policy leaves out' if offloaded else 'shorter than 512 KiB'}": short,
        f"{no_room} for want of room": no_room,
    }
    return [_reasoned(text, why) + (f", {failed} FAILED" if failed else "")]


def _files(ranks: Sequence[dict]) -> list[str]:
    """Nonblocking and split collective transfers of files. There are none where the policy has no row for them."""
    files = [rank["files"] for rank in ranks if rank.get("files")]
    ways = [file.get(way, {}) for file in files for way in ("write", "read")]
    offloaded, native = total(ways, "offloaded_count"), total(ways, "native_count")
    if not offloaded + native:
        return []
    text = f"{_many(offloaded + native, 'file transfer')}, {offloaded} offloaded"
    text += f" ({rough_size_text(total(ways, 'offloaded_bytes'))})" if offloaded else ""
    text += f", {native} native" if native else ""
    again, failed, kept = (total(files, f"{name}_count") for name in ("again", "failed", "kept_native"))
    why = {f"{again} done again by their ranks": again, f"{_many(kept, 'file')} native": kept}
    return [_reasoned(text, why) + (f", {failed} FAILED" if failed else "")]


def _blocking(ranks: Sequence[dict]) -> list[str]:
    """What always stays native."""
    files = 0 if _files(ranks) else _seen(ranks, "files")
    counts = {"blocking message": _seen(ranks, "blocking_messages"), "file": files}
    said = [_many(count, name) for name, count in counts.items() if count]
    return [f"{' and '.join(said)} native"] if said else []


def _seen(ranks: Sequence[dict], kind: str) -> int:
    return total([rank.get("seen", {}) for rank in ranks], f"{kind}_count")


def _moved(lines: Sequence[dict]) -> list[str]:
    """Buffers that lie in shared memory, and what of the ranks' memory was used in place."""
    lent, moved = total(lines, "lent_count"), total(lines, "moved_count")
    parts = [f"{_many(lent, 'buffer')} allocated in turn"] if lent else []  # their sum would count memory again
    parts += [f"{_many(moved, 'buffer')} moved ({rough_size_text(total(lines, 'moved_bytes'))})"] if moved else []
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
    """One thing to try that has paid where it was measured (docs/figures/results), or what this run has measured; the
    reasons of the library say it themselves. Within one node little has (one-node.json); short collectives have where
    the network is slow to answer (krylov-latency.json). Of what was not measured, such as long blocking calls, nothing
    is said."""
    if any("the policy offloads nothing on 1 node" in str(rank.get("reason", "")) for rank in ranks):
        return "Within one node MPI copies through shared memory, and offloading seldom pays: run on several nodes"
    if any(rank.get("reason") for rank in ranks):
        return ""
    if stats.offloaded_count(list(ranks)):
        return _gain(ranks)
    longest = _longest_native(ranks)
    if longest >= LEAST_WORTH_TUNING:
        several = len({rank.get("node") for rank in ranks}) > 1
        where = "these nodes: offpath tune --launch" if several else "this machine: offpath tune"
        return f"To find out from which size on collectives pay on {where}"
    if longest:
        return "Collectives this short gained only over links with 1 ms of latency. Elsewhere leave them to the MPI"
    return ""


def _longest_native(ranks: Sequence[dict]) -> int:
    """Bytes of the longest collective that the policy left to the MPI; 0: not known. Of irregular ones nobody knows."""
    if any(counts["native_count"] for name, counts in stats.by_collective(list(ranks)).items() if name in IRREGULAR):
        return 0
    return max((rank.get("native_bytes_most", 0) for rank in ranks), default=0)


def _gain(ranks: Sequence[dict]) -> str:
    """What the program may gain if it gives the services more time, from what its ranks waited for them. No rank's run
    gets shorter than what it did beside waiting, nor than what it waited for; the last rank counts."""
    runs = [(rank["run_ns"], min(rank.get("wait_ns", 0), rank["run_ns"])) for rank in ranks if rank.get("run_ns")]
    longest = max((run for run, _ in runs), default=0)
    gain = longest - max((max(run - waited, waited) for run, waited in runs), default=0)
    if gain < max(LEAST_GAIN_NS, LEAST_GAIN_PART * longest):
        return ""
    counts = {
        "collective": total(ranks, "offloaded_count"),
        "message": total([rank.get("messages", {}) for rank in ranks], "offloaded_count"),
        "one-sided operation": total([rank.get("windows", {}) for rank in ranks], "operations_count"),
        "file transfer": total(
            [rank.get("files", {}).get(way, {}) for rank in ranks for way in ("write", "read")], "offloaded_count"
        ),
    }
    what = " and ".join(_many(count, name) for name, count in counts.items() if count)
    return (
        f"Up to {seconds(gain)} of {seconds(longest)} can be gained, as ranks waited for {what}: "
        "start them earlier, or compute more before the wait"
    )


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
