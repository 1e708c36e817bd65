# Builds for x86-64 with an older C library than this machine's, with what tools/setup-portable has made; of this machine's
# headers and libraries only those of its MPIs are used: back ends fit these and later ones.
set(portable ${CMAKE_CURRENT_LIST_DIR}/../.portable)
file(REAL_PATH ${portable} portable)
set(CMAKE_C_COMPILER ${portable}/bin/cc)
set(CMAKE_CXX_COMPILER ${portable}/bin/c++)
set(CMAKE_AR ${portable}/bin/ar)
set(CMAKE_RANLIB ${portable}/bin/ranlib)

set(CMAKE_FIND_ROOT_PATH ${portable}/root)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(ENV{PKG_CONFIG_LIBDIR} ${portable}/root/lib/pkgconfig)
