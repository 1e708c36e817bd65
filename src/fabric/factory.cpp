// SPDX-License-Identifier: BSD-3-Clause
#include "fabric/factory.hpp"

#include "base/environment.hpp"
#include "base/log.hpp"
#include "fabric/rdma.hpp"

namespace offpath::fabric {

#define FABRIC(name, address) base::Result<std::unique_ptr<Context>> open_##name(const JobKey& key);
#include "fabric/fabrics.def"
#undef FABRIC

namespace {

struct Entry {
  const char *name, *address;
  base::Result<std::unique_ptr<Context>> (*open)(const JobKey& key);  // nullptr: its library was not there
};

#define FABRIC(name, address) {#name, #address, OFFPATH_HAS_FABRIC_##name ? open_##name : nullptr},
constexpr Entry kEntries[] = {
#include "fabric/fabrics.def"
};
#undef FABRIC

}  // namespace

bool wants_rdma(const std::string& rdma_folder) {
  const bool asks_for_security = !base::Environment::text("OFFPATH_FABRIC_SECURITY").empty();  // cards have none
  return has_rdma(rdma_folder) && !asks_for_security;
}

base::Result<Made> make(const std::string& name, const JobKey& key) {
  if (name.empty() && wants_rdma()) {
    auto made = make("rdma", key);
    if (made.ok()) return made;
    base::log_write(base::LogLevel::warn, "%s", made.status().text());
  }
  const std::string wanted = name.empty() ? "tcp" : name;
  std::string names;
  for (const Entry& entry : kEntries) {
    names += (names.empty() ? "" : ", ") + std::string(entry.name);
    if (wanted != entry.name) continue;
    if (entry.open == nullptr) {
      return base::Status::error(OFFPATH_ERR_NO_SERVICE,
                                 "this Offpath was built without the fabric '%s'. Install one that has it, or set "
                                 "OFFPATH_FABRIC=tcp",
                                 entry.name);
    }
    auto context = entry.open(key);
    if (!context.ok()) return context.status();
    return Made{entry.address, std::move(context.value())};
  }
  return base::Status::error(OFFPATH_ERR_NO_SERVICE,
                             "there is no fabric '%.40s' (services need one to reach each other). Leave OFFPATH_FABRIC "
                             "out or set it to one of: %s",
                             name.c_str(), names.c_str());
}

}  // namespace offpath::fabric
