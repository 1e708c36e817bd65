# SPDX-License-Identifier: BSD-3-Clause
"""Measures what a link of a lab carries: a plain socket transfer from one place to another.

Run as `python -m offpath.lab.transfer serve ADDRESS` (prints the port, then the rate it saw) and
`... send ADDRESS PORT BYTES`.
"""

import socket
import subprocess
import sys
import time

from offpath.base.errors import UserError
from offpath.lab.cluster import Lab

BLOCK_BYTES = 1 << 20
DURATION_S = 2.0
# The rate of the first moments is that of the limiter's burst and the socket's buffers, not of the link.
WARM_UP_S = 0.3


def measure(lab: Lab, sender: str, receiver: str) -> float:
    """Bits of payload per second that arrive at `receiver`."""
    total = max(int(lab.plan.rate_bits_per_s / 8 * DURATION_S), 4 * BLOCK_BYTES)
    module = [sys.executable, "-m", "offpath.lab.transfer"]
    server = subprocess.Popen(
        lab.inside(receiver, [*module, "serve", receiver]), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        port = server.stdout.readline().strip()
        subprocess.run(
            lab.inside(sender, [*module, "send", receiver, port, str(total)]), capture_output=True, timeout=120
        )
        answer, problem = server.communicate(timeout=30)
        return float(answer)
    except (ValueError, subprocess.TimeoutExpired):
        raise UserError(f"The link from {sender} to {receiver} carries nothing. Run: offpath lab down") from None
    finally:
        server.kill()
        server.communicate()


def serve(address: str) -> None:
    with socket.create_server((address, 0)) as listener:
        listener.settimeout(30)
        print(listener.getsockname()[1], flush=True)
        connection, _ = listener.accept()
        buffer = bytearray(BLOCK_BYTES)
        start = last = time.monotonic()
        counted_from, received, before = None, 0, 0
        while count := connection.recv_into(buffer):
            last = time.monotonic()
            received += count
            if counted_from is None and last - start > WARM_UP_S:
                counted_from, before = last, received
        if counted_from is None or last <= counted_from:
            counted_from, before = start, 0
        print((received - before) * 8 / (last - counted_from))


def send(address: str, port: str, total: str) -> None:
    block = bytes(BLOCK_BYTES)
    left = int(total)
    with socket.create_connection((address, int(port)), timeout=30) as connection:
        while left > 0:
            connection.sendall(block[: min(left, BLOCK_BYTES)])
            left -= BLOCK_BYTES


if __name__ == "__main__":
    {"serve": serve, "send": send}[sys.argv[1]](*sys.argv[2:])
