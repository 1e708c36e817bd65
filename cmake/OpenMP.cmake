# Programs with target regions, compiled by offpath-cc of this build. Where clang 14 or its OpenMP is missing they are left
# out; where Arm's linker is missing they have code for x86_64 alone.
find_program(OFFPATH_CLANG clang-14)
find_program(OFFPATH_OFFLOAD_WRAPPER clang-offload-wrapper PATHS /usr/lib/llvm-14/bin NO_DEFAULT_PATH)
find_library(OFFPATH_OMPTARGET omptarget PATHS /usr/lib/llvm-14/lib NO_DEFAULT_PATH)
find_program(OFFPATH_ARM_LINKER aarch64-linux-gnu-ld)
set(OFFPATH_OPENMP_TARGETS x86_64-pc-linux-gnu)
if(OFFPATH_ARM_LINKER)
  string(APPEND OFFPATH_OPENMP_TARGETS ,aarch64-unknown-linux)
endif()
if(NOT OFFPATH_CLANG OR NOT OFFPATH_OFFLOAD_WRAPPER OR NOT OFFPATH_OMPTARGET)
  message(STATUS "Programs with target regions: not built (clang-14, clang-tools-14 and libomp-14-dev are needed)")
endif()

# offpath_openmp_program(<kind> <name> <C sources>... [FLAGS ...]): <build>/<kind>/openmp/<name>, installed as MPI programs are.
function(offpath_openmp_program kind name)
  if(NOT OFFPATH_CLANG OR NOT OFFPATH_OFFLOAD_WRAPPER OR NOT OFFPATH_OMPTARGET)
    return()
  endif()
  cmake_parse_arguments(ARG "" "" "FLAGS" ${ARGN})
  list(TRANSFORM ARG_UNPARSED_ARGUMENTS PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/)
  set(program ${CMAKE_BINARY_DIR}/${kind}/openmp/${name})
  set(compiler ${CMAKE_BINARY_DIR}/bin/offpath-cc)
  add_custom_command(OUTPUT ${program}
    COMMAND ${CMAKE_COMMAND} -E make_directory ${CMAKE_BINARY_DIR}/${kind}/openmp
    COMMAND ${compiler} -O2 -Wall -Wextra -fopenmp-targets=${OFFPATH_OPENMP_TARGETS} ${ARG_UNPARSED_ARGUMENTS} ${ARG_FLAGS}
            -Wl,-rpath,$ORIGIN/../../../../lib -o ${program}
    DEPENDS ${ARG_UNPARSED_ARGUMENTS} ${compiler} ${CMAKE_BINARY_DIR}/libexec/offpath/compiler/ld
            offpath_openmp_x86_64 offpath_openmp_aarch64
    COMMENT "Building target regions of ${name}" VERBATIM)
  add_custom_target(${name}_openmp ALL DEPENDS ${program})
  install(PROGRAMS ${program} DESTINATION ${CMAKE_INSTALL_LIBEXECDIR}/offpath/${kind}/openmp)
  offpath_forget_build_tree(${kind}/openmp/${name})
endfunction()

# offpath_forget_build_tree(<path below libexec/offpath>): offpath-cc names the folder that it is in, here the build tree,
# where programs look for libraries; an installed one must not.
function(offpath_forget_build_tree path)
  install(CODE "file(RPATH_CHANGE
    FILE \$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_LIBEXECDIR}/offpath/${path}
    OLD_RPATH ${CMAKE_BINARY_DIR}/lib NEW_RPATH \\\$ORIGIN)")
endfunction()
