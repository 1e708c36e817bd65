-- SPDX-License-Identifier: BSD-3-Clause
-- Lmod: copy to MODULEPATH/offpath/0.2.0.lua and correct the first line. Environment Modules: offpath.tcl.
local prefix = "/opt/offpath"

help([[Offpath moves a parallel program's communication while the program computes: offpath run -- mpirun ...]])
whatis("Name: offpath")
whatis("Description: communication done by a service beside the program")

prepend_path("PATH", pathJoin(prefix, "bin"))
prepend_path("MANPATH", pathJoin(prefix, "share/man"))
append_path("MANPATH", "") -- the system's pages stay
prepend_path("CMAKE_PREFIX_PATH", prefix)
prepend_path("PKG_CONFIG_PATH", pathJoin(prefix, "lib/pkgconfig"))
