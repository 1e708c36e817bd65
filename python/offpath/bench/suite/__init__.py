# SPDX-License-Identifier: BSD-3-Clause
"""The benchmarks: each module is one, and is called as it is."""
