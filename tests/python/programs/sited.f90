! SPDX-License-Identifier: BSD-3-Clause
! Calls through the wrappers of the MPI library for Fortran, from a subroutine, in a region. With "use mpi" of Open
! MPI, gfortran gives some calls the line of that statement.
subroutine transpose_all(to, from, n)
  use offpath_region
  implicit none
  include "mpif.h"
  integer, intent(in) :: n
  double precision, intent(inout) :: to(n), from(n)
  integer :: request, ranks, error, status(MPI_STATUS_SIZE)
  call region_begin("transpose")
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, error)
  call MPI_Ialltoall(to, n / ranks, MPI_DOUBLE_PRECISION, from, n / ranks, MPI_DOUBLE_PRECISION, &
                     MPI_COMM_WORLD, request, error) ! site: post
  call MPI_Wait(request, status, error) ! site: wait
  call region_end("transpose")
end subroutine transpose_all

program sited
  implicit none
  include "mpif.h"
  integer, parameter :: n = 524288
  double precision, allocatable :: to(:), from(:)
  integer :: error, i
  call MPI_Init(error)
  allocate(to(n), from(n))
  to = 1
  do i = 1, 3
    call transpose_all(to, from, n)
  end do
  call MPI_Barrier(MPI_COMM_WORLD, error) ! site: barrier
  call MPI_Finalize(error)
end program sited
