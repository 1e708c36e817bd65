// SPDX-License-Identifier: BSD-3-Clause
// Vector programs as text, in the notation of docs/guide-krylov.md: what -info :ksp shows, and what is compared with
// `offpath split`.
#pragma once

#include <offpath/offpath.h>

#include <span>
#include <string>

namespace offpath::petsc {

struct Names {
  std::span<const char*const> vectors, scalars;  // scalars called 1 stay out of the text
};

// "q = m + beta * q; gamma = (r, u); sum gamma; beta = gamma / gamma_old". Parts of matrices stay out.
std::string text_of(const offpath_program_t& program, const Names& names);

}  // namespace offpath::petsc
