// SPDX-License-Identifier: BSD-3-Clause
// A function marked so is compiled for the wider vector units too, and the loader picks the best one. Not under
// sanitizers: their run time is not ready yet when the loader asks.
#pragma once

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__)
#define OFFPATH_VECTOR_CLONES __attribute__((target_clones("avx2", "default")))
#else
#define OFFPATH_VECTOR_CLONES
#endif
