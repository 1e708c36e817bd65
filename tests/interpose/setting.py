# SPDX-License-Identifier: BSD-3-Clause
"""How the interposition tests run an MPI program, natively and under the preload, and compare what it did."""

import contextlib
import glob
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
FORCED = {"OFFPATH_POLICY": "*:dpu", "OFFPATH_SERVICE_SHARE": "1"}
SECONDS = 100
# Debian's, and one of PyPI's for the standard's ABI.
MPICHES = {"mpich": "mpirun.mpich", "mpich_abi": os.path.join(HERE, "../../.venv/mpich_abi/bin/mpirun")}
SEGMENTS = "/dev/shm/mpich_shm_*"  # the latter's, which it leaves when a rank ends without MPI_Finalize
# Open MPI of Debian 12 sums 8-bit types wrongly in vectors.
OPENMPI_CURES = ["--mca", "op", "^avx"]


class Wrong(Exception):
    pass


class Skipped(Exception):
    pass


def check(condition, text):
    if not condition:
        raise Wrong(text)


def wait_until(is_so, what, seconds=60):
    for _ in range(seconds * 100):
        if is_so():
            return
        time.sleep(0.01)
    raise Wrong(f"not so after {seconds} s: {what}")


def wait_for(path):
    wait_until(lambda: os.path.exists(path), f"{path} is there")


def all_stopped(process):
    """A signal stops the other threads when one has got to see it."""
    states = []
    for path in glob.glob(f"/proc/{process}/task/*/stat"):
        with open(path) as file:
            states.append(file.read().rsplit(")", 1)[1].split()[0])
    return all(state == "T" for state in states)


class Run:
    """What a program did."""

    def __init__(self, status, out, err):
        self.status, self.out = status, out
        # Others may take all processors for as long as they like: what is said then is right wherever it comes.
        lines = err.splitlines(keepends=True)
        self.starved = "".join(line for line in lines if "waits for a processor" in line)
        self.err = "".join(line for line in lines if "waits for a processor" not in line)

    def warnings(self):
        return [line for line in self.err.splitlines() if line.startswith("offpath ")]

    def __str__(self):
        return f"exit {self.status}\n--- stdout\n{self.out}\n--- stderr\n{self.err}{self.starved}"


def end_group(process):
    """Ends everything the process started: launchers leave their ranks behind when killed alone."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


class Setting:
    natives = {}
    polite = True  # ranks of MPICH that wait leave the core to others, also natively

    def __init__(self, options):
        self.build, self.mpi, self.kind = options.build, options.mpi, options.kind
        self.folder = tempfile.mkdtemp(prefix="offpath-interpose-")
        os.chmod(self.folder, 0o700)
        self.stats = f"{self.folder}/stats.json"
        self.segments = set(glob.glob(SEGMENTS))  # of others
        place = "tests/interpose/fake" if options.kind == "fake" else "lib"
        self.library = os.path.join(self.build, place, "liboffpath_mpi.so")

    def program(self, name, folder="tests/interpose"):
        path = os.path.join(self.build, folder, self.mpi, name)
        if not os.path.exists(path):
            raise Skipped(f"{path} was not built")
        return path

    def environment(self, changes):
        base = {k: v for k, v in os.environ.items() if not k.startswith("OFFPATH_") and k != "LD_PRELOAD"}
        # A folder of its own: a job that begins when another one of this user ends may find theirs gone.
        base.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
                    OMPI_MCA_orte_tmpdir_base=self.folder)
        changes = {"OFFPATH_RUNTIME_DIR": self.folder, "OFFPATH_SERVICE_LOG": f"{self.folder}/service.log", **changes}
        return base, changes

    def launch(self, command, ranks, changes, preload):
        base, changes = self.environment(changes)
        preloads = [preload] if preload else []
        if self.mpi in MPICHES and self.polite:  # or ranks take the time of whom they wait for
            preloads.append(os.path.join(self.build, "lib/liboffpath_yield.so"))
            changes["OFFPATH_LAB_YIELD"] = "1"
        if preloads:
            changes["LD_PRELOAD"] = ":".join(preloads)
        if self.mpi == "none":
            arguments = ["env", *[f"{k}={v}" for k, v in changes.items()], *command]
        elif self.mpi == "openmpi":
            arguments = ["mpirun.openmpi", "--oversubscribe", "--bind-to", "none", "--mca", "mpi_yield_when_idle", "1",
                         "--mca", "orte_abort_on_non_zero_status", "0", *OPENMPI_CURES, "-np", str(ranks)]
            for name, value in changes.items():
                arguments += ["-x", f"{name}={value}"]
            arguments += command
        else:
            arguments = [MPICHES[self.mpi], "-np", str(ranks)]
            for name, value in changes.items():
                arguments += ["-genv", name, value]
            arguments += command
        out = open(f"{self.folder}/out", "w")
        err = open(f"{self.folder}/err", "w")
        with out, err:
            return subprocess.Popen(arguments, stdout=out, stderr=err, stdin=subprocess.DEVNULL, env=base,
                                    start_new_session=True, cwd=self.folder)

    def collect(self, process, seconds=SECONDS):
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            end_group(process)
            raise Wrong(f"still running after {seconds} s\n{self.texts(-1)}") from None
        return self.texts(process.returncode)

    def texts(self, status):
        with open(f"{self.folder}/out") as out, open(f"{self.folder}/err") as err:
            return Run(status, out.read(), err.read())

    @contextlib.contextmanager
    def running(self, command, ranks, changes, preload=None):
        """Nothing of it is left afterwards."""
        process = self.launch(command, ranks, changes, preload)
        try:
            yield process
        finally:
            end_group(process)

    def run(self, command, ranks=4, preload=None, **changes):
        with self.running(command, ranks, changes, preload) as process:
            return self.collect(process)

    def native(self, name, *arguments, ranks=4, **changes):
        """What it does without us; the same run is not repeated for another case."""
        key = (self.mpi, name, arguments, ranks, tuple(sorted(changes.items())))
        if key not in self.natives:
            self.natives[key] = self.run([self.program(name), *arguments], ranks, None, **changes)
        return self.natives[key]

    def offloaded(self, name, *arguments, ranks=4, **changes):
        return self.run([self.program(name), *arguments], ranks, self.library, **{**FORCED, **changes})

    def statistics(self):
        """What the ranks of the last run have left there; another one begins with none."""
        with open(self.stats) as file:
            lines = [json.loads(line) for line in file]
        os.unlink(self.stats)
        return lines

    def service_pids(self, folder=None):
        """The services of this test."""
        return self.pids("offpathd", folder)

    def pids(self, name, folder=None):
        """Processes of that name, known by this test's runtime folder, or another one, in their environment."""
        found = []
        for path in glob.glob("/proc/[0-9]*/environ"):
            with contextlib.suppress(OSError):
                with open(path, "rb") as file:
                    if f"OFFPATH_RUNTIME_DIR={folder or self.folder}".encode() not in file.read():
                        continue
                pid = path.split("/")[2]
                with open(f"/proc/{pid}/comm") as file:
                    if file.read().strip() == name:
                        found.append(int(pid))
        return found

    def close(self):
        for pid in self.service_pids():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        shutil.rmtree(self.folder, ignore_errors=True)
        if self.mpi == "mpich_abi":
            for segment in set(glob.glob(SEGMENTS)) - self.segments:
                os.unlink(segment)


def run_cases(names, cases, new_setting):
    """Each in a setting of its own; a line each, with its time. Returns the exit status."""
    verdicts = []
    for name in names:
        setting, verdict, begin = new_setting(), "right", time.monotonic()
        try:
            cases[name](setting)
        except Wrong as wrong:
            verdict = f"WRONG: {wrong}"
        except Skipped as skipped:
            verdict = f"skipped: {skipped}"
        finally:
            setting.close()
        print(f"{name}: {verdict} ({time.monotonic() - begin:.1f} s)", flush=True)
        verdicts.append(verdict)
    if any(verdict.startswith("WRONG") for verdict in verdicts):
        return 1
    return 77 if all(verdict.startswith("skipped") for verdict in verdicts) else 0


def same(native, other):
    check(native.out == other.out and native.status == other.status,
          f"the preloaded run differs\n=== native: {native}\n=== preloaded: {other}")


def compare(setting, name, *arguments, ranks=4, all_native=False, **changes):
    native = setting.native(name, *arguments, ranks=ranks)
    check(native.status == 0, f"the native run failed: {native}")
    other = setting.offloaded(name, *arguments, ranks=ranks, OFFPATH_STATS_FILE=setting.stats, **changes)
    same(native, other)
    check(not other.warnings(), f"unexpected messages: {other}")
    other.stats = setting.statistics()
    for line in other.stats:
        check(all_native or (line["enabled"] and line["offloaded_count"] > 0 and line["failed_count"] == 0),
              f"nothing was offloaded: {line}")
        check(line["completed_count"] == line["offloaded_count"], f"not all completed: {line}")
    return other
