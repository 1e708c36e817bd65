# SPDX-License-Identifier: BSD-3-Clause
"""A program whose service is on another machine: a collective, a task with a long result, and an array that is
saved. Arguments: the job's token, a file to which the task adds a line. Prints what Offpath says of a failure; what
is wrong is an assertion."""

import os
import secrets
import sys

import numpy as np
import offpath

sys.path.insert(0, os.path.dirname(__file__))
import task_functions as functions

COUNT = 5000


def use(session, file, memory):
    x, y = memory[COUNT : 2 * COUNT], memory[3 * COUNT : 4 * COUNT]
    team = offpath.Team(session, secrets.token_bytes(16), 0, [session.address])
    offpath.save(file + ".npy", x).wait()  # by this process: the files are here
    assert (np.load(file + ".npy") == x).all(), "it has saved something else"
    team.allreduce(x, y)
    assert (y == x).all(), "it has received something else"
    said = session.task(functions.notes, file, 12000, inputs=[x], outputs=[y]).wait()
    assert said == b"x" * 12000 and (y == 2 * x).all(), "the task has something else"


def main():
    memory = np.arange(5.0 * COUNT)
    before = memory.copy()
    try:
        session = offpath.attach(bytes.fromhex(sys.argv[1]), node_only=True)
        try:
            use(session, sys.argv[2], memory)
        finally:
            session.close()
    except offpath.OffpathError as error:
        print(error)
    memory[3 * COUNT : 4 * COUNT] = before[3 * COUNT : 4 * COUNT]  # to be written to
    assert (memory == before).all(), "memory that was not to be written to has changed"


main()
