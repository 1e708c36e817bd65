# SPDX-License-Identifier: BSD-3-Clause
"""Cases of point-to-point messages. The service carries them between ranks of one node, too, where a row says so."""

import os
import signal
import subprocess

from setting import FORCED, Skipped, all_stopped, check, same, wait_for, wait_until

POLICY = "*:host,send:2K-inf:dpu"


def run(s, *arguments, ranks=2, policy=POLICY, program="messages", **changes):
    """Under the preload; with the numbers of each rank's messages."""
    other = s.offloaded(program, *arguments, ranks=ranks, OFFPATH_POLICY=policy, OFFPATH_STATS_FILE=s.stats, **changes)
    check(other.status == 0 and "WRONG" not in other.out and not other.warnings(), str(other))
    found = [line["messages"] for line in s.statistics()]
    return other, found


def all_arrived(found):
    """What was sent as tickets was received."""
    sent, received = (sum(one[key] for one in found) for key in ("offloaded_count", "received_count"))
    check(sent == received and all(one["failed_count"] == 0 for one in found), f"lost tickets, or failed: {found}")
    return sent


def messages(s):
    for ranks in (2, 3):
        other, found = run(s, ranks=ranks)
        same(s.native("messages", ranks=ranks), other)
        check(all_arrived(found) > 0 and all(one["offloaded_count"] > 0 for one in found), f"none went: {found}")
    # Whatever is said of room.
    for staging in (0, 4096, 1 << 46):
        _, found = run(s, OFFPATH_MPI_STAGING=str(staging))
        check(all_arrived(found) >= 0 and found[0]["staging_bytes"] <= staging, f"{staging}: {found}")
    # Without a row for it, and for other nodes only, nothing is touched.
    for policy in ("*:host,ialltoall:dpu", "*:dpu,send:2K-inf:nodes=2:dpu"):
        other, found = run(s, policy=policy)
        check(all(one["offloaded_count"] == 0 and one["staging_bytes"] == 0 for one in found), f"{policy}: {found}")


def messages_calls(s):
    for ranks in (2, 3):
        other, found = run(s, ranks=ranks, program="messages_calls")
        same(s.native("messages_calls", ranks=ranks), other)
        check(all(one["offloaded_count"] > 0 for one in found), f"none went: {found}")


def messages_errors_survived(s):
    """Also where the library gets some of it wrong: MPICH 5 says MPI_SUCCESS of what the program's handler was told."""
    native, other = s.native("messages_errors", ranks=2), s.offloaded("messages_errors", ranks=2, OFFPATH_POLICY=POLICY)
    check(native.status == other.status and "probed, way 7: " in other.out, f"natively {native}, preloaded {other}")


def messages_errors(s):
    """The library's error classes by the handlers that it calls, and no trace of what did not fit."""
    other, found = run(s, program="messages_errors")
    same(s.native("messages_errors", ranks=2), other)
    check(all(one["offloaded_count"] > 0 for one in found), f"none went: {found}")


def handlers(s):
    """Error handlers that call MPI, throw, or jump out of the call: called once, and nothing of ours stays held."""
    settings = {"OMPI_MCA_osc": "sm,pt2pt"}  # at MPI_THREAD_SINGLE, too
    native = s.native("handlers", ranks=2, **settings)
    check(native.status == 0 and "WRONG" not in native.out, str(native))
    other, found = run(s, program="handlers", policy="*:dpu,window:dpu,send:2K-inf:dpu", **settings)
    same(native, other)
    check(all(one["offloaded_count"] > 0 for one in found), f"none went: {found}")


def messages_large(s):
    """Calls of MPI 4, found at run time with any library; MPICH 4.0's own Isendrecv tells no status."""
    other, found = run(s, "all", program="messages_large")
    check(all_arrived(found) >= 2 * 60, f"few went: {other} {found}")


def messages_left(s):
    """What nobody receives takes no more room than was granted, and does not keep MPI_Finalize."""
    quiet = {"UCX_LOG_LEVEL": "error"}  # about what was not received, natively too
    other, found = run(s, program="messages_left", OFFPATH_MPI_STAGING=str(4 << 20), **quiet)
    same(s.native("messages_left", ranks=2, **quiet), other)
    for one in found:
        check(one["offloaded_count"] > 0 and one["native_count"] > 0 and one["staging_bytes"] <= 4 << 20, str(found))


def messages_room(s):
    """All of a halo exchange finds room, from the first one on; after a peak memory goes, and there is room again."""
    for ranks in (2, 3):
        other, found = run(s, ranks=ranks, program="messages_room")
        same(s.native("messages_room", ranks=ranks), other)
        check(all_arrived(found) == ranks * (2 * 8 * 6 + 8 + 24), f"some were native: {found}")
    # Columns that are not four times as long as the row says are native: packing them costs more than it brings.
    _, found = run(s, policy="*:host,send:256K-inf:dpu", program="messages_room")
    check(all_arrived(found) == 2 * (2 * 8 * 6 + 4 + 24), f"columns of 512 KiB went: {found}")
    _, found = run(s, str(7 << 20), program="messages_room", OFFPATH_MPI_STAGING=str(8 << 20))
    check(all_arrived(found) > 0, f"none of the longest went: {found}")
    check(all(one["staging_bytes"] <= 8 << 20 for one in found), f"more memory than is to be used: {found}")


def messages_probed(s):
    """A thread that only probes takes nothing away from one that receives: order is kept, and nothing hangs."""
    other, found = run(s, program="messages_probed")
    same(s.native("messages_probed", ranks=2), other)
    check(all(one["offloaded_count"] > 0 and one["failed_count"] == 0 for one in found), f"none went: {found}")


def messages_synchronous(s):
    """A synchronous send is complete when a receive has matched it, not when a probe has."""
    for ranks in (2, 4):
        other, found = run(s, ranks=ranks, program="messages_synchronous")
        same(s.native("messages_synchronous", ranks=ranks), other)
        check(all(one["offloaded_count"] > 0 for one in found), f"none went: {found}")


def messages_queued(s):
    """Whatever call the sender blocks in, what the service had no room for goes on."""
    other, found = run(s, s.folder, program="messages_queued")
    same(s.native("messages_queued", s.folder, ranks=2), other)
    check(found[0]["offloaded_count"] > 16 * 1100, f"few went: {found}")


def messages_overlap(s):
    """Payloads move while the receiver, or the sender, is not in MPI: natively these programs do not end."""
    # In shared memory Open MPI completes no send before the receiver has looked, however short it is.
    _, found = run(s, "overlap", s.folder, OMPI_MCA_pml="ob1", OMPI_MCA_btl="tcp,self")
    check(all_arrived(found) > 0 and found[1]["ready_count"] > 0, f"no payload was there first: {found}")


# Each rank on a node of its own, by its host's name, with a service of its own.
APART = """rank=${OMPI_COMM_WORLD_RANK:-$PMI_RANK}
hostname "node$rank" && mkdir -p -m 700 "$0/$rank" || exit 1
export OFFPATH_RUNTIME_DIR="$0/$rank" OFFPATH_SERVICE_LOG="$0/service$rank.log"
exec "$@"
"""


def stopped_and_ended(s, ranks, program, *arguments, ended=None):
    """The service is stopped, so that all messages posted then are under way when it is ended. `ended`: each rank has
    one of its own, and loses it if it is among these."""
    changes = {**FORCED, "OFFPATH_POLICY": POLICY, "OFFPATH_STATS_FILE": s.stats,
               "OFFPATH_MPI_LOSS_TIMEOUT_MS": "600000"}
    if program == "lost_messages":
        changes["UCX_LOG_LEVEL"] = "error"  # about what it leaves unreceived, natively too
    command = [s.program(program), *arguments, s.folder]
    if ended is not None:
        command = ["unshare", "--uts", "sh", "-c", APART, s.folder, *command]
    with s.running(command, ranks, changes, s.library) as process:
        wait_for(f"{s.folder}/there")  # with room for all of them, from MPI_Init on
        folders = [s.folder] if ended is None else [f"{s.folder}/{rank}" for rank in range(ranks)]
        services = [pid for folder in folders for pid in s.service_pids(folder + "\0")]
        check(len(services) == len(folders), f"other services than one each: {services}")
        for service in services:
            os.kill(service, signal.SIGSTOP)
            wait_until(lambda: all_stopped(service), f"all threads of {service} are stopped")  # noqa: B023
        open(f"{s.folder}/stopped", "w").close()
        wait_for(f"{s.folder}/posted")
        for index, service in enumerate(services):
            os.kill(service, signal.SIGKILL if ended is None or index in ended else signal.SIGCONT)
        other = s.collect(process, 30)
    check(other.status == 0 and ": ok" in other.out and "WRONG" not in other.out, str(other))
    check("unexpected tag" not in other.err, f"words were left over: {other}")
    check(ended is not None or len(other.warnings()) == 1 and "service" in other.err, f"not one warning: {other}")
    found = [line["messages"] for line in s.statistics()]
    check(len(found) == ranks and any(one["offloaded_count"] > 0 for one in found), f"none went: {found}")
    for mark in ("there", "stopped", "posted"):
        os.unlink(f"{s.folder}/{mark}")
    return other, found


def lost_apart(s, program):
    """The service of one rank of three is lost, whatever that has to do with the messages."""
    if subprocess.run(["unshare", "--uts", "true"], capture_output=True).returncode != 0:
        raise Skipped("no nodes of their own for ranks here")
    for rank in range(3):
        stopped_and_ended(s, 3, program, ended=(rank,))


def messages_lost_apart(s):
    lost_apart(s, "lost_messages")


def messages_held_apart(s):
    lost_apart(s, "lost_held")


def messages_lost(s):
    other, _ = stopped_and_ended(s, 2, "messages", "lost")
    check(other.out.count(": ok") == 2, str(other))


def messages_lost_kinds(s):
    """Whatever is done with them: freed, persistent, of types that are gone, received too short, never received."""
    stopped_and_ended(s, 3, "lost_messages")
    stopped_and_ended(s, 3, "lost_messages", "leaving")


def messages_lost_held(s):
    """A synchronous send is complete when a receive has matched it, whoever tells its sender."""
    stopped_and_ended(s, 2, "lost_held")


def messages_lost_threads(s):
    stopped_and_ended(s, 2, "lost_threads")


def random_programs(s, seed, rounds, ranks, threads, staging, *shared):
    arguments = (str(seed), str(rounds), str(threads), *shared)
    other, found = run(s, *arguments, ranks=ranks, program="messages_random", OFFPATH_MPI_STAGING=str(staging))
    sent = all_arrived(found)  # with little room the first ones are native, which may be all
    check(sent > 0 or staging < 1 << 20, f"{ranks}: {other} {found}")
    check(all(one["staging_bytes"] <= staging for one in found), f"{ranks}: {other} {found}")


# Ranks, threads, bytes of room, whether threads share a communicator.
RANDOM = [(2, 1, 64 << 20), (3, 1, 600000), (2, 3, 64 << 20, "shared"), (3, 3, 600000)]


def messages_random(s):
    """Random programs, checked by MPI's rules; with little room, so that some messages go natively; and in threads."""
    for shape in RANDOM:
        random_programs(s, 1, 60, *shape)


def messages_random_long(s):
    for seed in range(2, 42):
        for shape in [*RANDOM, (3, 2, 64 << 20, "shared"), (4, 1, 3 << 20)]:
            random_programs(s, seed, 60, *shape)


def messages_solver(s):
    """A real code: its known solution is met, and its messages were offloaded."""
    program = os.path.join(s.build, "apps", s.mpi, "halo3d")
    other = s.run(
        [program, "--points", "48", "--sweeps", "40"],
        4,
        s.library,
        **{**FORCED, "OFFPATH_POLICY": POLICY, "OFFPATH_STATS_FILE": s.stats},
    )
    check(other.status == 0 and "verified: yes" in other.out and not other.warnings(), str(other))
    found = [line["messages"] for line in s.statistics()]
    check(all_arrived(found) > 0 and all(one["offloaded_count"] > 0 for one in found), f"none went: {found}")


def messages_fortran(s):
    for layer in ("mpifh", "use_mpi", "f08"):
        other, found = run(s, program=f"messages_fortran_{layer}")
        check("messages: ok" in other.out and all_arrived(found) > 0, f"{layer}: {other} {found}")


CASES = [messages, messages_calls, messages_errors, messages_errors_survived, handlers, messages_large, messages_left,
         messages_room, messages_probed, messages_synchronous, messages_queued, messages_overlap, messages_lost,
         messages_lost_kinds, messages_lost_held, messages_lost_threads, messages_lost_apart, messages_held_apart,
         messages_random, messages_random_long, messages_solver, messages_fortran]
