// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/proxy/proxy.hpp"

#include "mpi/job/job.hpp"
#include "mpi/proxy/messages.hpp"
#include "mpi/regions/names.hpp"
#include "offpath/offpath.h"

#include <cstring>
#include <exception>

namespace offpath::mpi::regions {

Proxy proxy;

void Proxy::start(int provided) {
  if (!job.all().has_targets) {
    reason_ = "not all ranks have an OpenMP target plugin";
    return;
  }
  int least = provided;
  {
    const Inside inside;
    native.Allreduce(&provided, &least, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  }
  if (least < MPI_THREAD_MULTIPLE) {
    reason_ = "this MPI does not grant MPI_THREAD_MULTIPLE, which they need";
    return;
  }
  contexts_.adopt(MPI_COMM_WORLD);
  contexts_.adopt(MPI_COMM_SELF);
  active_.store(true, std::memory_order_release);
}

void Proxy::stop() {
  reason_ = "MPI_Finalize was called";
  active_.store(false, std::memory_order_release);
  progress_.stop();
  contexts_.clear();
}

void Proxy::serve(offpath_upcall_request_t* request) {
  Arguments arguments;
  const bool sound = request->code == offpath::regions::kUpcallCode && request->args_bytes == sizeof(arguments) &&
                     request->output_count >= 1 && request->outputs[0].bytes == sizeof(Result) &&
                     request->output_count <= 2 && request->input_count <= 1;
  if (!sound) {
    request->answer(request, OFFPATH_ERR_ARGUMENT);
    return;
  }
  memcpy(&arguments, request->args, sizeof(arguments));
  Upcall upcall(request, arguments);
  if (!active()) return refuse(std::move(upcall));
  if (arguments.mpi != offpath::regions::kOwnMpi) return upcall.answer(MPI_ERR_OTHER);
  try {
    dispatch(std::move(upcall));
  } catch (const std::exception&) {
    say(job.settings(), LogLevel::error, "out of memory in an MPI call of a target region");
  }
}

void Proxy::refuse(Upcall upcall) {
  if (!reported_.exchange(true)) {
    say(job.settings(), LogLevel::error,
        "MPI calls in target regions return errors: %s. See docs/guide-openmp-mpi.md, \"What is needed\"", reason_);
  }
  upcall.answer_quietly(MPI_ERR_OTHER);
}

void Proxy::dispatch(Upcall upcall) {
  const Arguments& arguments = upcall.arguments();
  const Call call = arguments.call;
  if (call >= Call::win_set_info && call <= Call::get) {
    const auto shared = std::make_shared<Upcall>(std::move(upcall));
    progress_.post([this, shared] { windows_.serve(std::move(*shared)); });
    return;
  }
  const std::shared_ptr<Contexts> contexts = contexts_.find(arguments.handle);
  if (contexts == nullptr) return upcall.answer(MPI_ERR_COMM);
  std::unique_ptr<Task> task;
  switch (call) {
    case Call::comm_size:
      upcall.result.value = static_cast<uint64_t>(contexts->size);
      upcall.result.rank = contexts->rank;
      return upcall.answer(MPI_SUCCESS);
    case Call::comm_set_info:
      if (static_cast<Crossing>(arguments.flag) != Crossing::unsaid) {
        contexts->region_crosses.store(static_cast<Crossing>(arguments.flag) == Crossing::on);
      }
      return upcall.answer(MPI_SUCCESS);
    case Call::abort:
      native.Abort(contexts->hosts, arguments.peer);
      return upcall.answer(MPI_ERR_OTHER);
    case Call::win_create: {
      const auto shared = std::make_shared<Upcall>(std::move(upcall));
      progress_.post([this, shared, contexts] { windows_.create(std::move(*shared), contexts); });
      return;
    }
    case Call::send:
    case Call::recv:
    case Call::iprobe:
      task = start_message(std::move(upcall), contexts);
      break;
    case Call::barrier:
    case Call::bcast:
    case Call::allreduce:
    case Call::alltoall:
    case Call::allgather:
      task = start_collective(std::move(upcall), contexts);
      break;
    default:
      return upcall.answer(MPI_ERR_ARG);
  }
  // Often it is over already, and needs no other thread.
  if (task != nullptr && !task->advance()) progress_.add(std::move(task));
}

void Proxy::when_partner(const std::shared_ptr<HostWindow>& host, HostTask::Run run) {
  progress_.add(std::make_unique<HostTask>(windows_, host, std::move(run)));
}

void Proxy::retire(const std::shared_ptr<HostWindow>& host) {
  host->settle();
  host->begin();
  progress_.post([host] {
    host->bytes = 0;
    host->end(MPI_SUCCESS);
  });
  host->settle();
}

}  // namespace offpath::mpi::regions
