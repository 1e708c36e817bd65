# Which functions the headers of the MPIs found declare: a definition OFFPATH_MPI_HAS_X of target mpi_<mpi> for each. The version
# that a header names says little: Open MPI 5 calls itself MPI 3.1, and has much of 4.
include(CheckSymbolExists)
function(offpath_ask_mpi target)
  set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)  # nothing is linked
  get_target_property(CMAKE_REQUIRED_INCLUDES ${target} INTERFACE_INCLUDE_DIRECTORIES)
  set(CMAKE_REQUIRED_DEFINITIONS -DOMPI_SKIP_MPICXX -DMPICH_SKIP_MPICXX)
  set(CMAKE_REQUIRED_QUIET ON)
  foreach(question LARGE_COUNTS:MPI_Send_c PERSISTENT:MPI_Bcast_init ISENDRECV:MPI_Isendrecv
      REQUEST_STATUSES:MPI_Request_get_status_all)
    string(REPLACE ":" ";" question ${question})
    list(GET question 0 name)
    list(GET question 1 function)
    check_symbol_exists(${function} mpi.h ${target}_has_${name})
    if(${target}_has_${name})
      target_compile_definitions(${target} INTERFACE OFFPATH_MPI_HAS_${name})
    endif()
  endforeach()
endfunction()
foreach(mpi ${OFFPATH_MPIS})
  offpath_ask_mpi(mpi_${mpi})
endforeach()
