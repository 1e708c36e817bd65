// SPDX-License-Identifier: BSD-3-Clause
// Offpath for C++20: sessions, operations, functions and tasks of <offpath/offpath.h> as objects. Header only.
//
//   offpath::Session session(params);
//   auto values = session.allocate<double>(1000);
//   offpath::Function scale = session.function("./libscale.so", "scale", "scale(double, inout double[]) version 1");
//   offpath::Operation first = session.task(scale, 2.0, {offpath::inout(values.span())});
//   offpath::Operation second = session.task([factor](const offpath_task_t& task) { ... return 0; },
//                                            {offpath::inout(values.span())}, {.after = {first.get()}});
//   second.wait();
//
// A lambda that is a task is shipped as its bytes, so all that it captures is trivially copyable, and no pointers or
// references: it runs in another process. Its code must lie in a shared object, which an executor loads; that of the program itself
// cannot be loaded, and is refused.
#pragma once

#include <offpath/offpath.h>
#include <offpath/region.h>

#include <dlfcn.h>
#include <link.h>

#include <concepts>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <initializer_list>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace offpath {

class Error : public std::runtime_error {
 public:
  Error(offpath_status_t status, const std::string& text) : std::runtime_error(text), status_(status) {}
  offpath_status_t status() const noexcept { return status_; }

 private:
  offpath_status_t status_;
};

// What a task reads, writes, or both.
template <typename T>
offpath_task_range_t in(std::span<T> memory) {
  return {const_cast<void*>(static_cast<const void*>(memory.data())), memory.size_bytes(), OFFPATH_TASK_IN, 0};
}
template <typename T>
requires(!std::is_const_v<T>) offpath_task_range_t out(std::span<T> memory) {
  return {memory.data(), memory.size_bytes(), OFFPATH_TASK_OUT, 0};
}
template <typename T>
requires(!std::is_const_v<T>) offpath_task_range_t inout(std::span<T> memory) {
  return {memory.data(), memory.size_bytes(), OFFPATH_TASK_INOUT, 0};
}

// In a function: its range number `index` as elements.
template <typename T>
std::span<T> range_of(const offpath_task_t& task, uint32_t index) {
  const offpath_task_range_t& range = task.ranges[index];
  return {static_cast<T*>(range.address), range.bytes / sizeof(T)};
}

// Freed when it is destroyed; an unfinished one goes on.
class Operation {
 public:
  Operation() = default;
  explicit Operation(offpath_op_t* op) : op_(op) {}

  offpath_op_t* get() const noexcept { return op_.get(); }
  // Throws how it failed. `timeout_ns`: false when it is not done by then.
  bool wait(uint64_t timeout_ns = UINT64_MAX) const { return judge(offpath_op_wait(op_.get(), timeout_ns)); }
  bool test() const { return judge(offpath_op_test(op_.get())); }
  // Without throwing.
  offpath_status_t status() const noexcept { return offpath_op_test(op_.get()); }
  std::string describe() const {
    char text[512];
    offpath_op_describe(op_.get(), text, sizeof(text));
    return text;
  }
  // Of tasks.
  void cancel() const { offpath_task_cancel(op_.get()); }
  offpath_task_result_t result() const {
    offpath_task_result_t result{};
    result.struct_bytes = sizeof(result);
    if (const offpath_status_t status = offpath_task_result(op_.get(), &result); status != OFFPATH_OK)
      throw Error(status, "no result: the operation is no task, or not finished");
    return result;
  }

 private:
  bool judge(offpath_status_t status) const {
    if (status < 0) throw Error(status, describe());
    return status == OFFPATH_OK;
  }
  struct Free {
    void operator()(offpath_op_t* op) const { offpath_op_free(op); }
  };
  std::unique_ptr<offpath_op_t, Free> op_;
};

// A handle; it lives as long as its session.
struct Function {
  offpath_function_t* handle = nullptr;
};

// Memory that the service and executors share; freed when it is destroyed, which must be before its session is.
template <typename T>
class Shared {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  Shared(offpath_session_t* session, size_t count) : session_(session), count_(count) {
    void* memory = nullptr;
    const offpath_status_t status = offpath_memory_allocate(session, count * sizeof(T), &memory);
    if (status != OFFPATH_OK) throw Error(status, std::string("no shared memory: ") + offpath_status_string(status));
    data_ = static_cast<T*>(memory);
  }
  Shared(Shared&& other) noexcept
      : session_(other.session_), data_(std::exchange(other.data_, nullptr)), count_(other.count_) {}
  Shared(const Shared&) = delete;
  Shared& operator=(const Shared&) = delete;
  Shared& operator=(Shared&&) = delete;
  ~Shared() { offpath_memory_free(session_, data_); }

  std::span<T> span() const noexcept { return {data_, count_}; }
  T* data() const noexcept { return data_; }
  size_t size() const noexcept { return count_; }
  T& operator[](size_t index) const { return data_[index]; }

 private:
  offpath_session_t* session_;
  T* data_ = nullptr;
  size_t count_;
};

struct TaskOptions {
  std::vector<offpath_op_t*> after{};
  int32_t priority = 0;
  uint64_t limit_ns = 0;
  uint64_t cost_ns = 0;
  uint64_t deadline_ns = 0;
};

using Ranges = std::initializer_list<offpath_task_range_t>;

template <typename F>
concept Shippable =
    std::is_class_v<F> && std::is_trivially_copyable_v<F> && std::invocable<const F&, const offpath_task_t&>;

class Session {
 public:
  explicit Session(const offpath_attach_params_t& params) {
    offpath_error_t error{};
    offpath_session_t* session = nullptr;
    if (offpath_session_attach(&params, &session, &error) != OFFPATH_OK) throw Error(error.status, error.text);
    session_.reset(session);
  }

  offpath_session_t* get() const noexcept { return session_.get(); }
  bool alive() const noexcept { return offpath_session_alive(session_.get()) == 1; }

  template <typename T>
  Shared<T> allocate(size_t count) const {
    return Shared<T>(session_.get(), count);
  }

  // signature NULL: not checked.
  Function function(const std::string& library, const std::string& symbol, const char* signature = nullptr) const {
    return add({sizeof(offpath_function_params_t), 0, library.c_str(), symbol.c_str(), signature});
  }
  // A function of the program's own that its compiler has built for devices (OFFPATH_FUNCTION_TARGET).
  Function target_function(const std::string& symbol, const char* signature = nullptr) const {
    return add({sizeof(offpath_function_params_t), OFFPATH_FUNCTION_TARGET, nullptr, symbol.c_str(), signature});
  }

  Operation task(Function function, std::span<const std::byte> argument, Ranges ranges,
                 const TaskOptions& options = {}) const {
    offpath_task_params_t params{};
    params.struct_bytes = sizeof(params);
    params.function = function.handle;
    params.argument = argument.data();
    params.argument_bytes = argument.size();
    params.ranges = ranges.begin();
    params.ranges_count = static_cast<uint32_t>(ranges.size());
    params.after = options.after.data();
    params.after_count = static_cast<uint32_t>(options.after.size());
    params.priority = options.priority;
    params.limit_ns = options.limit_ns;
    params.cost_ns = options.cost_ns;
    params.deadline_ns = options.deadline_ns;
    offpath_op_t* op = nullptr;
    if (const offpath_status_t status = offpath_task_submit(session_.get(), &params, &op); status != OFFPATH_OK)
      throw Error(status, std::string("the task cannot be submitted: ") + offpath_status_string(status));
    return Operation(op);
  }

  template <typename A>
  requires(std::is_trivially_copyable_v<A> && !std::is_pointer_v<A> &&
           !std::convertible_to<const A&, std::span<const std::byte>>) Operation
      task(Function function, const A& argument, Ranges ranges, const TaskOptions& options = {})
  const { return task(function, std::as_bytes(std::span<const A, 1>(&argument, 1)), ranges, options); }

  template <Shippable F>
  Operation task(const F& closure, Ranges ranges, const TaskOptions& options = {}) {
    static_assert(sizeof(F) <= OFFPATH_TASK_ARGUMENT_MAX_BYTES && alignof(F) <= 64);
    return task(function_at(reinterpret_cast<const void*>(&run<F>)), std::as_bytes(std::span<const F, 1>(&closure, 1)),
                ranges, options);
  }

 private:
  Function add(const offpath_function_params_t& params) const {
    Function function;
    offpath_error_t error{};
    if (offpath_function_register(session_.get(), &params, &function.handle, &error) != OFFPATH_OK)
      throw Error(error.status, error.text);
    return function;
  }

  // Runs in the executor.
  template <typename F>
  static int run(const offpath_task_t* task) {
    const F& closure = *std::launder(static_cast<const F*>(task->argument));
    if constexpr (std::is_void_v<std::invoke_result_t<const F&, const offpath_task_t&>>) {
      closure(*task);
      return 0;
    } else {
      return closure(*task);
    }
  }

  // Code without a name is found by where it lies in its object.
  Function function_at(const void* code) {
    const std::lock_guard lock(*mutex_);
    Function& known = closures_[code];
    if (known.handle != nullptr) return known;
    Dl_info about{};
    if (dladdr(code, &about) == 0 || about.dli_fname == nullptr || is_program(code))
      throw Error(
          OFFPATH_ERR_ARGUMENT,
          "the code of this lambda lies in the program itself (executors load shared objects only). Build it into one");
    char symbol[32];
    snprintf(
        symbol, sizeof(symbol), "+%llx",
        static_cast<unsigned long long>(static_cast<const char*>(code) - static_cast<const char*>(about.dli_fbase)));
    return known = function(about.dli_fname, symbol);
  }

  static bool is_program(const void* code) {
    Dl_info about{};
    link_map* map = nullptr;  // the program's has no name
    return dladdr1(code, &about, reinterpret_cast<void**>(&map), RTLD_DL_LINKMAP) == 0 || map == nullptr ||
           map->l_name == nullptr || map->l_name[0] == '\0';
  }

  struct Detach {
    void operator()(offpath_session_t* session) const { offpath_session_detach(session); }
  };
  std::unique_ptr<offpath_session_t, Detach> session_;
  std::unique_ptr<std::mutex> mutex_ = std::make_unique<std::mutex>();
  std::map<const void*, Function> closures_;
};

// A part of the program in the traces that Offpath records of it (<offpath/region.h>), as long as the object is there.
class Region {
 public:
  explicit Region(std::string name) : name_(std::move(name)) { offpath_region_begin(name_.c_str()); }
  ~Region() { offpath_region_end(name_.c_str()); }
  Region(const Region&) = delete;
  Region& operator=(const Region&) = delete;

 private:
  std::string name_;
};

}  // namespace offpath
