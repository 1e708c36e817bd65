# SPDX-License-Identifier: BSD-3-Clause
"""Says beforehand whether offloading pays: machine model, profiles, replay, the law and scale on paper."""
