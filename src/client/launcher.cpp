// SPDX-License-Identifier: BSD-3-Clause
#include "client/launcher.hpp"

#include "base/environment.hpp"
#include "base/local_ranks.hpp"
#include "base/placement.hpp"
#include "session/dpus.hpp"
#include "session/launch.hpp"

#include <dlfcn.h>
#include <unistd.h>

#include <vector>

namespace offpath::client {
namespace {

using base::Environment;
using base::Fd;
using base::Result;
using base::Sharing;
using base::Status;

std::string own_folder() {
  Dl_info info{};
  if (dladdr(reinterpret_cast<void*>(&start_service), &info) == 0 || info.dli_fname == nullptr) return ".";
  const std::string path = info.dli_fname;
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash);
}

std::string find_service() {
  std::string chosen = Environment::text("OFFPATH_SERVICE_PATH");
  if (!chosen.empty()) return chosen;
  const std::string folder = own_folder();
  // Build tree or plain prefix (lib/), Debian's lib/<triplet>/, a private folder below those.
  for (const char* relative : {"/../bin/offpathd", "/../../bin/offpathd", "/offpathd", "/../../../bin/offpathd"}) {
    std::string path = folder + relative;
    if (access(path.c_str(), X_OK) == 0) return path;
  }
  return "offpathd";
}

struct Chosen {
  std::string list;
  bool shared;  // with the ranks, for want of others
};

Result<Chosen> choose_cores(const char* given, Sharing sharing) {
  if (given != nullptr && *given != '\0') return Chosen{given, false};
  const std::string configured = Environment::text("OFFPATH_SERVICE_CORES");
  if (!configured.empty()) return Chosen{configured, false};
  const base::Placement placement = base::place_service(base::local_rank_masks(), base::own_allowed_cores(), sharing);
  if (placement.cores.any()) return Chosen{base::core_list(placement.cores), placement.shared};
  return Status::error(
      OFFPATH_ERR_NO_SERVICE,
      "no core is left for the service (it never takes the application's "
      "uninvited). Leave a core free, name one in OFFPATH_SERVICE_CORES, or set OFFPATH_SERVICE_SHARE=1");
}

std::vector<std::string> service_words(const std::string& socket_path, const std::string& cores) {
  return {find_service(),
          "--listen-fd",
          std::to_string(session::kListenFd),
          "--token-fd",
          std::to_string(session::kTokenFd),
          "--socket-path",
          socket_path,
          "--cores",
          cores};
}

}  // namespace

Result<Fd> start_service(const std::string& socket_path, const offpath_attach_params_t& params) {
  const auto dpus = session::own_dpus();
  if (!dpus.ok()) return dpus.status();
  const bool agent = !dpus->empty();  // it only passes on: any core will do
  const bool share = agent || Environment::flag("OFFPATH_SERVICE_SHARE", false);
  const auto cores = choose_cores(params.service_cores, share ? Sharing::allowed : Sharing::forbidden);
  if (!cores.ok()) return cores.status();
  std::vector<std::string> words = service_words(socket_path, cores->list);
  if (share) words.push_back(agent ? "--agent" : "--share");
  return session::launch(std::move(words), socket_path, params.job_token);
}

Status start_device_service(const std::string& socket_path) {
  const auto cores = choose_cores(nullptr, Sharing::allowed);
  if (!cores.ok()) return cores.status();
  std::vector<std::string> words = service_words(socket_path, cores->list);
  // Ranks of a node that has many cores are many programs.
  words.insert(words.end(), {"--devices", "--max-clients", "4096"});
  if (cores->shared || Environment::flag("OFFPATH_SERVICE_SHARE", false)) words.push_back("--share");
  return session::launch(std::move(words), socket_path, {}).status();
}

}  // namespace offpath::client
