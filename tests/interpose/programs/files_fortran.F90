! SPDX-License-Identifier: BSD-3-Clause
! Files through one of Fortran's three interfaces to MPI: compiled with LAYER 1 (mpif.h), 2 (use mpi), 3 (use mpi_f08).
#if LAYER == 3
#define HANDLE(name) type(name)
#define USE_MPI use mpi_f08
#define INCLUDE_MPI
#define STATUS(name) type(MPI_Status) :: name
#else
#define HANDLE(name) integer
#if LAYER == 2
#define USE_MPI use mpi
#define INCLUDE_MPI
#else
#define USE_MPI
#define INCLUDE_MPI include 'mpif.h'
#endif
#define STATUS(name) integer :: name(MPI_STATUS_SIZE)
#endif
program files
  USE_MPI
  implicit none
  INCLUDE_MPI
  integer, parameter :: n = 30000
  integer :: ierr, rank, ranks, next, i, elements, all_ok, mine
  HANDLE(MPI_File) :: file
  HANDLE(MPI_Request) :: request
  STATUS(status)
  integer(kind=MPI_OFFSET_KIND) :: offset, position
  integer, asynchronous :: send(n), recv(n)
  logical :: ok
  call mpi_init(ierr)
  call mpi_comm_rank(MPI_COMM_WORLD, rank, ierr)
  call mpi_comm_size(MPI_COMM_WORLD, ranks, ierr)
  next = mod(rank + 1, ranks)
  send = [(rank*1000003 + i, i=1, n)]
  ok = .true.
  call mpi_file_open(MPI_COMM_WORLD, 'fortran.dat', ior(MPI_MODE_CREATE, MPI_MODE_RDWR), MPI_INFO_NULL, file, ierr)
  offset = 4*int(n, MPI_OFFSET_KIND)*rank
  call mpi_file_iwrite_at(file, offset, send, n, MPI_INTEGER, request, ierr)
  call mpi_wait(request, status, ierr)
  call mpi_get_count(status, MPI_INTEGER, elements, ierr)
  ok = ok .and. elements == n
  call mpi_file_sync(file, ierr)
  call mpi_barrier(MPI_COMM_WORLD, ierr)
  call mpi_file_sync(file, ierr)
  recv = 0
  offset = 4*int(n, MPI_OFFSET_KIND)*next
  call mpi_file_iread_at(file, offset, recv, n, MPI_INTEGER, request, ierr)
  call mpi_wait(request, status, ierr)
  ok = ok .and. all(recv == [(next*1000003 + i, i=1, n)])
  ! Pointers and split collectives behind it.
  offset = 4*int(n, MPI_OFFSET_KIND)*(ranks + rank)
  call mpi_file_set_view(file, offset, MPI_INTEGER, MPI_INTEGER, 'native', MPI_INFO_NULL, ierr)
  call mpi_file_write_all_begin(file, send, n, MPI_INTEGER, ierr)
  call mpi_file_write_all_end(file, send, status, ierr)
  call mpi_get_count(status, MPI_INTEGER, elements, ierr)
  call mpi_file_get_position(file, position, ierr)
  ok = ok .and. elements == n .and. position == n
  call mpi_file_seek(file, 0_MPI_OFFSET_KIND, MPI_SEEK_SET, ierr)
  recv = 0
  call mpi_file_iread(file, recv, n, MPI_INTEGER, request, ierr)
  call mpi_wait(request, status, ierr)
  ok = ok .and. all(recv == send)
  call mpi_file_close(file, ierr)
  mine = merge(1, 0, ok)
  call mpi_reduce(mine, all_ok, 1, MPI_INTEGER, MPI_MIN, 0, MPI_COMM_WORLD, ierr)
  if (rank == 0) print '(a,l2)', 'files:', all_ok == 1
  call mpi_finalize(ierr)
end program
