# SPDX-License-Identifier: BSD-3-Clause
"""This member's end of a team: whose it is, and how long it lives."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

from offpath.api.failures import ArgumentError, StateError
from offpath.api.library import library

if TYPE_CHECKING:
    from offpath.api.session import Session


class Membership:
    def __init__(self, session: Session, rank: int, size: int):
        self.session, self.rank, self.size = session, rank, size
        self.timeout: float | None = None
        self._handle = 0
        self._ended = False
        self._windows = 0  # open ones: they go before the team
        self._windows_made = 0

    def _used(self) -> Any:
        if not self._handle and not self.session.closed:
            raise StateError("the team is closed. Make another.")
        return self.session.in_use

    def _member(self, rank: int) -> int:
        rank = operator.index(rank)  # NumPy's, too
        if not 0 <= rank < self.size:
            raise ArgumentError(f"there is no member {rank} in a team of {self.size}. Name members from 0 on.")
        return rank

    def _window_closed(self) -> None:
        self._windows -= 1
        if self._ended:
            self._destroy()

    def _destroy(self) -> None:
        self._ended = True
        if self._windows:
            return  # the last one does
        handle, self._handle = self._handle, 0
        if handle and not self.session.closed:
            with self.session.in_use:
                library().offpath_team_destroy(handle)
