# SPDX-License-Identifier: BSD-3-Clause
"""Who connects to what listens for others."""

import socket

import pytest


def assert_slow_one_is_sent_away(stranger: socket.socket, byte: bytes) -> None:
    """It says a byte now and then, and never who it is."""
    stranger.settimeout(0.5)
    for _ in range(20):
        try:
            stranger.sendall(byte)
            if stranger.recv(1000) == b"":
                return
        except socket.timeout:
            continue
        except OSError:
            return
    pytest.fail("who proves nothing stays")
