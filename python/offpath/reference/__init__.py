# SPDX-License-Identifier: BSD-3-Clause
"""What the definitions of the command line say of it: man pages, completion and the documents are made of that."""
