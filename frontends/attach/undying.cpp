// SPDX-License-Identifier: BSD-3-Clause
// Global objects of a preloaded library are never destroyed. A program may call MPI until its very end, from a function
// of atexit or the destructor of an object of its own, and those that it registered before it loaded us run after ours.
// The compiler registers destructors by this function; hidden, it is ours for this library alone. So does atexit, which
// for shared libraries is linked into them: use on_exit.
extern "C" __attribute__((visibility("hidden"))) int __cxa_atexit(void (*)(void*), void*, void*) noexcept;

int __cxa_atexit(void (*)(void*), void*, void*) noexcept { return 0; }
