# SPDX-License-Identifier: BSD-3-Clause
from offpath.cli.main import main

main()
