# SPDX-License-Identifier: BSD-3-Clause
"""Where programs are measured: this machine, a lab, or the nodes of a user's job."""
