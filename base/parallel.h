/* SPDX-License-Identifier: Apache-2.0 */
/* Work that several threads do at once: they are started for it, and it is over when all of them have ended. For long
 * work at the start and after a rebuild; searches have threads of their own. */
#ifndef BASE_PARALLEL_H
#define BASE_PARALLEL_H

#include "base/err.h"

/* The largest number of threads that parallel_run() starts, the caller included. */
enum { PARALLEL_MAX = 64 };

/* One thread's part of the work. The calls share it among themselves, whatever their number. */
typedef err_code_t (*parallel_body)(void *context);

/* Call `body` in n threads at once, one of which is the caller, and wait until all calls have returned. If the system
 * starts fewer threads, there are fewer calls, but at least one.
 *
 * Returns ERR_OK, or the error of a call that failed; it is then the caller's newest failure. Thread: any. */
err_t parallel_run(size_t n, parallel_body body, void *context);

#endif
