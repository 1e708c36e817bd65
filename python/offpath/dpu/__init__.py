# SPDX-License-Identifier: BSD-3-Clause
"""DPUs that are other machines, and devices: their lists, their services, and what is wrong with them."""
