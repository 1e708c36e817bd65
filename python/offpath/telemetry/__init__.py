# SPDX-License-Identifier: BSD-3-Clause
"""What a run did operation by operation: its recording, and the views of it (docs/design/0011-telemetry.md)."""
