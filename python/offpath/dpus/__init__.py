# SPDX-License-Identifier: BSD-3-Clause
"""DPUs that are other machines: the one list of them, how a job gets it, and what is wrong with them."""
