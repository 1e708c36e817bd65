# SPDX-License-Identifier: BSD-3-Clause
"""The Python interface to the service: what `import offpath` offers beyond the command line (docs/guide-python.md)."""
