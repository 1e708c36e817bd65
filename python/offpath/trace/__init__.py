# SPDX-License-Identifier: BSD-3-Clause
"""What a run leaves behind, read and checked: recordings, profiles, and where in a program a call was made."""
