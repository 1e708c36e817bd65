# SPDX-License-Identifier: BSD-3-Clause
"""What offloading gains on this machine, measured: benchmarks, the demo, tuning."""
