# SPDX-License-Identifier: BSD-3-Clause
"""Which words made-up counters of connections get."""

from types import SimpleNamespace

from offpath.telemetry import network

SECOND = 10**9


def words(**counted) -> list[str]:
    """Of a second in which that was counted."""
    zero = {
        "updated_ns": 0, "sent_bytes": 0, "segments_sent": 0, "segments_resent": 0, "sending_ns": 0, "no_room_ns": 0,
        "round_trip_ns": 200_000, "window_bytes": 0,
    }  # fmt: skip
    now = zero | {"updated_ns": SECOND} | counted
    return [text.split(":")[0] for text in network.verdict(SimpleNamespace(**zero), SimpleNamespace(**now))]


def test_a_calm_network_has_no_words():
    assert words() == []
    assert words(segments_sent=10_000, segments_resent=10, sending_ns=SECOND // 2, sent_bytes=10**8) == []


def test_a_few_segments_say_nothing():
    assert words(segments_sent=50, segments_resent=50, sending_ns=SECOND) == []


def test_losing_begins_at_one_percent():
    assert words(segments_sent=1000, segments_resent=9) == []
    assert words(segments_sent=1000, segments_resent=10, sending_ns=1) == ["losing"]


def test_bound_by_bandwidth_or_by_latency():
    busy = {"segments_sent": 1000, "sending_ns": SECOND}
    assert words(**busy, sent_bytes=10**8) == ["bandwidth-bound"]
    assert words(**busy, sent_bytes=10**7) == ["latency-bound"]


def test_receivers_without_room_are_no_matter_of_the_network():
    assert words(segments_sent=1000, sending_ns=SECOND, no_room_ns=SECOND * 3 // 4, sent_bytes=10**8) == ["no room"]


def test_incast_is_said_by_who_has_seen_it():
    assert words(window_bytes=114_688) == ["incast"]
