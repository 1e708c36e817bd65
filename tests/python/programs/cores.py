# SPDX-License-Identifier: BSD-3-Clause
"""A launcher of ranks that are bound, and such a rank: on which cores its service is, or why there is none.

cores.py ALLOWED RANK... each a list of cores; "+" in front of a rank: started when the one before has run for a while;
"/": below a shell.
"""

import os
import subprocess
import sys
import time

import offpath

TOKEN = b"cores of the ranks of one launch".ljust(32, b"!")


def bound(cores: str) -> None:
    os.sched_setaffinity(0, {int(core) for core in cores.split(",")})


def launch(allowed: str, ranks: list[str]) -> None:
    bound(allowed)
    started = []
    for number, cores in enumerate(ranks):
        if cores.startswith("+"):
            time.sleep(0.3)
        words = [sys.executable, __file__]
        if cores.startswith("/"):
            words = ["sh", "-c", f"{sys.executable} {__file__}; true"]
        variables = {"RANK": str(number), "LOCAL_WORLD_SIZE": str(len(ranks))} if len(ranks) > 1 else {}
        started.append(
            subprocess.Popen(
                words, env=os.environ | variables, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                preexec_fn=lambda cores=cores: bound(cores.strip("+/")),
            )
        )  # fmt: skip
    said = [process.stdout.readline() for process in started]
    for process in started:
        process.communicate("")
    print("".join(sorted(set(said))), end="")


def rank() -> None:
    try:
        session = offpath.attach(TOKEN, node_only=True)
    except offpath.NoServiceError as error:
        print(error, flush=True)
    else:
        with open(f"/proc/{session.counters()['service_pid']}/cmdline") as file:
            words = file.read().split("\0")
        print(words[words.index("--cores") + 1], flush=True)
    sys.stdin.read()


if len(sys.argv) > 1:
    launch(sys.argv[1], sys.argv[2:])
else:
    rank()
