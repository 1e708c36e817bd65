// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/native/stand_ins.hpp"

#include "mpi/native/narrowed.hpp"
#include "mpi/native/signatures.hpp"
#include "mpi/native/standing.hpp"

#include <dlfcn.h>

#include <exception>
#include <memory>
#include <utility>
#include <vector>

namespace offpath::mpi {
namespace stand_ins {
namespace {

// A derived datatype, although the application may free it. A predefined one, or none, stays what it is: operators know
// only those.
class Kept {
 public:
  explicit Kept(MPI_Datatype* type) {
    int numbers = 0, combiner = MPI_COMBINER_NAMED;
    if (*type == MPI_DATATYPE_NULL) return;
    const int code = native.Type_get_envelope(*type, &numbers, &numbers, &numbers, &combiner);
    if (code != MPI_SUCCESS || combiner == MPI_COMBINER_NAMED) return;
    if (native.Type_contiguous(1, *type, &made_) != MPI_SUCCESS) return;
    native.Type_commit(&made_);
    *type = made_;
  }
  ~Kept() {
    if (made_ != MPI_DATATYPE_NULL) native.Type_free(&made_);
  }
  Kept(Kept&& other) noexcept : made_(std::exchange(other.made_, MPI_DATATYPE_NULL)) {}
  Kept& operator=(Kept&&) = delete;

 private:
  MPI_Datatype made_ = MPI_DATATYPE_NULL;
};

using Begin = int(const Arguments& arguments, MPI_Comm comm, MPI_Request* request);

class Persistent : public Standing {
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
  ~Persistent() override {
    if (current != MPI_REQUEST_NULL) native.Request_free(&current);
    native.Comm_free(&comm_);
  }

  int start(MPI_Request*) override {
    if (current == MPI_REQUEST_NULL) return begin_(arguments_, comm_, &current);
    native.Comm_call_errhandler(comm_, MPI_ERR_REQUEST);  // started already
    return MPI_ERR_REQUEST;
  }

 private:
  void keep(Stated* side) {
    if (side->buffer != MPI_IN_PLACE) kept_.emplace_back(&side->type);
  }

  Begin* begin_;
  Arguments arguments_;
  MPI_Comm comm_;
  std::vector<Kept> kept_;
};

int make(Begin* begin, const Arguments& arguments, Meaning meaning, MPI_Comm comm, MPI_Request* request) {
  MPI_Comm own = MPI_COMM_NULL;
  int code = native.Comm_dup(comm, &own);
  if (code != MPI_SUCCESS) return code;
  try {
    auto made = std::make_unique<Persistent>(begin, arguments, meaning, own);
    code = native.Recv_init(nullptr, 0, MPI_BYTE, MPI_PROC_NULL, 0, MPI_COMM_SELF, request);
    if (code == MPI_SUCCESS) standings.add(*request, std::move(made));
    return code;
  } catch (const std::exception&) {
    native.Comm_call_errhandler(comm, MPI_ERR_NO_MEM);
    return MPI_ERR_NO_MEM;
  }
}

template <typename Width, typename... Fields>
struct Form : Signature<Width, Fields...> {
  using Base = Signature<Width, Fields...>;
  template <auto nonblocking>
  static int begin(const Arguments& arguments, MPI_Comm comm, MPI_Request* request) {
    return Base::call(native.*nonblocking, arguments, comm, request);
  }
  template <auto nonblocking, Meaning meaning>
  static int init(typename Fields::Value... values, MPI_Comm comm, MPI_Info, MPI_Request* request) {
    return make(&begin<nonblocking>, Base::collect(values...), meaning, comm, request);
  }
};

// ---- functions that take requests: one, or a count of them

template <auto function>
struct Exchanging;
template <typename... Rest, int (*Native::*function)(MPI_Request*, Rest...)>
struct Exchanging<function> {
  static int call(MPI_Request* request, Rest... rest) {
    Exchanged exchanged(1, request);
    return (native.*function)(exchanged.get(), rest...);
  }
};
template <typename... Rest, int (*Native::*function)(int, MPI_Request*, Rest...)>
struct Exchanging<function> {
  static int call(int count, MPI_Request* requests, Rest... rest) {
    Exchanged exchanged(count, requests);
    return (native.*function)(count, exchanged.get(), rest...);
  }
};

int get_status(MPI_Request request, int* flag, MPI_Status* status) {
  Exchanged exchanged(1, &request);
  return native.Request_get_status(*exchanged.get(), flag, status);
}

int free_request(MPI_Request* request) {
  if (request != nullptr) standings.take(*request);
  return native.Request_free(request);
}

int start(MPI_Request* request) { return standings.start(request); }
int start_all(int count, MPI_Request* requests) { return standings.start_all(count, requests); }

// Handlers throw nothing.
template <auto* ours, typename... Arguments>
int safely(Arguments... arguments) {
  try {
    return (*ours)(arguments...);
  } catch (const std::exception&) {
    return MPI_ERR_NO_MEM;
  }
}
template <auto* ours, typename... Arguments>
void* safe(int (*)(Arguments...)) {
  return reinterpret_cast<void*>(&safely<ours, Arguments...>);
}

}  // namespace
}  // namespace stand_ins

bool add_stand_ins(Native* functions) {
  using By = Signatures<stand_ins::Form, SmallCounts>;
  bool lacks = false;
  const auto add = [&lacks](auto& function, auto* stand_in) {
    if (function != nullptr) return;
    function = stand_in;
    lacks = true;
  };
#define OFFPATH_STAND_IN(name, nonblocking, signature, meaning) \
  add(functions->name, &By::signature::init<&Native::nonblocking, Meaning::meaning>);
#define OFFPATH_COLLECTIVE(name, small, signature, meaning, ...) \
  OFFPATH_STAND_IN(name##_init, I##small, signature, meaning)
  OFFPATH_STAND_IN(Barrier_init, Ibarrier, Nothing, all)
#include "mpi/native/collectives.def"
#undef OFFPATH_STAND_IN
  return lacks;
}

void set_missing(offpath_backend_t* backend) {
  using namespace stand_ins;
  void** const handlers = backend->handlers;
  const auto set = [backend](void*& handler, const char* name, const char* old_name, void* ours) {
    void* theirs = dlsym(backend->mpi, name);
    if (theirs == nullptr) theirs = dlsym(backend->mpi, old_name);
    if (ours != theirs) handler = ours;
  };
#define OFFPATH_MPI_FUNCTION(name, waits, seen) \
  set(handlers[OFFPATH_FUNCTION_##name], "PMPI_" #name, "PMPIX_" #name, reinterpret_cast<void*>(native.name));
#include <offpath/words/mpi_functions.def>
  if (!native.stands_in) return;
#define OFFPATH_SET(name, ours) handlers[OFFPATH_FUNCTION_##name] = safe<&ours>(&ours);
#define OFFPATH_EXCHANGE(name) OFFPATH_SET(name, Exchanging<&Native::name>::call)
  OFFPATH_EXCHANGE(Wait)
  OFFPATH_EXCHANGE(Waitall)
  OFFPATH_EXCHANGE(Waitany)
  OFFPATH_EXCHANGE(Waitsome)
  OFFPATH_EXCHANGE(Test)
  OFFPATH_EXCHANGE(Testall)
  OFFPATH_EXCHANGE(Testany)
  OFFPATH_EXCHANGE(Testsome)
  OFFPATH_SET(Request_get_status, get_status)
  OFFPATH_SET(Request_free, free_request)
  OFFPATH_SET(Start, start)
  OFFPATH_SET(Startall, start_all)
#undef OFFPATH_EXCHANGE
#undef OFFPATH_SET
}

}  // namespace offpath::mpi
