// SPDX-License-Identifier: BSD-3-Clause
// What an executor of tasks leaves on the board when it dies.
#pragma once

#include "tasks/board.hpp"

namespace offpath::executor {

// For the whole process, once.
void leave_words_on_board(tasks::LastWords& where);
// Remembers what lies where in this process: a signal handler cannot ask the loader.
void note_objects();

}  // namespace offpath::executor
