# SPDX-License-Identifier: BSD-3-Clause
from offpath.cli import main

main()
