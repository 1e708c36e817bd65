// SPDX-License-Identifier: BSD-3-Clause
// The handlers of MPI's one-sided synchronisation. Each looks at the epochs, then makes sure that what was posted is
// done, then tells the others. An error does not keep it from telling them: nobody waits for a process that failed.
#include "mpi/native/handlers.hpp"
#include "mpi/rma/windows.hpp"

#include <array>
#include <atomic>
#include <bit>
#include <exception>
#include <numeric>
#include <type_traits>

namespace offpath::mpi {
namespace {

constexpr int kFenceAsserts = MPI_MODE_NOSTORE | MPI_MODE_NOPUT | MPI_MODE_NOPRECEDE | MPI_MODE_NOSUCCEED;
constexpr int kFenceOfNothing = MPI_MODE_NOPRECEDE | MPI_MODE_NOSUCCEED;
// The classes that this library has for them.
#ifdef OPEN_MPI
constexpr int kNoAssert = MPI_ERR_ASSERT;
constexpr int kNoLockType = MPI_ERR_LOCKTYPE;
constexpr int kLockedTwice = MPI_ERR_RMA_CONFLICT;
#else
constexpr int kNoAssert = MPI_ERR_ARG;
constexpr int kNoLockType = MPI_ERR_ARG;
constexpr int kLockedTwice = MPI_ERR_RMA_SYNC;
#endif
constexpr int kPostAsserts = MPI_MODE_NOCHECK | MPI_MODE_NOSTORE | MPI_MODE_NOPUT;

// A vote as numbers that are added up.
using Votes = std::array<int64_t, policy::WindowChooser::kNumbers>;
// What works stays as it is when a service is lost.
Votes votes_of(const OffloadedWindow& window) { return std::bit_cast<Votes>(window.mixture()->vote(!window.lost())); }
void agree(Mixture& mixture, const Votes& sum) { mixture.agree(std::bit_cast<policy::WindowChooser::Vote>(sum)); }

// The members of `group` among the window's. False: it is none, or has others.
bool members_of(MPI_Group group, const OffloadedWindow& window, std::vector<int>* members) {
  const Inside inside;
  int size = 0;
  if (group == MPI_GROUP_NULL || native.Group_size(group, &size) != MPI_SUCCESS) return false;
  std::vector<int> ranks(static_cast<size_t>(size));
  std::iota(ranks.begin(), ranks.end(), 0);
  members->resize(static_cast<size_t>(size));
  MPI_Group own = MPI_GROUP_NULL;
  if (native.Comm_group(window.shadow(), &own) != MPI_SUCCESS) return false;
  const int code = native.Group_translate_ranks(group, size, ranks.data(), own, members->data());
  native.Group_free(&own);
  for (const int member : *members) {
    if (member < 0 || member >= window.size()) return false;
  }
  return code == MPI_SUCCESS;
}

std::vector<int> everybody(const OffloadedWindow& window) {
  std::vector<int> all(static_cast<size_t>(window.size()));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

// Waits for all members, and agrees with them where that is due.
void meet(OffloadedWindow& window) {
  Mixture* const mixture = window.mixture();
  if (mixture == nullptr || !mixture->meets()) return window.handshake().barrier();
  Votes votes = votes_of(window);
  window.handshake().sum(votes.data(), static_cast<int>(votes.size()));
  agree(*mixture, votes);
}

int fence(OffloadedWindow& window, int assertion) {
  if ((assertion & ~kFenceAsserts) != 0) return kNoAssert;
  if (!window.epochs().fence((assertion & MPI_MODE_NOSUCCEED) == 0)) return MPI_ERR_RMA_SYNC;
  const int code = window.flush();
  if ((assertion & kFenceOfNothing) != kFenceOfNothing) meet(window);
  return code;
}

int post(OffloadedWindow& window, MPI_Group group, int assertion) {
  std::vector<int> origins;
  if ((assertion & ~kPostAsserts) != 0) return kNoAssert;
  if (!members_of(group, window, &origins)) return MPI_ERR_GROUP;
  if (!window.epochs().post()) return MPI_ERR_RMA_SYNC;
  window.handshake().post(origins, (assertion & MPI_MODE_NOCHECK) == 0);
  return MPI_SUCCESS;
}

int begin_access(OffloadedWindow& window, MPI_Group group, int assertion) {
  std::vector<int> targets;
  if ((assertion & ~MPI_MODE_NOCHECK) != 0) return kNoAssert;
  if (!members_of(group, window, &targets)) return MPI_ERR_GROUP;
  if (!window.epochs().start(targets)) return MPI_ERR_RMA_SYNC;
  if ((assertion & MPI_MODE_NOCHECK) == 0) window.handshake().start(targets);
  return MPI_SUCCESS;
}

int complete(OffloadedWindow& window) {
  std::vector<int> targets;
  if (!window.epochs().complete(&targets)) return MPI_ERR_RMA_SYNC;
  const int code = window.flush();
  window.handshake().complete(targets);
  return code;
}

int end_exposure(OffloadedWindow& window) {
  if (!window.epochs().exposed()) return MPI_ERR_RMA_SYNC;
  window.handshake().wait();
  window.epochs().end_exposure();
  return MPI_SUCCESS;
}

int test(OffloadedWindow& window, int* flag) {
  if (!window.epochs().exposed()) return MPI_ERR_RMA_SYNC;
  *flag = window.handshake().test() ? 1 : 0;
  if (*flag != 0) window.epochs().end_exposure();
  return MPI_SUCCESS;
}

bool is_member(int rank, const OffloadedWindow& window) { return rank >= 0 && rank < window.size(); }

int lock(OffloadedWindow& window, int type, int rank, int assertion) {
  if (type != MPI_LOCK_SHARED && type != MPI_LOCK_EXCLUSIVE) return kNoLockType;
  if (rank == MPI_PROC_NULL) return MPI_SUCCESS;
  if (!is_member(rank, window)) return MPI_ERR_RANK;
  if ((assertion & ~MPI_MODE_NOCHECK) != 0) return kNoAssert;
  const bool asks = (assertion & MPI_MODE_NOCHECK) == 0;
  if (!window.epochs().lock(rank, asks)) return window.epochs().may_flush(rank) ? kLockedTwice : MPI_ERR_RMA_SYNC;
  if (!asks) return MPI_SUCCESS;
  const int code = window.lock(type == MPI_LOCK_SHARED ? OFFPATH_LOCK_SHARED : OFFPATH_LOCK_EXCLUSIVE, {rank});
  bool asked = false;
  if (code != MPI_SUCCESS) window.epochs().unlock(rank, &asked);
  return code;
}

int unlock(OffloadedWindow& window, int rank) {
  bool asked = false;
  if (rank == MPI_PROC_NULL) return MPI_SUCCESS;
  if (!is_member(rank, window)) return MPI_ERR_RANK;
  if (!window.epochs().unlock(rank, &asked)) return MPI_ERR_RMA_SYNC;
  const int code = window.flush(rank);
  const int given = asked ? window.unlock({rank}) : MPI_SUCCESS;
  return code == MPI_SUCCESS ? given : code;
}

int lock_all(OffloadedWindow& window, int assertion) {
  if ((assertion & ~MPI_MODE_NOCHECK) != 0) return kNoAssert;
  const bool asks = (assertion & MPI_MODE_NOCHECK) == 0;
  if (!window.epochs().lock_all(asks)) return MPI_ERR_RMA_SYNC;
  if (!asks) return MPI_SUCCESS;
  const int code = window.lock(OFFPATH_LOCK_SHARED, everybody(window));
  bool asked = false;
  if (code != MPI_SUCCESS) window.epochs().unlock_all(&asked);
  return code;
}

int unlock_all(OffloadedWindow& window) {
  bool asked = false;
  if (!window.epochs().unlock_all(&asked)) return MPI_ERR_RMA_SYNC;
  const int code = window.flush();
  const int given = asked ? window.unlock(everybody(window)) : MPI_SUCCESS;
  return code == MPI_SUCCESS ? given : code;
}

// MPI_ERR_RANK, or MPI_ERR_RMA_SYNC: no passive epoch there.
int may_flush(const OffloadedWindow& window, const Epochs& epochs, int rank) {
  if (rank == MPI_PROC_NULL) return MPI_SUCCESS;
  if (!is_member(rank, window)) return MPI_ERR_RANK;
  return epochs.may_flush(rank) ? MPI_SUCCESS : MPI_ERR_RMA_SYNC;
}

int flush(OffloadedWindow& window, int rank) {
  const int code = may_flush(window, window.epochs(), rank);
  return code == MPI_SUCCESS ? window.flush(rank) : code;
}

int flush_local(OffloadedWindow& window, int rank) {
  const int code = may_flush(window, window.epochs(), rank);
  return code == MPI_SUCCESS ? window.flush_local(rank) : code;
}

int flush_all(OffloadedWindow& window) { return window.epochs().may_flush_all() ? window.flush() : MPI_ERR_RMA_SYNC; }

int flush_local_all(OffloadedWindow& window) {
  return window.epochs().may_flush_all() ? window.flush_local() : MPI_ERR_RMA_SYNC;
}

int sync(OffloadedWindow& window) {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  window.nudge();
  return MPI_SUCCESS;
}

// A barrier of all members of windows, in which they agree.
int agree(MPI_Comm comm, const std::vector<std::shared_ptr<OffloadedWindow>>& meeting) {
  std::vector<Votes> votes;
  for (const auto& window : meeting) votes.push_back(votes_of(*window));
  const auto count = static_cast<int>(votes.size() * policy::WindowChooser::kNumbers);
  const int code = native.Allreduce(MPI_IN_PLACE, votes.data(), count, MPI_INT64_T, MPI_SUM, comm);
  if (code != MPI_SUCCESS) return code;
  for (size_t i = 0; i < meeting.size(); ++i) agree(*meeting[i]->mixture(), votes[i]);
  return code;
}

// Runs the call on an offloaded window, and the native function on any other.
template <auto function, typename... Arguments>
int dispatch(MPI_Win win, int (*own)(OffloadedWindow&, Arguments...), Arguments... arguments) {
  OffloadedWindow* const window = windows.find(win);
  if (window == nullptr) {
    if constexpr (std::is_invocable_v<decltype(native.*function), Arguments..., MPI_Win>) {
      return (native.*function)(arguments..., win);
    } else {
      return (native.*function)(win, arguments...);
    }
  }
  const base::ErrnoGuard errno_guard;
  int code = MPI_SUCCESS;
  try {
    code = own(*window, arguments...);
  } catch (const std::exception&) {
    code = MPI_ERR_NO_MEM;
  }
  return window->raise(name_of(function), code);
}

}  // namespace

namespace handlers {

int Barrier(MPI_Comm comm) {
  if (windows.count() == 0 || Inside::here()) return native.Barrier(comm);
  const base::ErrnoGuard errno_guard;
  try {
    const Meeting inside;
    const std::vector<std::shared_ptr<OffloadedWindow>> meeting = windows.meeting_on(comm);
    if (!meeting.empty()) return agree(comm, meeting);
  } catch (const std::exception&) {
    return MPI_ERR_NO_MEM;
  }
  return native.Barrier(comm);
}

int Win_fence(int assertion, MPI_Win win) { return dispatch<&Native::Win_fence>(win, fence, assertion); }
int Win_post(MPI_Group group, int assertion, MPI_Win win) {
  return dispatch<&Native::Win_post>(win, post, group, assertion);
}
int Win_start(MPI_Group group, int assertion, MPI_Win win) {
  return dispatch<&Native::Win_start>(win, begin_access, group, assertion);
}
int Win_complete(MPI_Win win) { return dispatch<&Native::Win_complete>(win, complete); }
int Win_wait(MPI_Win win) { return dispatch<&Native::Win_wait>(win, end_exposure); }
int Win_test(MPI_Win win, int* flag) { return dispatch<&Native::Win_test>(win, test, flag); }
int Win_lock(int type, int rank, int assertion, MPI_Win win) {
  return dispatch<&Native::Win_lock>(win, lock, type, rank, assertion);
}
int Win_unlock(int rank, MPI_Win win) { return dispatch<&Native::Win_unlock>(win, unlock, rank); }
int Win_lock_all(int assertion, MPI_Win win) { return dispatch<&Native::Win_lock_all>(win, lock_all, assertion); }
int Win_unlock_all(MPI_Win win) { return dispatch<&Native::Win_unlock_all>(win, unlock_all); }
int Win_flush(int rank, MPI_Win win) { return dispatch<&Native::Win_flush>(win, flush, rank); }
int Win_flush_all(MPI_Win win) { return dispatch<&Native::Win_flush_all>(win, flush_all); }
int Win_flush_local(int rank, MPI_Win win) { return dispatch<&Native::Win_flush_local>(win, flush_local, rank); }
int Win_flush_local_all(MPI_Win win) { return dispatch<&Native::Win_flush_local_all>(win, flush_local_all); }
int Win_sync(MPI_Win win) { return dispatch<&Native::Win_sync>(win, sync); }

}  // namespace handlers
}  // namespace offpath::mpi
