// SPDX-License-Identifier: BSD-3-Clause
// A stand-in for the executor and its channel, inside the host process: upcalls of the device library go straight to
// the proxy. Regions' memory is seen by the host as it is (shared), or copied in and out (staged).
#pragma once

#include "device/upcall.h"

void use_staging(bool staged);
// As if the executor had died: everything underway has to be answered soon.
void lose_channel();
// Upcalls that the proxy has and did not answer yet.
int unanswered();
