// SPDX-License-Identifier: BSD-3-Clause
#include "cases.hpp"

#include <mpi.h>

#include <cstdio>
#include <cstring>
#include <numeric>
#include <random>
#include <vector>

namespace {

const MPI_Comm kNone = MPI_COMM_NULL;

#define EXPECT(what)                                                                       \
  do {                                                                                     \
    if (!(what)) {                                                                         \
      ++setting->failures;                                                                 \
      fprintf(stderr, "%s:%d: rank %d, %s: not so: %s\n", __FILE__, __LINE__, rank_here(), \
              setting->device ? "region" : "host", #what);                                 \
    }                                                                                      \
  } while (0)

int rank_here() {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return rank;
}

int size_here() {
  int size = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  return size;
}

// This side's messages go to the other side from now on, or no longer.
void cross(bool on) {
  MPI_Info info = MPI_INFO_NULL;
  MPI_Info_create(&info);
  MPI_Info_set(info, "REMOTE_DEST_HETERO", on ? "1" : "0");
  MPI_Comm_set_info(MPI_COMM_WORLD, info);
  MPI_Info_delete(info, "REMOTE_DEST_HETERO");
  MPI_Info_free(&info);
}

// The four directions, the receiver always with a plain MPI_Recv.
void directions(Setting* setting) {
  const int rank = rank_here();
  for (const bool crossing : {false, true}) {
    for (const int from_device : {0, 1}) {
      const int to_device = crossing ? 1 - from_device : from_device;
      const int value = 3310 + 2 * from_device + to_device;
      if (rank == 0 && setting->device == from_device) {
        if (crossing) cross(true);
        EXPECT(MPI_Send(&value, 1, MPI_INT, 1, value, MPI_COMM_WORLD) == MPI_SUCCESS);
        if (crossing) cross(false);
      }
      if (rank == 1 && setting->device == to_device) {
        int got = 0;
        MPI_Status status;
        EXPECT(MPI_Recv(&got, 1, MPI_INT, 0, value, MPI_COMM_WORLD, &status) == MPI_SUCCESS);
        int count = 0;
        MPI_Get_count(&status, MPI_INT, &count);
        EXPECT(got == value && status.MPI_SOURCE == 0 && status.MPI_TAG == value && count == 1);
      }
    }
  }
}

// A plan of messages between all sides that everybody knows; receivers use wildcards and see each sender's in order.
struct Planned {
  int from, from_device, to, to_device, tag, bytes, number;
};

std::vector<Planned> plan(uint64_t seed, int size) {
  constexpr int kLengths[] = {1, 8, 200, 5000, 70000};
  std::mt19937_64 random(seed);
  const auto below = [&](int n) { return static_cast<int>(random() % static_cast<uint64_t>(n)); };
  std::vector<Planned> all(300);
  for (size_t i = 0; i < all.size(); ++i) {
    all[i] = {below(size), below(2), below(size), below(2), below(4), kLengths[below(5)] + 8, static_cast<int>(i)};
  }
  return all;
}

void mixture(Setting* setting) {
  const int rank = rank_here();
  const auto all = plan(setting->seed, size_here());
  std::vector<std::vector<unsigned char>> sent;
  std::vector<MPI_Request> requests;
  int expected = 0;
  int crossing = -1;
  sent.reserve(all.size());
  for (const Planned& message : all) {
    expected += message.to == rank && message.to_device == setting->device ? 1 : 0;
    if (message.from != rank || message.from_device != setting->device) continue;
    const int want = message.to_device != setting->device ? 1 : 0;
    if (want != crossing) cross(want != 0);
    crossing = want;
    auto& data = sent.emplace_back(message.bytes, static_cast<unsigned char>(message.number));
    memcpy(data.data(), &message.number, sizeof(int));
    requests.push_back(MPI_REQUEST_NULL);
    MPI_Isend(data.data(), message.bytes, MPI_BYTE, message.to, message.tag, MPI_COMM_WORLD, &requests.back());
  }
  std::vector<unsigned char> data(80000);
  std::vector<int> last(static_cast<size_t>(2 * size_here()), -1);
  for (int i = 0; i < expected; ++i) {
    MPI_Status status;
    MPI_Recv(data.data(), 80000, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
    int number = 0;
    int count = 0;
    memcpy(&number, data.data(), sizeof(number));
    MPI_Get_count(&status, MPI_BYTE, &count);
    EXPECT(number >= 0 && number < static_cast<int>(all.size()));
    if (setting->failures != 0) break;
    const Planned& message = all[static_cast<size_t>(number)];
    EXPECT(message.to == rank && message.to_device == setting->device && message.from == status.MPI_SOURCE);
    EXPECT(message.tag == status.MPI_TAG && message.bytes == count);
    for (int at = sizeof(int); at < count; ++at) {
      if (data[static_cast<size_t>(at)] != static_cast<unsigned char>(number)) EXPECT(!"right bytes");
    }
    int& before = last[static_cast<size_t>(2 * message.from + message.from_device)];
    EXPECT(before < number);  // MPI's order
    before = number;
  }
  MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
  if (crossing == 1) cross(false);
}

// Nonblocking and blocking pairs, and all ways of waiting.
void requests(Setting* setting) {
  const int rank = rank_here();
  const int size = size_here();
  std::vector<MPI_Request> all(static_cast<size_t>(2 * size));
  std::vector<int> in(static_cast<size_t>(size), -1);
  for (int round = 0; round < 4; ++round) {
    for (int peer = 0; peer < size; ++peer) {
      MPI_Irecv(&in[static_cast<size_t>(peer)], 1, MPI_INT, peer, round, MPI_COMM_WORLD,
                &all[static_cast<size_t>(peer)]);
    }
    const int value = 100 * round + rank;
    for (int peer = 0; peer < size; ++peer) {
      MPI_Isend(&value, 1, MPI_INT, peer, round, MPI_COMM_WORLD, &all[static_cast<size_t>(size + peer)]);
    }
    const int count = 2 * size;
    if (round == 0) MPI_Waitall(count, all.data(), MPI_STATUSES_IGNORE);
    int index = 0;
    MPI_Status status;
    if (round == 1) {
      for (int i = 0; i < count; ++i) EXPECT(MPI_Waitany(count, all.data(), &index, &status) == MPI_SUCCESS);
    }
    if (round == 2) {
      int flag = 0;
      while (flag == 0) MPI_Testall(count, all.data(), &flag, MPI_STATUSES_IGNORE);
    }
    if (round == 3) {
      for (MPI_Request& request : all) {
        int flag = 0;
        while (flag == 0) MPI_Test(&request, &flag, &status);
      }
    }
    for (const MPI_Request request : all) EXPECT(request == MPI_REQUEST_NULL);
    for (int peer = 0; peer < size; ++peer) EXPECT(in[static_cast<size_t>(peer)] == 100 * round + peer);
  }
}

// Both sides do the same collectives on the same communicator at the same time, with numbers of their own.
void collectives(Setting* setting) {
  const int rank = rank_here();
  const int size = size_here();
  const int own = setting->device * 1000;
  for (const int count : {1, 1000, 40000}) {
    const auto n = static_cast<size_t>(count);
    std::vector<int> in(n * static_cast<size_t>(size)), out(n * static_cast<size_t>(size));
    std::vector<int> data(n, rank == size - 1 ? own + 5 : -1);
    EXPECT(MPI_Bcast(data.data(), count, MPI_INT, size - 1, MPI_COMM_WORLD) == MPI_SUCCESS);
    EXPECT(data.front() == own + 5 && data.back() == own + 5);
    std::vector<int> sum(n, -1);
    data.assign(n, own + rank);
    EXPECT(MPI_Allreduce(data.data(), sum.data(), count, MPI_INT, MPI_SUM, MPI_COMM_WORLD) == MPI_SUCCESS);
    EXPECT(sum.back() == own * size + size * (size - 1) / 2);
    EXPECT(MPI_Allreduce(MPI_IN_PLACE, data.data(), count, MPI_INT, MPI_MAX, MPI_COMM_WORLD) == MPI_SUCCESS);
    EXPECT(data.back() == own + size - 1);
    for (size_t i = 0; i < in.size(); ++i) in[i] = own + rank * 100 + static_cast<int>(i / n);
    EXPECT(MPI_Alltoall(in.data(), count, MPI_INT, out.data(), count, MPI_INT, MPI_COMM_WORLD) == MPI_SUCCESS);
    for (size_t i = 0; i < out.size(); ++i) {
      if (out[i] != own + static_cast<int>(i / n) * 100 + rank) EXPECT(!"alltoall");
    }
    EXPECT(MPI_Allgather(in.data(), count, MPI_INT, out.data(), count, MPI_INT, MPI_COMM_WORLD) == MPI_SUCCESS);
    for (size_t i = 0; i < out.size(); ++i) {
      if (out[i] != own + static_cast<int>(i / n) * 100) EXPECT(!"allgather");
    }
    MPI_Request request = MPI_REQUEST_NULL;
    EXPECT(MPI_Ibarrier(MPI_COMM_WORLD, &request) == MPI_SUCCESS);
    EXPECT(MPI_Wait(&request, MPI_STATUS_IGNORE) == MPI_SUCCESS);
    EXPECT(MPI_Barrier(MPI_COMM_WORLD) == MPI_SUCCESS);
  }
}

// Host and region make windows together; both put into the other side's at the same time, and read back.
void windows(Setting* setting) {
  const int rank = rank_here();
  const int size = size_here();
  for (const int count : {1, 30000}) {
    const auto n = static_cast<size_t>(count);
    std::vector<int> memory(n * static_cast<size_t>(size), -1), data(n, 10 * rank + setting->device + 6300), back(n);
    MPI_Win win = MPI_WIN_NULL;
    MPI_Info info = MPI_INFO_NULL;
    MPI_Info_create(&info);
    const MPI_Info first = setting->device != 0 ? MPI_INFO_NULL : info;
    EXPECT(MPI_Win_create(memory.data(), static_cast<MPI_Aint>(memory.size() * sizeof(int)), sizeof(int), first,
                          MPI_COMM_WORLD, &win) == MPI_SUCCESS);
    MPI_Info_set(info, "REMOTE_DEST_HETERO", "1");
    MPI_Win_set_info(win, info);
    for (int peer = 0; peer < size; ++peer) {
      EXPECT(MPI_Put(data.data(), count, MPI_INT, peer, static_cast<MPI_Aint>(rank) * count, count, MPI_INT, win) ==
             MPI_SUCCESS);
    }
    EXPECT(MPI_Win_fence(0, win) == MPI_SUCCESS);
    for (int peer = 0; peer < size; ++peer) {
      const int value = 10 * peer + (1 - setting->device) + 6300;  // the other side's
      EXPECT(memory[n * static_cast<size_t>(peer)] == value && memory[n * static_cast<size_t>(peer) + n - 1] == value);
    }
    const int peer = (rank + 1) % size;
    EXPECT(MPI_Get(back.data(), count, MPI_INT, peer, 0, count, MPI_INT, win) == MPI_SUCCESS);
    EXPECT(MPI_Win_fence(0, win) == MPI_SUCCESS);
    EXPECT(back.front() == setting->device + 6300 && back.back() == setting->device + 6300);
    EXPECT(MPI_Win_free(&win) == MPI_SUCCESS && win == MPI_WIN_NULL);
    MPI_Info_free(&info);
  }
}

// A window of the DPU sides alone, while the hosts have none.
void alone(Setting* setting) {
  if (setting->device == 0) return;
  const int rank = rank_here();
  const int size = size_here();
  std::vector<double> memory(static_cast<size_t>(size), -1);
  MPI_Win win = MPI_WIN_NULL;
  MPI_Info info = MPI_INFO_NULL;
  MPI_Info_create(&info);
  MPI_Info_set(info, "REMOTE_DEST_HETERO", "0");
  EXPECT(MPI_Win_create(memory.data(), static_cast<MPI_Aint>(memory.size() * sizeof(double)), sizeof(double), info,
                        MPI_COMM_WORLD, &win) == MPI_SUCCESS);
  EXPECT(MPI_Win_fence(0, win) == MPI_SUCCESS);
  for (int round = 1; round < 20; ++round) {
    // Own stores and others' puts into one window; each is seen after the next fence.
    memory[static_cast<size_t>(rank)] = round * 100 + rank;
    EXPECT(MPI_Win_fence(0, win) == MPI_SUCCESS);
    const int peer = (rank + round) % size;
    double got = -1;
    EXPECT(MPI_Get(&got, 1, MPI_DOUBLE, peer, peer, 1, MPI_DOUBLE, win) == MPI_SUCCESS);
    EXPECT(MPI_Win_fence(0, win) == MPI_SUCCESS);
    EXPECT(got == round * 100 + peer);
    const double value = round;
    const int next = (rank + 1) % size;
    if (next != rank) EXPECT(MPI_Put(&value, 1, MPI_DOUBLE, next, rank, 1, MPI_DOUBLE, win) == MPI_SUCCESS);
    EXPECT(MPI_Win_fence(0, win) == MPI_SUCCESS);
    if (next != rank) EXPECT(memory[static_cast<size_t>((rank + size - 1) % size)] == round);
  }
  double beyond = 0;
  EXPECT(MPI_Put(&beyond, 1, MPI_DOUBLE, 0, size, 1, MPI_DOUBLE, win) == MPI_SUCCESS);
  EXPECT(MPI_Win_fence(0, win) == MPI_ERR_RMA_RANGE);
  EXPECT(MPI_Win_free(&win) == MPI_SUCCESS);
  MPI_Info_free(&info);
}

// Errors in regions are returned.
void errors(Setting* setting) {
  if (setting->device == 0) return;
  const int rank = rank_here();
  int data[4] = {1, 2, 3, 4};
  MPI_Status status;
  MPI_Request request = MPI_REQUEST_NULL;
  EXPECT(MPI_Send(data, 1, MPI_INT, size_here(), 0, MPI_COMM_WORLD) == MPI_ERR_RANK);
  EXPECT(MPI_Send(data, -1, MPI_INT, 0, 0, MPI_COMM_WORLD) == MPI_ERR_COUNT);
  EXPECT(MPI_Send(data, 1, MPI_INT, 0, -7, MPI_COMM_WORLD) == MPI_ERR_TAG);
  EXPECT(MPI_Send(data, 1, MPI_DATATYPE_NULL, 0, 0, MPI_COMM_WORLD) == MPI_ERR_TYPE);
  EXPECT(MPI_Send(data, 1, MPI_INT, 0, 0, kNone) == MPI_ERR_COMM);
#ifdef OPEN_MPI  // MPICH ends the program: it raises this on no communicator
  EXPECT(MPI_Isend(data, 4, MPI_INT, rank, 1, MPI_COMM_WORLD, &request) == MPI_SUCCESS);
  int few[2] = {0, 77};
  EXPECT(MPI_Recv(few, 1, MPI_INT, rank, 1, MPI_COMM_WORLD, &status) == MPI_ERR_TRUNCATE);
  EXPECT(few[1] == 77);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
#endif
  // A short message leaves the rest of the buffer.
  EXPECT(MPI_Isend(data, 1, MPI_INT, rank, 2, MPI_COMM_WORLD, &request) == MPI_SUCCESS);
  int many[3] = {7, 8, 9};
  EXPECT(MPI_Recv(many, 3, MPI_INT, rank, 2, MPI_COMM_WORLD, &status) == MPI_SUCCESS);
  EXPECT(many[0] == 1 && many[1] == 8 && many[2] == 9);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_Win win = MPI_WIN_NULL;
  EXPECT(MPI_Win_fence(0, win) == MPI_ERR_WIN);
  MPI_Comm made = MPI_COMM_NULL;
  EXPECT(MPI_Comm_dup(MPI_COMM_WORLD, &made) == MPI_ERR_UNSUPPORTED_OPERATION);
}

// The main program loses the executor while this waits; nobody sends.
void lost(Setting* setting) {
  if (setting->device == 0) return;
  int data = 0;
  EXPECT(MPI_Recv(&data, 1, MPI_INT, rank_here(), 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE) == MPI_SUCCESS);
}

constexpr NamedCase kCases[] = {{"directions", &directions},   {"mixture", &mixture}, {"requests", &requests},
                                {"collectives", &collectives}, {"windows", &windows}, {"alone", &alone},
                                {"errors", &errors},           {"lost", &lost},       {nullptr, nullptr}};

}  // namespace

extern "C" const NamedCase* offpath_cases() { return kCases; }
