# SPDX-License-Identifier: BSD-3-Clause
"""Says beforehand whether offloading pays: machine model, profiles, replay, and scale on paper."""
