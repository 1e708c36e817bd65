# SPDX-License-Identifier: BSD-3-Clause
"""The one exception for everything a user can put right."""


class UserError(Exception):
    """Something the user can put right; the command line prints it as one line and ends with `exit_code`.

    The message reads "problem (why it matters). What to do".
    """

    def __init__(self, message: str, exit_code: int = 2):
        super().__init__(message)
        self.exit_code = exit_code
