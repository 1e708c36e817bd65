// SPDX-License-Identifier: BSD-3-Clause
#include "device/munge.hpp"

#include "base/environment.hpp"

#include <dlfcn.h>

#include <cstdlib>

namespace offpath::device {

using base::Result;
using base::Status;

namespace {

// As <munge.h> has them, so that nothing of it is needed to build.
constexpr int kSuccess = 0;
constexpr int kSocketOption = 8;
constexpr int kReaderOption = 9;
using Context = void*;

struct Library {
  void* handle = dlopen("libmunge.so.2", RTLD_NOW | RTLD_LOCAL);
  int (*encode)(char**, Context, const void*, int) = nullptr;
  int (*decode)(const char*, Context, void**, int*, uid_t*, gid_t*) = nullptr;
  Context (*create)() = nullptr;
  void (*destroy)(Context) = nullptr;
  int (*set)(Context, int, ...) = nullptr;
  const char* (*describe)(int) = nullptr;

  Library() {
    find(encode, "munge_encode");
    find(decode, "munge_decode");
    find(create, "munge_ctx_create");
    find(destroy, "munge_ctx_destroy");
    find(set, "munge_ctx_set");
    find(describe, "munge_strerror");
  }
  bool complete() const { return encode && decode && create && destroy && set && describe; }

 private:
  template <typename Function>
  void find(Function& function, const char* name) {
    if (handle != nullptr) function = reinterpret_cast<Function>(dlsym(handle, name));
  }
};

const Library& library() {
  static const Library opened;
  return opened;
}

Status failed(const char* why) {
  return Status::error(OFFPATH_ERR_PERMISSION,
                       "nobody says who asks: there is no key, and MUNGE: %.80s. Name the starter's key file in "
                       "OFFPATH_DEVICE_KEY_FILE, or run munged with one key everywhere",
                       why);
}

Status missing() { return failed("it is not installed"); }

Status failed(int error) { return failed(library().describe(error)); }

class OpenContext {
 public:
  OpenContext() : context_(library().create()) {
    const std::string socket = base::Environment::text("OFFPATH_MUNGE_SOCKET");
    if (context_ != nullptr && !socket.empty()) library().set(context_, kSocketOption, socket.c_str());
  }
  ~OpenContext() { library().destroy(context_); }
  OpenContext(const OpenContext&) = delete;
  OpenContext& operator=(const OpenContext&) = delete;
  Context get() const { return context_; }

 private:
  Context context_;
};

}  // namespace

Result<std::string> munge_seal(const std::string& text, uid_t reader) {
  if (!library().complete()) return missing();
  const OpenContext context;
  int error = library().set(context.get(), kReaderOption, reader);
  char* credential = nullptr;
  if (error == kSuccess)
    error = library().encode(&credential, context.get(), text.data(), static_cast<int>(text.size()));
  if (error != kSuccess) return failed(error);
  std::string out = credential;
  free(credential);
  return out;
}

Result<Opened> munge_open(const std::string& credential) {
  if (!library().complete()) return missing();
  const OpenContext context;
  void* text = nullptr;
  int bytes = 0;
  Opened opened{};
  const int error = library().decode(credential.c_str(), context.get(), &text, &bytes, &opened.uid, &opened.gid);
  if (error == kSuccess) opened.text.assign(static_cast<const char*>(text), static_cast<size_t>(bytes));
  free(text);
  if (error != kSuccess) return failed(error);
  return opened;
}

}  // namespace offpath::device
