// SPDX-License-Identifier: BSD-3-Clause
// What who waits for other PEs owes them.
#pragma once

namespace offpath::shmem {

// One step of the native library: other PEs may need it, for a lock or an atomic here.
void progress();

}  // namespace offpath::shmem
