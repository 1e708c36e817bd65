#%Module1.0
# SPDX-License-Identifier: BSD-3-Clause
# Environment Modules: copy to MODULEPATH/offpath/0.2.0 and correct the first line. Lmod reads it, too.
set prefix /opt/offpath

proc ModulesHelp {} {
    puts stderr "Offpath moves a parallel program's communication while the program computes: offpath run -- mpirun ..."
}
module-whatis "communication done by a service beside the program"
conflict offpath
prepend-path PATH $prefix/bin
prepend-path MANPATH $prefix/share/man
append-path MANPATH ""  ;# the system's pages stay
prepend-path CMAKE_PREFIX_PATH $prefix
prepend-path PKG_CONFIG_PATH $prefix/lib/pkgconfig
