# SPDX-License-Identifier: BSD-3-Clause
"""What users run programs with: `offpath run`, and what it would use."""
