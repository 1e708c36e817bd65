# SPDX-License-Identifier: BSD-3-Clause
"""Devices: what `#pragma omp target` regions run on, and the standing services that provide them."""
