// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/native/stand_ins.hpp"

#include "mpi/native/handle_table.hpp"
#include "mpi/native/narrowed.hpp"
#include "mpi/native/native.hpp"
#include "mpi/native/signatures.hpp"

#include <atomic>
#include <exception>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

namespace offpath::mpi {
namespace stand_ins {
namespace {

Native library;  // as it is, without this

// A derived datatype, although the application may free it. A predefined one, or none, stays what it is: operators know
// only those.
class Kept {
 public:
  explicit Kept(MPI_Datatype* type) {
    int numbers = 0, combiner = MPI_COMBINER_NAMED;
    if (*type == MPI_DATATYPE_NULL) return;
    const int code = library.Type_get_envelope(*type, &numbers, &numbers, &numbers, &combiner);
    if (code != MPI_SUCCESS || combiner == MPI_COMBINER_NAMED) return;
    if (library.Type_contiguous(1, *type, &made_) != MPI_SUCCESS) return;
    library.Type_commit(&made_);
    *type = made_;
  }
  ~Kept() {
    if (made_ != MPI_DATATYPE_NULL) library.Type_free(&made_);
  }
  Kept(Kept&& other) noexcept : made_(std::exchange(other.made_, MPI_DATATYPE_NULL)) {}
  Kept& operator=(Kept&&) = delete;

 private:
  MPI_Datatype made_ = MPI_DATATYPE_NULL;
};

using Begin = int(const Arguments& arguments, MPI_Comm comm, MPI_Request* request);

class Persistent {
 public:
  // Takes `comm`.
  Persistent(Begin* begin, const Arguments& arguments, Meaning meaning, MPI_Comm comm)
      : begin_(begin), arguments_(arguments), comm_(comm) {
    if (meaning == Meaning::reduction || arguments.root == MPI_PROC_NULL) return;
    // What means nothing at this rank may be anything.
    const bool rooted = meaning == Meaning::recv_at_root || meaning == Meaning::send_at_root;
    const bool has_all = !rooted || is_root(comm, arguments.root);
    if (has_all || meaning == Meaning::recv_at_root) keep(&arguments_.send);
    if (has_all || meaning == Meaning::send_at_root) keep(&arguments_.recv);
  }
  ~Persistent() {
    if (current != MPI_REQUEST_NULL) library.Request_free(&current);
    library.Comm_free(&comm_);
  }
  Persistent(const Persistent&) = delete;
  Persistent& operator=(const Persistent&) = delete;

  int start() {
    if (current == MPI_REQUEST_NULL) return begin_(arguments_, comm_, &current);
    library.Comm_call_errhandler(comm_, MPI_ERR_REQUEST);  // started already
    return MPI_ERR_REQUEST;
  }

  MPI_Request current = MPI_REQUEST_NULL;  // what stands in for it

 private:
  void keep(Stated* side) {
    if (side->buffer != MPI_IN_PLACE) kept_.emplace_back(&side->type);
  }

  Begin* begin_;
  Arguments arguments_;
  MPI_Comm comm_;
  std::vector<Kept> kept_;
};

// By the application's handle. Threads: any; MPI forbids two threads to use one request at a time.
class Table {
 public:
  bool empty() const { return count_.load(std::memory_order_acquire) == 0; }
  void add(MPI_Request request, std::unique_ptr<Persistent> made) {
    std::lock_guard lock(mutex_);
    entries_.insert_or_assign(handle_key(request), std::move(made));
    count_.store(entries_.size(), std::memory_order_release);
  }
  Persistent* find(MPI_Request request) const {
    if (empty() || request == MPI_REQUEST_NULL) return nullptr;
    std::lock_guard lock(mutex_);
    const auto entry = entries_.find(handle_key(request));
    return entry == entries_.end() ? nullptr : entry->second.get();
  }
  // What it was dies with the result, without the lock.
  std::unique_ptr<Persistent> take(MPI_Request request) {
    std::lock_guard lock(mutex_);
    const auto entry = entries_.find(handle_key(request));
    std::unique_ptr<Persistent> taken = std::move(entry->second);
    entries_.erase(entry);
    count_.store(entries_.size(), std::memory_order_release);
    return taken;
  }

 private:
  std::atomic<size_t> count_{0};
  mutable std::mutex mutex_;
  std::unordered_map<uintptr_t, std::unique_ptr<Persistent>> entries_;
};

Table table;

int make(Begin* begin, const Arguments& arguments, Meaning meaning, MPI_Comm comm, MPI_Request* request) {
  MPI_Comm own = MPI_COMM_NULL;
  int code = library.Comm_dup(comm, &own);
  if (code != MPI_SUCCESS) return code;
  try {
    auto made = std::make_unique<Persistent>(begin, arguments, meaning, own);
    code = library.Recv_init(nullptr, 0, MPI_BYTE, MPI_PROC_NULL, 0, MPI_COMM_SELF, request);
    if (code == MPI_SUCCESS) table.add(*request, std::move(made));
    return code;
  } catch (const std::exception&) {
    library.Comm_call_errhandler(comm, MPI_ERR_NO_MEM);
    return MPI_ERR_NO_MEM;
  }
}

template <typename Width, typename... Fields>
struct Form : Signature<Width, Fields...> {
  using Base = Signature<Width, Fields...>;
  template <auto nonblocking>
  static int begin(const Arguments& arguments, MPI_Comm comm, MPI_Request* request) {
    return Base::call(library.*nonblocking, arguments, comm, request);
  }
  template <auto nonblocking, Meaning meaning>
  static int init(typename Fields::Value... values, MPI_Comm comm, MPI_Info, MPI_Request* request) {
    return make(&begin<nonblocking>, Base::collect(values...), meaning, comm, request);
  }
};

// ---- functions that take requests

// The requests of one call, with those that stand in. An inactive one is none.
class Exchanged {
 public:
  Exchanged(int count, MPI_Request* requests) : requests_(requests) {
    for (int i = 0; requests != nullptr && i < count; ++i) {
      Persistent* const found = table.find(requests[i]);
      if (found == nullptr) continue;
      if (all_.empty()) all_.assign(requests, requests + count);
      all_[static_cast<size_t>(i)] = found->current;
      found_.emplace_back(static_cast<size_t>(i), found);
    }
  }
  MPI_Request* get() { return all_.empty() ? requests_ : all_.data(); }
  // After the call: gives the application its handles back. Returns `code`.
  int settle(int code) {
    for (const auto& [index, found] : found_) found->current = std::exchange(all_[index], requests_[index]);
    for (size_t i = 0; i < all_.size(); ++i) requests_[i] = all_[i];
    return code;
  }

 private:
  MPI_Request* requests_;
  std::vector<MPI_Request> all_;  // if any had to be exchanged
  std::vector<std::pair<size_t, Persistent*>> found_;
};

// `count` requests, then what the function takes behind them.
template <auto function>
int call_exchanged(int count, MPI_Request* requests, auto&& invoke) {
  if (table.empty()) return invoke(library.*function, requests);
  try {
    Exchanged exchanged(count, requests);
    return exchanged.settle(invoke(library.*function, exchanged.get()));
  } catch (const std::exception&) {
    return MPI_ERR_NO_MEM;
  }
}

template <auto function, typename... Rest>
int one(MPI_Request* request, Rest... rest) {
  return call_exchanged<function>(1, request,
                                  [&](auto* call, MPI_Request* exchanged) { return call(exchanged, rest...); });
}

template <auto function, typename... Rest>
int many(int count, MPI_Request* requests, Rest... rest) {
  return call_exchanged<function>(count, requests,
                                  [&](auto* call, MPI_Request* exchanged) { return call(count, exchanged, rest...); });
}

int get_status(MPI_Request request, int* flag, MPI_Status* status) {
  const Persistent* const found = table.find(request);
  return library.Request_get_status(found == nullptr ? request : found->current, flag, status);
}

int free_request(MPI_Request* request) {
  if (request != nullptr && table.find(*request) != nullptr) table.take(*request);
  return library.Request_free(request);
}

int start(MPI_Request* request) {
  Persistent* const found = request == nullptr ? nullptr : table.find(*request);
  return found == nullptr ? library.Start(request) : found->start();
}

// One by one where any is ours.
int start_all(int count, MPI_Request* requests) {
  if (table.empty()) return library.Startall(count, requests);
  int code = MPI_SUCCESS;
  for (int i = 0; i < count && code == MPI_SUCCESS; ++i) code = start(&requests[i]);
  return code;
}

void take_requests(Native* functions) {
  functions->Wait = &one<&Native::Wait, MPI_Status*>;
  functions->Waitall = &many<&Native::Waitall, MPI_Status*>;
  functions->Waitany = &many<&Native::Waitany, int*, MPI_Status*>;
  functions->Waitsome = &many<&Native::Waitsome, int*, int*, MPI_Status*>;
  functions->Test = &one<&Native::Test, int*, MPI_Status*>;
  functions->Testall = &many<&Native::Testall, int*, MPI_Status*>;
  functions->Testany = &many<&Native::Testany, int*, int*, MPI_Status*>;
  functions->Testsome = &many<&Native::Testsome, int*, int*, MPI_Status*>;
  functions->Request_get_status = &get_status;
  functions->Request_free = &free_request;
  functions->Start = &start;
  functions->Startall = &start_all;
}

}  // namespace
}  // namespace stand_ins

void add_stand_ins(Native* functions) {
  using By = Signatures<stand_ins::Form, SmallCounts>;
  bool lacks = false;
  const auto add = [&lacks](auto& function, auto* stand_in) {
    if (function != nullptr) return;
    function = stand_in;
    lacks = true;
  };
  stand_ins::library = *functions;
#define OFFPATH_ADD(name, nonblocking, signature, meaning) \
  add(functions->name, &By::signature::init<&Native::nonblocking, Meaning::meaning>);
  OFFPATH_ADD(Barrier_init, Ibarrier, Nothing, all)
  OFFPATH_ADD(Bcast_init, Ibcast, Broadcast, all)
  OFFPATH_ADD(Gather_init, Igather, EvenRooted, recv_at_root)
  OFFPATH_ADD(Gatherv_init, Igatherv, UnevenRecvRooted, recv_at_root)
  OFFPATH_ADD(Scatter_init, Iscatter, EvenRooted, send_at_root)
  OFFPATH_ADD(Scatterv_init, Iscatterv, UnevenSendRooted, send_at_root)
  OFFPATH_ADD(Allgather_init, Iallgather, Even, all)
  OFFPATH_ADD(Allgatherv_init, Iallgatherv, UnevenRecv, all)
  OFFPATH_ADD(Alltoall_init, Ialltoall, Even, all)
  OFFPATH_ADD(Alltoallv_init, Ialltoallv, Uneven, all)
  OFFPATH_ADD(Alltoallw_init, Ialltoallw, Typed, all)
  OFFPATH_ADD(Reduce_init, Ireduce, ReductionRooted, reduction)
  OFFPATH_ADD(Allreduce_init, Iallreduce, Reduction, reduction)
  OFFPATH_ADD(Reduce_scatter_init, Ireduce_scatter, ReductionUneven, reduction)
  OFFPATH_ADD(Reduce_scatter_block_init, Ireduce_scatter_block, Reduction, reduction)
  OFFPATH_ADD(Scan_init, Iscan, Reduction, reduction)
  OFFPATH_ADD(Exscan_init, Iexscan, Reduction, reduction)
  OFFPATH_ADD(Neighbor_allgather_init, Ineighbor_allgather, Even, neighbors)
  OFFPATH_ADD(Neighbor_allgatherv_init, Ineighbor_allgatherv, UnevenRecv, neighbors)
  OFFPATH_ADD(Neighbor_alltoall_init, Ineighbor_alltoall, Even, neighbors)
  OFFPATH_ADD(Neighbor_alltoallv_init, Ineighbor_alltoallv, Uneven, neighbors)
  OFFPATH_ADD(Neighbor_alltoallw_init, Ineighbor_alltoallw, TypedBytes, neighbors)
#undef OFFPATH_ADD
  if (lacks) stand_ins::take_requests(functions);
}

}  // namespace offpath::mpi
