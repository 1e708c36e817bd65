# SPDX-License-Identifier: BSD-3-Clause
"""Starting MPI programs with Offpath on this machine: which MPI, what their environment needs, what they report."""
