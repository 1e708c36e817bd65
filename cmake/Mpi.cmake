# Both MPIs side by side: targets mpi_openmpi and mpi_mpich with the C flags and libraries of each.
# Their wrapper compilers are asked, because CMake's FindMPI knows only one MPI per build tree.

set(OFFPATH_MPIS "")
function(offpath_find_mpi name compile_args link_args)
  find_program(OFFPATH_MPICC_${name} mpicc.${name})
  if(NOT OFFPATH_MPICC_${name})
    message(FATAL_ERROR "mpicc.${name} was not found (the front end is built for both Open MPI and MPICH). Run: make setup")
  endif()
  execute_process(COMMAND ${OFFPATH_MPICC_${name}} ${compile_args} OUTPUT_VARIABLE compile COMMAND_ERROR_IS_FATAL ANY)
  execute_process(COMMAND ${OFFPATH_MPICC_${name}} ${link_args} OUTPUT_VARIABLE link COMMAND_ERROR_IS_FATAL ANY)
  separate_arguments(compile UNIX_COMMAND "${compile}")
  separate_arguments(link UNIX_COMMAND "${link}")
  list(FILTER compile INCLUDE REGEX "^-I")
  list(FILTER link INCLUDE REGEX "^(-L|-l)")
  list(TRANSFORM compile REPLACE "^-I" "")
  add_library(mpi_${name} INTERFACE)
  target_include_directories(mpi_${name} SYSTEM INTERFACE ${compile})
  target_link_libraries(mpi_${name} INTERFACE ${link})
  set(OFFPATH_MPIS ${OFFPATH_MPIS} ${name} PARENT_SCOPE)
endfunction()
offpath_find_mpi(openmpi --showme:compile --showme:link)
offpath_find_mpi(mpich -compile_info -link_info)

# offpath_mpi_program(<kind> <name> <sources>... [LINK ...]): <build>/<kind>/<mpi>/<name> for each MPI.
function(offpath_mpi_program kind name)
  cmake_parse_arguments(ARG "" "" "LINK" ${ARGN})
  foreach(mpi ${OFFPATH_MPIS})
    add_executable(${name}_${mpi} ${ARG_UNPARSED_ARGUMENTS})
    target_link_libraries(${name}_${mpi} PRIVATE offpath_flags mpi_${mpi} ${ARG_LINK})
    set_target_properties(${name}_${mpi} PROPERTIES OUTPUT_NAME ${name}
      RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/${kind}/${mpi})
  endforeach()
endfunction()

# OpenSHMEM comes with Open MPI, which can be built without it.
find_program(OFFPATH_OSHCC oshcc)
if(OFFPATH_OSHCC)
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
