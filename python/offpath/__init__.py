# SPDX-License-Identifier: BSD-3-Clause
"""Offpath's command line and its Python parts: launching, the lab, benchmarks, reports."""

__version__ = "0.1.0"
