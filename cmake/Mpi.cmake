# The MPIs that are here, side by side: targets mpi_openmpi and mpi_mpich with the C flags and libraries of each.
# Their wrapper compilers are asked, because CMake's FindMPI knows only one MPI per build tree. Whichever is missing is
# left out, and that is said.

set(OFFPATH_MPIS "")
set(OFFPATH_FIRST_MPI "")  # of those whose mpicc is called just that; if none is, that which was found first
set(OFFPATH_TITLE_openmpi "Open MPI")
set(OFFPATH_TITLE_mpich "MPICH")

# The wrapper may be named by a variable (MPICC_OPENMPI, MPICC_MPICH), as Debian names both, or plainly `mpicc`, which
# then says itself whose it is; so does $CC, where a module sets it.
function(offpath_find_mpicc name compile_args variable)
  string(TOUPPER ${name} upper)
  set(candidates $ENV{MPICC_${upper}})
  if(NOT candidates)
    set(candidates mpicc.${name} mpicc $ENV{CC})
  endif()
  foreach(candidate ${candidates})
    find_program(found ${candidate} NO_CACHE)
    if(found)
      execute_process(COMMAND ${found} ${compile_args} OUTPUT_VARIABLE compile ERROR_QUIET RESULT_VARIABLE status)
      if(status EQUAL 0 AND NOT compile STREQUAL "")
        set(${variable} ${found} PARENT_SCOPE)
        return()
      endif()
    endif()
    unset(found)
  endforeach()
  if(DEFINED ENV{MPICC_${upper}})
    message(FATAL_ERROR "MPICC_${upper}=$ENV{MPICC_${upper}} is not a compiler of ${OFFPATH_TITLE_${name}} (nothing "
      "could be built for it). Name its mpicc, or leave the variable away")
  endif()
  set(${variable} "" PARENT_SCOPE)
endfunction()

function(offpath_find_mpi name compile_args link_args)
  offpath_find_mpicc(${name} ${compile_args} mpicc)
  if(NOT mpicc)
    string(TOUPPER ${name} upper)
    message(STATUS "${OFFPATH_TITLE_${name}}: not found, nothing is built for it (its mpicc can be named by MPICC_${upper})")
    return()
  endif()
  message(STATUS "${OFFPATH_TITLE_${name}}: ${mpicc}")
  execute_process(COMMAND ${mpicc} ${compile_args} OUTPUT_VARIABLE compile COMMAND_ERROR_IS_FATAL ANY)
  execute_process(COMMAND ${mpicc} ${link_args} OUTPUT_VARIABLE link COMMAND_ERROR_IS_FATAL ANY)
  separate_arguments(compile UNIX_COMMAND "${compile}")
  separate_arguments(link UNIX_COMMAND "${link}")
  list(FILTER compile INCLUDE REGEX "^-I")
  list(FILTER link INCLUDE REGEX "^(-L|-l)")
  list(TRANSFORM compile REPLACE "^-I" "")
  add_library(mpi_${name} INTERFACE)
  target_include_directories(mpi_${name} SYSTEM INTERFACE ${compile})
  target_link_libraries(mpi_${name} INTERFACE ${link})
  set(OFFPATH_MPIS ${OFFPATH_MPIS} ${name} PARENT_SCOPE)
  execute_process(COMMAND mpicc ${compile_args} OUTPUT_QUIET ERROR_QUIET RESULT_VARIABLE status)
  if(status EQUAL 0 OR OFFPATH_FIRST_MPI STREQUAL "")
    set(OFFPATH_FIRST_MPI ${name} PARENT_SCOPE)
  endif()
  # The Fortran wrapper has the C one's name and place.
  string(REGEX REPLACE "mpicc([^/]*)$" "mpif90\\1" fortran ${mpicc})
  if(NOT EXISTS ${fortran})
    set(fortran "")
  endif()
  set(OFFPATH_MPIF90_${name} "${fortran}" PARENT_SCOPE)
endfunction()
offpath_find_mpi(openmpi --showme:compile --showme:link)
offpath_find_mpi(mpich -compile_info -link_info)
if(OFFPATH_MPIS STREQUAL "")
  message(FATAL_ERROR "No MPI was found (the front end is built for Open MPI, MPICH or both). Run: make setup, load a "
    "module that brings mpicc, or name one: MPICC_OPENMPI=/path/mpicc or MPICC_MPICH=/path/mpicc")
endif()

# The standard's own ABI is spoken without any MPI: programs for it bring a library of whichever they like.
add_library(mpi_abi INTERFACE)
target_include_directories(mpi_abi SYSTEM INTERFACE ${PROJECT_SOURCE_DIR}/frontends/mpi/abi)
set(OFFPATH_MPI_ABIS ${OFFPATH_MPIS} abi)

# offpath_use_mpi_header(<target> <mpi>): compiled against <mpi>'s header, never linked to its functions. The C++
# bindings that MPI-3 removed stay out.
function(offpath_use_mpi_header target mpi)
  target_include_directories(${target} SYSTEM PRIVATE
    $<TARGET_PROPERTY:mpi_${mpi},INTERFACE_INCLUDE_DIRECTORIES>
    $<TARGET_PROPERTY:mpi_${mpi},INTERFACE_SYSTEM_INCLUDE_DIRECTORIES>)
  target_compile_definitions(${target} PRIVATE OMPI_SKIP_MPICXX MPICH_SKIP_MPICXX
    $<TARGET_PROPERTY:mpi_${mpi},INTERFACE_COMPILE_DEFINITIONS>)
endfunction()

# offpath_mpi_program(<kind> <name> <sources>... [LINK ...]): <build>/<kind>/<mpi>/<name> for each MPI. What is linked may have
# <mpi> in its name.
function(offpath_mpi_program kind name)
  cmake_parse_arguments(ARG "" "" "LINK" ${ARGN})
  foreach(mpi ${OFFPATH_MPIS})
    add_executable(${name}_${mpi} ${ARG_UNPARSED_ARGUMENTS})
    string(REPLACE "<mpi>" ${mpi} linked "${ARG_LINK}")
    target_link_libraries(${name}_${mpi} PRIVATE offpath_flags mpi_${mpi} ${linked})
    set_target_properties(${name}_${mpi} PROPERTIES OUTPUT_NAME ${name}
      RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/${kind}/${mpi})
    if(kind MATCHES "^(apps|bench)$")  # their files read the same headers, and are compiled for each MPI
      set_target_properties(${name}_${mpi} PROPERTIES UNITY_BUILD ON)
    endif()
  endforeach()
endfunction()

# OpenSHMEM comes with Open MPI, which can be built without it.
find_program(OFFPATH_OSHCC oshcc)
if(OFFPATH_OSHCC AND TARGET mpi_openmpi)
  add_library(shmem_openmpi INTERFACE)
  target_link_libraries(shmem_openmpi INTERFACE oshmem mpi_openmpi)
endif()

# offpath_shmem_program(<kind> <name> <sources>... [LINK ...]): <build>/<kind>/openmpi/<name>, installed beside the MPI
# programs; nothing where there is no OpenSHMEM.
function(offpath_shmem_program kind name)
  if(NOT TARGET shmem_openmpi)
    return()
  endif()
  cmake_parse_arguments(ARG "" "" "LINK" ${ARGN})
  add_executable(${name} ${ARG_UNPARSED_ARGUMENTS})
  target_link_libraries(${name} PRIVATE offpath_flags shmem_openmpi ${ARG_LINK})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/${kind}/openmpi)
  install(TARGETS ${name} RUNTIME DESTINATION ${CMAKE_INSTALL_LIBEXECDIR}/offpath/${kind}/openmpi)
endfunction()
