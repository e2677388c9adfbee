/* SPDX-License-Identifier: Apache-2.0 */
/* Work that another thread does while the caller goes on. The thread is started for it and ends with it. */
#ifndef BASE_ERRAND_H
#define BASE_ERRAND_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

#include "base/err.h"
#include "base/progress.h"

typedef err_code_t (*errand_body)(void *context);

struct errand {
  pthread_t thread;
  const char *name;
  errand_body body;
  void *context;
  struct progress_listener listener; /* of the thread that began it */
  struct err_kept failure;           /* of the body */
  void (*drop)(void *context);       /* of an errand that was left behind */
  _Atomic bool is_met;               /* the body has returned, or the errand was left behind: the second one drops */
};

/* Begin to call body(context) in a new thread. The errand must stay where it is until errand_join(). Returns false, and
 * begins nothing, if the system starts no thread.
 *
 * name  of the thread, for `top -H` and debuggers: static, at most 15 bytes
 */
bool errand_begin(const char *name, errand_body body, void *context, struct errand *out);

/* Has the body returned? Then errand_join() does not block. Thread: the one that began it. */
bool errand_is_over(const struct errand *errand);

/* Wait until the body has returned. Call it once for each errand that was begun; then errand->failure tells how the
 * body ended. */
void errand_join(struct errand *errand);

/* Do not wait for the body, because the process is about to end. drop(context) is called once the body has returned. It
 * may free the errand. Call this instead of errand_join(). Does not block. */
void errand_leave(struct errand *errand, void (*drop)(void *context));

/* Wait for the body, but not longer than limit_ms, then leave it behind. Its end is dropped in any case. */
void errand_drop(struct errand *errand, int64_t limit_ms, void (*drop)(void *context));

/* Return how many errands were left behind and run on. If there are any, the process must not run exit handlers,
 * because their threads still use the libraries. Thread: any. */
size_t errand_n_left(void);

#endif
