// SPDX-License-Identifier: BSD-3-Clause
// What happens around native MPI_Init and MPI_Finalize: the rooms are built on the job, and taken down.
#include "attach/resting.hpp"
#include "base/clock.hpp"
#include "mpi/job/job.hpp"
#include "mpi/job/waiting.hpp"
#include "mpi/lanes/communicators.hpp"
#include "mpi/lanes/offloader.hpp"
#include "mpi/files/opened_file.hpp"
#include "mpi/lifetime/statistics.hpp"
#include "mpi/lifetime/tracing.hpp"
#include "mpi/messages/office.hpp"
#include "mpi/native/handlers.hpp"
#include "mpi/native/standing.hpp"
#include "mpi/proxy/layer.hpp"
#include "mpi/requests/completion.hpp"
#include "mpi/rma/windows.hpp"
#include "mpi/types/datatype.hpp"

#include <algorithm>
#include <exception>

namespace offpath::mpi {
namespace {

constexpr uint64_t kLastWordsNs = 1'000'000'000;

void detach() {
  offloader.mover().stop();
  job.detach();
  close_types();
  close_communicators();
}

void stay_native() {
  attach::resting.forbid();
  detach();
}

// Collective. On any failure everything stays native.
void start() {
  {
    const Inside inside;
    int granted = MPI_THREAD_SINGLE;
    native.Query_thread(&granted);
    const bool on = job.start({regions::have_targets(), tracing::wanted(), offloader.mover().start(granted)}) &&
                    offloader.errors().create() && open_communicators() == MPI_SUCCESS;
    if (!on) return stay_native();
    office.open();  // which is no work for the program
    opened_files.open();
    job.turn_on();
  }
  adopt_communicator(MPI_COMM_WORLD);
}

void pass_barrier(Offloader::AtEnd task) {
  MPI_Request barrier = MPI_REQUEST_NULL;
  const Inside inside;
  if (native.Ibarrier(job.control(), &barrier) != MPI_SUCCESS) return;
  Waiter waiter;
  for (int done = 0; done == 0; waiter.pause()) {
    offloader.progress_all(task);
    if (native.Test(&barrier, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS || done != 0) return;
  }
}

void drain() {
  Waiter waiter;
  while (!offloader.drained()) {
    offloader.progress_all(Offloader::AtEnd::look);
    waiter.pause();
  }
  while (!(finish_freed() && office.quiet())) {
    offloader.progress();
    move_native();
    waiter.pause();
  }
  job.leave_lost_behind();
  // Nobody leaves before nobody's operation needs it any more. Losses count until the first barrier; who hears of one
  // then still answers, so that no word is left in the native library when it ends.
  pass_barrier(Offloader::AtEnd::look);
  offloader.look_no_more();
  pass_barrier(Offloader::AtEnd::answer);
  const uint64_t deadline = base::clock_ns() + kLastWordsNs;
  while (!offloader.departed() && base::clock_ns() < deadline) {
    offloader.progress_all(Offloader::AtEnd::answer);
    waiter.pause();
  }
}

// Waits for what is under way, detaches, writes the statistics. Collective.
void stop() {
  const bool active = job.active();
  active ? drain() : job.leave_lost_behind();
  const Inside inside;
  if (active) {
    opened_files.close();
    office.close();
    windows.clear();
    standings.clear();
    forget_communicators();
    job.turn_off();
  }
  write_statistics();
  detach();
  job.stop();
}

// Some row of this process's policy gives the service something, on however many nodes.
bool may_offload() {
  const Settings settings = Settings::from_environment();
  policy::Table table = policy::Table::measured();
  // As the job does it later: bad memory is left out.
  if (!table.apply(settings.memory, policy::Origin::remembered).ok()) table = policy::Table::measured();
  if (!table.apply(settings.policy).ok()) return false;
  return std::any_of(table.rows().begin(), table.rows().end(),
                     [&](const policy::Row& row) { return table.offloads(std::max<uint32_t>(row.min_nodes, 1)); });
}

// What to ask native MPI for.
int thread_level(int required) {
  try {
    if (may_offload()) return Mover::thread_level(required);
  } catch (const std::exception&) {  // the job will say so
  }
  return required;
}

int started(int code) {
  if (code != MPI_SUCCESS) return code;
  try {
    start();
  } catch (const std::exception&) {
    say(job.settings(), LogLevel::error, "out of memory in MPI_Init");
  }
  return code;
}

}  // namespace

namespace handlers {

int Init(int* argc, char*** argv) {
  const int level = thread_level(MPI_THREAD_SINGLE);
  if (level == MPI_THREAD_SINGLE) return started(native.Init(argc, argv));
  int provided = level;
  job.grant_threads(MPI_THREAD_SINGLE);
  return started(native.Init_thread(argc, argv, level, &provided));
}

int Init_thread(int* argc, char*** argv, int required, int* provided) {
  const int level = thread_level(required);
  if (level != required) job.grant_threads(required);
  const int code = native.Init_thread(argc, argv, level, provided);
  if (code == MPI_SUCCESS) *provided = job.granted_threads(*provided);
  return started(code);
}

// What was asked for beyond the program's wish is ours: it is told what it would be without us.
int Query_thread(int* provided) {
  const int code = native.Query_thread(provided);
  if (code == MPI_SUCCESS) *provided = job.granted_threads(*provided);
  return code;
}

int Finalize() {
  try {
    stop();
  } catch (const std::exception&) {
    say(job.settings(), LogLevel::error, "out of memory in MPI_Finalize");
  }
  return native.Finalize();
}

}  // namespace handlers
}  // namespace offpath::mpi
