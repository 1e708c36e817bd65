// SPDX-License-Identifier: BSD-3-Clause
// The local link: a Unix socket between a client and its node's service. It carries the attach exchange (with the
// session segment's descriptor), doorbells, and by its closing the news of the other side's death. Path sockets, not
// abstract ones: host and DPU may be in different network namespaces.
//
//   client -> service   AttachRequest + segment descriptor;  one byte kDoorbell;  one byte kDetach;
//                       FileMessage + the file's descriptor, before the file is opened by a slot
//   service -> client   AttachReply;  one byte kDetached
//
// A process that wants to watch sends an AttachRequest of the kind observe, with neither segment nor token, and gets an
// AttachReply with the descriptor of what is published (observation.hpp), for as long as it keeps the socket open.
// `offpathd --for-agents` sends one of the kind agent, with the token, and gets the address at which one worker awaits
// that agent (docs/design/0020-dpu-agent.md). `offpath service restart` sends one of the kind replace, with neither, and gets the process
// that is in the service's place by then, or why there is none (replacement.hpp).
#pragma once

#include "base/fd.hpp"
#include "base/result.hpp"

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace offpath::session {

inline constexpr uint32_t kLinkVersion = 10;
inline constexpr uint8_t kDoorbell = 'd';
inline constexpr uint8_t kDetach = 'q';
inline constexpr uint8_t kDetached = 'Q';
inline constexpr uint8_t kFile = 'f';          // the first byte of a FileMessage; to a service on this machine only
inline constexpr uint8_t kHostIsLost = 'l';    // from an agent's door: the client may live, but cannot be served
inline constexpr uint8_t kHostIsSilent = 's';  // the same, because its agent gives no sign of life

enum class RequestKind : uint32_t { attach = 0, observe = 1, agent = 2, replace = 3 };

inline constexpr uint32_t kNodeOnly = 1;  // it talks to nobody on other nodes

struct AttachRequest {
  uint32_t version;
  uint32_t kind;  // RequestKind
  uint64_t segment_bytes;
  uint8_t token[OFFPATH_TOKEN_BYTES];
  uint32_t flags;  // attach: kNodeOnly; agent: which of its doors, 0 first
  uint32_t reserved;
};

// What follows the word of a message from a client, of which most have none.
struct FileMessage {
  uint8_t word;  // kFile
  uint8_t reserved[3];
  uint32_t number;  // of the client's files
};
static_assert(sizeof(FileMessage) == 8);

inline constexpr uint32_t kServiceSharesCores = 1;
inline constexpr uint32_t kServiceIsFar = 2;  // on another machine: it shares no memory with its clients

struct AttachReply {
  uint32_t version;
  int32_t status;
  uint32_t flags;  // kServiceSharesCores, kServiceIsFar
  uint32_t workers;
  uint32_t helpers;
  uint32_t clients;
  int32_t process;  // of the service: with a listener made by a client, SO_PEERCRED names that client
  uint32_t address_bytes;
  uint8_t address[OFFPATH_ADDRESS_MAX_BYTES];
  char text[252];
  int32_t thread;  // of that process, which serves this client; 0: not said
};

struct PeerCredentials {
  pid_t pid;
  uid_t uid;
};

// The folder of the sockets, created with mode 0700 and refused if somebody else could write to it:
// OFFPATH_RUNTIME_DIR, else one in XDG_RUNTIME_DIR, else one in /tmp.
// None for a program with more rights than who started it.
base::Result<std::string> runtime_folder();
// The socket of one job on this node, derived from its token. The name ends with the node, as nodes may share a folder. A
// service that serves other machines by their agents has one of its own: a machine may be its own DPU.
enum class For { clients, agents };
std::string socket_path(const std::string& folder, const uint8_t (&token)[OFFPATH_TOKEN_BYTES],
                        For whom = For::clients);

base::Result<base::Fd> listen_at(const std::string& path);
// Code OFFPATH_ERR_NO_SERVICE when nobody listens (stale or missing socket), OFFPATH_ERR_STATE when so many wait
// there already that there was no room within timeout_ms (at least 1).
base::Result<base::Fd> connect_to(const std::string& path, int timeout_ms = 10000);
// Who may make or remove sockets in the folder: the descriptor's owner. Errors when another one is that for timeout_ms.
base::Result<base::Fd> lock_folder(const std::string& folder, int timeout_ms);

// Removes sockets of this node at which nobody listens: jobs that were killed left them. By the folder's owner.
void remove_dead_sockets(const std::string& folder);

// The socket at a path as it was at the time, to be removed when its service is found dead: unless a new one has
// replaced it, or is about to.
class SocketFile {
 public:
  SocketFile() = default;
  explicit SocketFile(std::string path);
  const std::string& path() const { return path_; }
  void remove() const;

 private:
  bool same_as(const SocketFile& other) const;
  std::string path_;
  uint64_t inode_ = 0;  // 0: none
  int64_t born_s_ = 0, born_ns_ = 0;
};

// The name of a listening socket that this process serves. It was made there, or is to be moved there once it answers
// (replacement.hpp). While it is under way, or if whoever was to move it is lost, another one's socket is at that path.
class OwnSocketName {
 public:
  OwnSocketName() = default;
  OwnSocketName(int listening, std::string path);
  const std::string& path() const { return path_; }
  // Wherever it is; nobody else's.
  void remove() const;

 private:
  std::string path_, made_at_;
  uint64_t device_ = 0, inode_ = 0;  // 0: none
};

base::Result<PeerCredentials> peer_credentials(int socket);

// One message, with at most one descriptor. send never raises SIGPIPE. receive: empty Fd when none came; errors when
// the message is not exactly `bytes` long or nothing came within timeout_ms (-1: wait for ever).
base::Status send_message(int socket, const void* data, size_t bytes, int fd_to_pass = -1);
base::Result<base::Fd> receive_message(int socket, void* data, size_t bytes, int timeout_ms);

}  // namespace offpath::session
