! SPDX-License-Identifier: BSD-3-Clause
! One-sided communication through one of Fortran's three interfaces to MPI: compiled with LAYER 1 (mpif.h), 2 (use mpi),
! 3 (use mpi_f08).
#if LAYER == 3
#define HANDLE(name) type(name)
#define USE_MPI use mpi_f08
#define INCLUDE_MPI
#define PLACE type(c_ptr)
#define POINTER_OF(place) place
#elif LAYER == 2
#define HANDLE(name) integer
#define USE_MPI use mpi
#define INCLUDE_MPI
#define PLACE type(c_ptr)
#define POINTER_OF(place) place
#else
#define HANDLE(name) integer
#define USE_MPI
#define INCLUDE_MPI include 'mpif.h'
#define PLACE integer(kind=MPI_ADDRESS_KIND)
#define POINTER_OF(place) transfer(place, c_null_ptr)
#endif
program one_sided
  use, intrinsic :: iso_c_binding
  USE_MPI
  implicit none
  INCLUDE_MPI
  integer, parameter :: n = 1000
  integer :: ierr, rank, ranks, i, next, before
  HANDLE(MPI_Win) :: win
  HANDLE(MPI_Request) :: request
  HANDLE(MPI_Group) :: everybody
  integer, asynchronous :: memory(n), send(n), recv(n), old(n)
  integer :: one, ticket, swapped, wanted, empty
  integer(kind=MPI_ADDRESS_KIND) :: bytes, at
  logical :: ok, flag
  PLACE :: place
  integer, pointer, asynchronous :: given(:), window(:)
  call mpi_init(ierr)
  call mpi_comm_rank(MPI_COMM_WORLD, rank, ierr)
  call mpi_comm_size(MPI_COMM_WORLD, ranks, ierr)
  call mpi_comm_group(MPI_COMM_WORLD, everybody, ierr)
  next = mod(rank + 1, ranks)
  before = mod(rank + ranks - 1, ranks)
  memory = 0
  bytes = 4*n
  at = 0
  ok = .true.
  call mpi_win_create(memory, bytes, 4, MPI_INFO_NULL, MPI_COMM_WORLD, win, ierr)

  send = [(rank*1000003 + i, i=1, n)]
  call mpi_win_fence(0, win, ierr)
  call mpi_put(send, n, MPI_INTEGER, next, at, n, MPI_INTEGER, win, ierr)
  call mpi_win_fence(0, win, ierr)
  ok = ok .and. all(memory == [(before*1000003 + i, i=1, n)])
  call mpi_get(recv, n, MPI_INTEGER, next, at, n, MPI_INTEGER, win, ierr)
  call mpi_win_fence(MPI_MODE_NOSUCCEED, win, ierr)
  ok = ok .and. all(recv == send)

  call mpi_win_post(everybody, 0, win, ierr)
  call mpi_win_start(everybody, 0, win, ierr)
  call mpi_accumulate(send, n, MPI_INTEGER, next, at, n, MPI_INTEGER, MPI_SUM, win, ierr)
  call mpi_win_complete(win, ierr)
  flag = .false.
  do while (.not. flag)
    call mpi_win_test(win, flag, ierr)
  end do
  ok = ok .and. all(memory == [(2*(before*1000003 + i), i=1, n)])
  call mpi_barrier(MPI_COMM_WORLD, ierr)

  call mpi_win_lock_all(0, win, ierr)
  call mpi_rget_accumulate(send, n, MPI_INTEGER, old, n, MPI_INTEGER, next, at, n, MPI_INTEGER, MPI_REPLACE, win, &
                           request, ierr)
  call mpi_wait(request, MPI_STATUS_IGNORE, ierr)
  ok = ok .and. all(old == 2*send)
  call mpi_win_flush(next, win, ierr)
  call mpi_win_flush_local_all(win, ierr)
  call mpi_win_unlock_all(win, ierr)
  call mpi_barrier(MPI_COMM_WORLD, ierr)
  ok = ok .and. all(memory == [(before*1000003 + i, i=1, n)])
  call mpi_barrier(MPI_COMM_WORLD, ierr)

  one = 1
  empty = send(2)
  wanted = -7
  call mpi_win_lock(MPI_LOCK_EXCLUSIVE, next, 0, win, ierr)
  call mpi_fetch_and_op(one, ticket, MPI_INTEGER, next, at, MPI_SUM, win, ierr)
  at = 1
  call mpi_compare_and_swap(wanted, empty, swapped, MPI_INTEGER, next, at, win, ierr)
  call mpi_win_unlock(next, win, ierr)
  call mpi_barrier(MPI_COMM_WORLD, ierr)
  ok = ok .and. ticket == send(1) .and. swapped == send(2)
  ok = ok .and. memory(1) == before*1000003 + 2 .and. memory(2) == -7
  call mpi_win_free(win, ierr)

  ! Memory from MPI.
  call mpi_alloc_mem(bytes + 4096, MPI_INFO_NULL, place, ierr)
  call c_f_pointer(POINTER_OF(place), given, [n])
  call mpi_win_allocate(bytes, 4, MPI_INFO_NULL, MPI_COMM_WORLD, place, win, ierr)
  call c_f_pointer(POINTER_OF(place), window, [n])
  given = send
  at = 0
  call mpi_win_fence(0, win, ierr)
  call mpi_put(given, n, MPI_INTEGER, next, at, n, MPI_INTEGER, win, ierr)
  call mpi_win_fence(0, win, ierr)
  ok = ok .and. all(window == [(before*1000003 + i, i=1, n)])
  call mpi_win_free(win, ierr)
  call mpi_free_mem(given, ierr)
  ok = ok .and. ierr == MPI_SUCCESS

  call mpi_allreduce(MPI_IN_PLACE, ok, 1, MPI_LOGICAL, MPI_LAND, MPI_COMM_WORLD, ierr)
  if (rank == 0) print '(a,l2)', 'one-sided fortran:', ok
  call mpi_finalize(ierr)
  if (.not. ok) stop 1
end program one_sided
