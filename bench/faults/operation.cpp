// SPDX-License-Identifier: BSD-3-Clause
#include "operation.hpp"

#include <algorithm>

#if defined(OPEN_MPI) && !defined(OFFPATH_MPI_HAS_PERSISTENT)  // Open MPI 4 calls them MPIX_
#include <mpi-ext.h>
#define INIT_OF(name) MPIX_##name##_init
#else
#define INIT_OF(name) MPI_##name##_init
#endif
// The nonblocking form, or the persistent one, which takes an info, too. What follows are the arguments up to there.
#define POST(Nonblocking, Persistent, ...)                                               \
  return choice_.persistent ? INIT_OF(Persistent)(__VA_ARGS__, MPI_INFO_NULL, &request_) \
                            : MPI_##Nonblocking(__VA_ARGS__, &request_)

namespace faults {
namespace {

constexpr int kStarts = 4;
constexpr std::uint32_t kUntouched = 0xdeadbeef;

bool reduces(Kind kind) {
  return kind == Kind::allreduce || kind == Kind::reduce || kind == Kind::reduce_scatter_block;
}

}  // namespace

Choice Choice::draw(std::mt19937& random, const std::vector<Kind>& kinds, int bytes, int ranks, bool persistent,
                    std::uint32_t number) {
  const auto below = [&random](int limit) { return int(random() % std::uint32_t(limit)); };
  const MPI_Op operations[] = {MPI_SUM, MPI_BXOR, MPI_MAX};
  Choice choice{};
  choice.kind = kinds[std::size_t(below(int(kinds.size())))];
  choice.number = number;
  // All orders of magnitude are as likely.
  int most = std::max(1, bytes / int(sizeof(std::uint32_t)) / ranks);
  for (int halvings = below(20); halvings > 0 && most > 1; --halvings) most /= 2;
  choice.count = most - below((most + 1) / 2);
  choice.root = below(ranks);
  choice.in_place = below(3) == 0 && (choice.kind == Kind::alltoall || choice.kind == Kind::allreduce);
  choice.spaced = below(4) == 0 && !reduces(choice.kind);
  choice.persistent = below(4) == 0 && persistent && !is_message(choice.kind);
  choice.operation = operations[below(3)];
  return choice;
}

int Operation::post(const Choice& choice, MPI_Comm comm, MPI_Datatype spaced) {
  under_way_ = true;
  int code = MPI_SUCCESS;
  if (starts_left_ > 0) {
    choice_.number = choice.number;
    fill();
  } else {
    choice_ = choice;
    code = begin(comm, choice.spaced ? spaced : MPI_UINT32_T);
  }
  if (code == MPI_SUCCESS && choice_.persistent) {
    --starts_left_;
    code = MPI_Start(&request_);
  }
  posted_ = code == MPI_SUCCESS;
  return code;
}

int Operation::begin(MPI_Comm comm, MPI_Datatype type) {
  MPI_Comm_rank(comm, &rank_);
  MPI_Comm_size(comm, &ranks_);
  first_number_ = choice_.number;
  send_counts_.clear();
  receive_counts_.clear();
  displacements_.clear();
  for (int peer = 0; peer < ranks_; ++peer) {
    send_counts_.push_back(length(rank_, peer));
    receive_counts_.push_back(length(peer, rank_));
    displacements_.push_back(peer * choice_.count);
  }
  fill();
  request_ = MPI_REQUEST_NULL;
  starts_left_ = choice_.persistent ? kStarts : 0;
  return call(comm, type);
}

// Of two long ranges, some: services copy these together.
int Operation::exchange(MPI_Comm comm, MPI_Datatype type) {
  const int all = choice_.count * ranks_, to = (rank_ + ranks_ - choice_.root) % ranks_;
  const bool has_halves = choice_.number % 3 == 0 && all % 2 == 0;
  const auto send = choice_.kind == Kind::synchronous_send ? MPI_Issend : MPI_Isend;
  MPI_Datatype sent = type;
  int code = MPI_SUCCESS;
  comm_ = comm, type_ = type;
  if (choice_.kind != Kind::probe) code = MPI_Irecv(receive_.data(), all, type, source(), tag(), comm, &request_);
  if (code != MPI_SUCCESS) return code;
  if (has_halves) MPI_Type_vector(2, all / 2, all / 2, type, &sent), MPI_Type_commit(&sent);
  code = send(send_.data(), has_halves ? 1 : all, sent, to, tag(), comm, &sent_);
  if (has_halves) MPI_Type_free(&sent);
  return code;
}

int Operation::receive() {
  MPI_Status status;
  if (!posted_ || choice_.kind != Kind::probe) return MPI_SUCCESS;
  const int code = MPI_Probe(source(), tag(), comm_, &status);
  if (code != MPI_SUCCESS) return code;
  return MPI_Recv(receive_.data(), choice_.count * ranks_, type_, source(), tag(), comm_, &status);
}

int Operation::end_sending() { return MPI_Wait(&sent_, MPI_STATUS_IGNORE); }

void Operation::end() {
  under_way_ = false;
  if (starts_left_ == 0) close();
}

void Operation::close() {
  starts_left_ = 0;
  if (choice_.persistent && request_ != MPI_REQUEST_NULL) MPI_Request_free(&request_);
}

// The memory of a persistent one stays where it is, as its size does.
void Operation::fill() {
  const std::size_t stride = choice_.spaced ? 2 : 1, block = std::size_t(choice_.count) * stride;
  send_.assign(block * std::size_t(ranks_), kUntouched);
  receive_.assign(send_.size(), kUntouched);
  for (int to = 0; to < ranks_; ++to)
    for (int at = 0; at < choice_.count; ++at)
      send_[std::size_t(to) * block + std::size_t(at) * stride] = value(rank_, to, at);
  if (choice_.in_place || (choice_.kind == Kind::bcast && rank_ == choice_.root)) receive_ = send_;
}

int Operation::call(MPI_Comm comm, MPI_Datatype type) {
  const void* const from = choice_.in_place ? MPI_IN_PLACE : send_.data();
  void* const to = receive_.data();
  const int block = choice_.count, all = choice_.count * ranks_, root = choice_.root;
  const int* const places = displacements_.data();
  switch (choice_.kind) {
    case Kind::send:
    case Kind::synchronous_send:
    case Kind::probe:
      return exchange(comm, type);
    case Kind::alltoall:
      POST(Ialltoall, Alltoall, from, block, type, to, block, type, comm);
    case Kind::alltoallv:
      POST(Ialltoallv, Alltoallv, from, send_counts_.data(), places, type, to, receive_counts_.data(), places, type,
           comm);
    case Kind::allreduce:
      POST(Iallreduce, Allreduce, from, to, all, type, choice_.operation, comm);
    case Kind::bcast:
      POST(Ibcast, Bcast, to, all, type, root, comm);
    case Kind::allgather:
      POST(Iallgather, Allgather, from, block, type, to, block, type, comm);
    case Kind::reduce:
      POST(Ireduce, Reduce, from, to, all, type, choice_.operation, root, comm);
    case Kind::gather:
      POST(Igather, Gather, from, block, type, to, block, type, root, comm);
    case Kind::scatter:
      POST(Iscatter, Scatter, from, block, type, to, block, type, root, comm);
    case Kind::reduce_scatter_block:
      POST(Ireduce_scatter_block, Reduce_scatter_block, from, to, block, type, choice_.operation, comm);
  }
  return MPI_ERR_INTERN;
}

std::optional<std::size_t> Operation::wrong() const {
  const std::size_t stride = choice_.spaced ? 2 : 1;
  std::size_t index = 0;
  for (int block = 0; block < ranks_; ++block)
    for (int at = 0; at < choice_.count; ++at, index += stride) {
      if (receive_[index] != expected(block, at).value_or(kUntouched)) return index;
      if (choice_.spaced && receive_[index + 1] != kUntouched) return index + 1;
    }
  return {};
}

std::optional<std::uint32_t> Operation::expected(int block, int at) const {
  const bool mine = rank_ == choice_.root;
  switch (choice_.kind) {
    case Kind::send:
    case Kind::synchronous_send:
    case Kind::probe:
      return value(source(), block, at);
    case Kind::alltoall:
      return value(block, rank_, at);
    case Kind::alltoallv:
      if (at < length(block, rank_)) return value(block, rank_, at);
      break;
    case Kind::allreduce:
      return reduced(block, at);
    case Kind::bcast:
      return value(choice_.root, block, at);
    case Kind::allgather:
      return value(block, 0, at);
    case Kind::reduce:
      if (mine) return reduced(block, at);
      break;
    case Kind::gather:
      if (mine) return value(block, 0, at);
      break;
    case Kind::scatter:
      if (block == 0) return value(choice_.root, rank_, at);
      break;
    case Kind::reduce_scatter_block:
      if (block == 0) return reduced(rank_, at);
      break;
  }
  return {};
}

std::uint32_t Operation::value(int from, int to, int at) const {
  return std::uint32_t(from) * 1000003u + std::uint32_t(to) * 7919u + std::uint32_t(at) * 31u +
         choice_.number * 104729u;
}

std::uint32_t Operation::reduced(int to, int at) const {
  std::uint32_t all = value(0, to, at);
  for (int from = 1; from < ranks_; ++from) {
    const std::uint32_t next = value(from, to, at);
    if (choice_.operation == MPI_SUM)
      all += next;
    else if (choice_.operation == MPI_BXOR)
      all ^= next;
    else
      all = std::max(all, next);
  }
  return all;
}

int Operation::length(int from, int to) const {
  const std::uint32_t mixed = std::uint32_t(from) * 7919u + std::uint32_t(to) * 104729u + first_number_ * 1000003u;
  return int(mixed >> 4) % (choice_.count + 1);
}

}  // namespace faults
