# SPDX-License-Identifier: BSD-3-Clause
"""The one exception for everything a user can put right, and the words for what could not be written."""

from __future__ import annotations

import errno
import os

DISK_FULL = "disk full"


class UserError(Exception):
    """Something the user can put right; the command line prints it as one line and ends with `exit_code`.

    The message reads "problem (why it matters). What to do".
    """

    def __init__(self, message: str, exit_code: int = 2):
        super().__init__(message)
        self.exit_code = exit_code


def write_error(number: int | None) -> str:
    """Of an errno."""
    return DISK_FULL if number in (errno.ENOSPC, errno.EDQUOT) else os.strerror(number or 0)
