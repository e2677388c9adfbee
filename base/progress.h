/* SPDX-License-Identifier: Apache-2.0 */
/* Long work notes that it goes on, and does not know who listens. The daemon listens to feed its watchdog. */
#ifndef BASE_PROGRESS_H
#define BASE_PROGRESS_H

/* Called for each progress_note(). It must be cheap, and safe in several threads at once. */
typedef void (*progress_heard)(void *context);

struct progress_listener {
  progress_heard heard; /* NULL: nobody listens */
  void *context;
};

/* Note that the calling thread's work goes on. Thread: any. */
void progress_note(void);

/* Get or set who listens to the calling thread. Errands inherit the listener of the thread that begins them. */
struct progress_listener progress_listener_get(void);
void progress_listener_set(struct progress_listener listener);

#endif
