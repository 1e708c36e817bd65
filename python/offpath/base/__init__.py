# SPDX-License-Identifier: BSD-3-Clause
"""What everything else may stand on: errors, paths, processes, settings, and how numbers and tables are written."""
