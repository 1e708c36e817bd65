// SPDX-License-Identifier: BSD-3-Clause
// The memory of a client on this machine: what it shares is used in place, the rest by CMA. And how an agent does the gets
// and puts that a service asks for there.
#pragma once

#include "agent/link.hpp"
#include "memory/aliases.hpp"
#include "memory/port.hpp"
#include "session/segment_view.hpp"

namespace offpath::agent {

// Proves that it is the right process's: errors with OFFPATH_ERR_PERMISSION if it may not be read, or is another's.
base::Result<std::shared_ptr<memory::Port>> memory_on_this_machine(const session::SegmentView& view, pid_t process,
                                                                   std::shared_ptr<memory::Aliases> aliases);

// Where a put to that memory can go straight from the link, if anywhere.
Place place_for_put(const std::shared_ptr<memory::Port>& port, const wire::LinkMessage& message, size_t payload_bytes);
// Does a get or put, and answers it. The port stays until what was got has left.
void do_access(const std::shared_ptr<memory::Port>& port, const wire::LinkMessage& message, fabric::Bytes payload,
               Link& link);
// Says how it ended, without data.
void end_access(const wire::LinkMessage& message, offpath_status_t status, Link& link);

}  // namespace offpath::agent
