# SPDX-License-Identifier: BSD-3-Clause
"""How the processes of a program find each other: who they are, by their launcher, and a store to exchange addresses
in."""
