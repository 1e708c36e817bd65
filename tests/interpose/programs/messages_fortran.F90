! SPDX-License-Identifier: BSD-3-Clause
! Point-to-point messages through one of Fortran's three interfaces to MPI: compiled with LAYER 1 (mpif.h), 2 (use mpi),
! 3 (use mpi_f08).
#if LAYER == 3
#define HANDLE(name) type(name)
#define USE_MPI use mpi_f08
#define INCLUDE_MPI
#define STATUS(name) type(MPI_Status) :: name
#define STATUSES(name, n) type(MPI_Status) :: name(n)
#define SOURCE_OF(status) status%MPI_SOURCE
#define ONE_OF(statuses, i) statuses(i)
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
#define STATUSES(name, n) integer :: name(MPI_STATUS_SIZE, n)
#define SOURCE_OF(status) status(MPI_SOURCE)
#define ONE_OF(statuses, i) statuses(:, i)
#endif
program messages
  USE_MPI
  implicit none
  INCLUDE_MPI
  integer, parameter :: n = 20000
  integer :: ierr, rank, ranks, next, before, round, i, elements, wrong, in_all
  HANDLE(MPI_Request) :: requests(2), again(2)
  STATUS(status)
  STATUSES(statuses, 2)
  integer, asynchronous :: send(n), recv(n), once(n), more(n)
  logical :: ok, flag
  call mpi_init(ierr)
  call mpi_comm_rank(MPI_COMM_WORLD, rank, ierr)
  call mpi_comm_size(MPI_COMM_WORLD, ranks, ierr)
  next = mod(rank + 1, ranks)
  before = mod(rank + ranks - 1, ranks)
  ok = .true.
  call mpi_send_init(once, n, MPI_INTEGER, next, 3, MPI_COMM_WORLD, again(1), ierr)
  call mpi_recv_init(more, n, MPI_INTEGER, before, 3, MPI_COMM_WORLD, again(2), ierr)
  do round = 1, 5
    send = [(rank*1000003 + i*round, i=1, n)]
    recv = 0
    call mpi_irecv(recv, n, MPI_INTEGER, MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, requests(1), ierr)
    call mpi_isend(send, n - round, MPI_INTEGER, next, 1, MPI_COMM_WORLD, requests(2), ierr)
    call mpi_waitall(2, requests, statuses, ierr)
    call mpi_get_count(ONE_OF(statuses, 1), MPI_INTEGER, elements, ierr)
    ok = ok .and. elements == n - round .and. recv(n) == 0
    ok = ok .and. all(recv(1:n - round) == [(before*1000003 + i*round, i=1, n - round)])

    recv = 0
    call mpi_isend(send, n, MPI_INTEGER, next, 2, MPI_COMM_WORLD, requests(1), ierr)
    call mpi_probe(before, MPI_ANY_TAG, MPI_COMM_WORLD, status, ierr)
    call mpi_get_count(status, MPI_INTEGER, elements, ierr)
    ok = ok .and. elements == n .and. SOURCE_OF(status) == before
    call mpi_recv(recv, elements, MPI_INTEGER, before, 2, MPI_COMM_WORLD, status, ierr)
    call mpi_wait(requests(1), MPI_STATUS_IGNORE, ierr)
    ok = ok .and. all(recv == [(before*1000003 + i*round, i=1, n)])

    once = send
    more = 0
    call mpi_startall(2, again, ierr)
    flag = .false.
    do while (.not. flag)
      call mpi_testall(2, again, flag, MPI_STATUSES_IGNORE, ierr)
    end do
    ok = ok .and. all(more == recv)
    call mpi_barrier(MPI_COMM_WORLD, ierr)
  end do
  call mpi_request_free(again(1), ierr)
  call mpi_request_free(again(2), ierr)
  wrong = merge(0, 1, ok)
  call mpi_reduce(wrong, in_all, 1, MPI_INTEGER, MPI_SUM, 0, MPI_COMM_WORLD, ierr)
  if (rank == 0) print '(a)', merge('messages: ok   ', 'messages: WRONG', in_all == 0)
  call mpi_finalize(ierr)
end program messages
