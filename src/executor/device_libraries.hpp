// SPDX-License-Identifier: BSD-3-Clause
// The libraries that regions see in place of the host's (frontends/mpi/device has the MPIs): in LIBDIR/offpath-device
// beside the folder of the executor.
#pragma once

namespace offpath::executor {

// Opens all of them once, privately; any thread. From then on the loader takes them, by their SONAME, for what an image
// needs, whatever RUNPATH and LD_LIBRARY_PATH say. One that cannot be opened is left out.
void open_device_libraries();

}  // namespace offpath::executor
