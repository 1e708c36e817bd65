// SPDX-License-Identifier: BSD-3-Clause
// Functions that tasks run: made known to the service, which has an executor load them.
#include "base/result.hpp"
#include "client/session.hpp"
#include "tasks/digest.hpp"

#include <climits>
#include <cstdlib>
#include <cstring>
#include <mutex>

using offpath::base::ErrnoGuard;
using offpath::base::Status;
namespace layout = offpath::session;
namespace tasks = offpath::tasks;
using layout::OpKind;

offpath_function_params_t offpath_function::params() const {
  return {sizeof(offpath_function_params_t), said.is_target ? uint32_t{OFFPATH_FUNCTION_TARGET} : 0,
          said.library.c_str(), said.symbol.c_str(), said.is_signed ? said.signature.c_str() : nullptr};
}

namespace {

// As executors find it, whose folder is another one.
std::string whole_path(const char* library) {
  char path[PATH_MAX];
  if (strchr(library, '/') == nullptr || realpath(library, path) == nullptr) return library;
  return path;
}

bool is_name(const char* text) {
  return text != nullptr && *text != '\0' && strnlen(text, tasks::kMaxNameBytes + 1) <= tasks::kMaxNameBytes;
}

// Code that is found by where it lies in its object.
bool unnamed(const tasks::Function& function) { return function.symbol[0] == '+' && !function.is_signed; }

std::unique_ptr<offpath_function> make_function(const offpath_session& session, const tasks::Function& said) {
  auto made = std::make_unique<offpath_function>();
  made->session = &session;
  made->name = "task " + said.symbol;
  made->said = said;
  return made;
}

// With the successor of a lost session.
Status register_again(offpath_session& session, const tasks::Function& said, offpath_function** out) {
  auto owned = make_function(session, said);
  std::unique_lock lock(session.mutex);
  offpath_session* const next = session.successor->tasks_go_on() ? session.successor->await(lock) : nullptr;
  if (next == nullptr) return Status::error(OFFPATH_ERR_SERVICE_LOST, "the service on this node was lost");
  const offpath::client::Stay there(next);
  lock.unlock();
  const offpath_function_params_t params = owned->params();
  offpath_function_t* theirs = nullptr;
  offpath_error_t error{};
  if (const offpath_status_t status = offpath_function_register(next, &params, &theirs, &error); status != OFFPATH_OK)
    return Status::error(status, "%s", error.text);
  lock.lock();
  constexpr uint32_t kOfNobody = uint32_t{1} << 31;
  owned->number = kOfNobody + static_cast<uint32_t>(session.functions.size());
  *out = owned.get();
  session.successor->add_function(owned.get(), theirs);
  session.functions.push_back(std::move(owned));
  session.successor->know_functions(lock);
  return {};
}

Status register_function(offpath_session& session, const offpath_function_params_t& params, offpath_function** out) {
  const bool is_target = params.flags == OFFPATH_FUNCTION_TARGET;
  const char* library = is_target && params.library == nullptr ? "/proc/self/exe" : params.library;
  if (params.struct_bytes != sizeof(params) || (params.flags != 0 && !is_target) || !is_name(library) ||
      !is_name(params.symbol) || (is_target && (params.symbol[0] == '+' || strchr(library, '/') == nullptr)) ||
      (params.signature != nullptr && strnlen(params.signature, tasks::kMaxNameBytes + 1) > tasks::kMaxNameBytes)) {
    return Status::error(OFFPATH_ERR_ARGUMENT,
                         "offpath_function_register: params of an unknown size or flags, or names that are "
                         "missing, too long, or (for devices) no path or no name");
  }
  if (!session.mine()) return Status::error(OFFPATH_ERR_STATE, "the session belongs to the parent process");
  tasks::Function function{whole_path(library), params.symbol, params.signature == nullptr ? "" : params.signature,
                           params.signature != nullptr, is_target};
  const tasks::Function said = function;
  bool goes_on = !session.life.check();
  if (!goes_on) {
    std::lock_guard lock(session.mutex);
    goes_on = session.successor->new_tasks_go_on();
  }
  if (goes_on) return register_again(session, said, out);
  if (const auto digest = unnamed(function) ? tasks::digest_of(function.library) : std::nullopt; digest) {
    function.signature = *digest;
    function.is_signed = true;
  }
  auto op = std::make_unique<offpath_op>(session.own, OpKind::function, "registration of a function");
  op->record = tasks::encode(function);
  op->address = static_cast<uint64_t>(session.segment.fd());
  offpath_op* posted = nullptr;
  {
    std::lock_guard lock(session.mutex);
    const offpath_status_t status = session.post(std::move(op), &posted);
    if (status != OFFPATH_OK && !session.life.lost)
      return Status::error(status, "the function cannot be registered: %s", offpath_status_string(status));
  }
  const offpath_status_t status = posted == nullptr ? OFFPATH_ERR_NOT_STARTED : offpath_op_wait(posted, UINT64_MAX);
  if (status == OFFPATH_ERR_NOT_STARTED || status == OFFPATH_ERR_SERVICE_LOST) {
    offpath_op_free(posted);
    return register_again(session, said, out);
  }
  Status result;
  if (status == OFFPATH_OK) {
    auto owned = make_function(session, said);
    owned->number = posted->function_number;
    *out = owned.get();
    offpath::client::waits::note_in(session);
    std::unique_lock lock(session.mutex);
    session.functions.push_back(std::move(owned));
    if (!session.successor->know_functions(lock))
      result =
          Status::error(OFFPATH_ERR_SERVICE_LOST, "the service that takes this one's place does not know the function");
  } else {
    const char* text = posted->result.text[0] == '\0' ? offpath_status_string(status) : posted->result.text;
    result = Status::error(status, "%s", text);
  }
  offpath_op_free(posted);
  return result;
}

}  // namespace

extern "C" {

offpath_status_t offpath_function_register(offpath_session_t* session, const offpath_function_params_t* params,
                                           offpath_function_t** function, offpath_error_t* error) {
  ErrnoGuard guard;
  Status status = Status::error(OFFPATH_ERR_ARGUMENT, "offpath_function_register: an argument is NULL");
  if (session != nullptr && params != nullptr && function != nullptr) {
    *function = nullptr;
    status = register_function(*session, *params, function);
  }
  status.copy_to(error);
  return status.code();
}

}  // extern "C"
