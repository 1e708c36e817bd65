# SPDX-License-Identifier: BSD-3-Clause
"""Pages with charts: what commands write for --html."""
