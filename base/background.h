/* SPDX-License-Identifier: Apache-2.0 */
/* Work that can wait. While a thread does it, every other thread of the machine gets the processor first (SCHED_IDLE):
 * a search that begins does not even wait for the end of a time slice. Only threads in control groups with a weight of
 * their own compete with those of this group as a whole.
 *
 * A machine that is always busy would not let the thread go on at all, and somebody may wait for what it does next. So
 * another thread looks, and brings it forward when it has stood back for too long.
 */
#ifndef BASE_BACKGROUND_H
#define BASE_BACKGROUND_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* How a thread goes to the background and returns. All zeros: it stays where it is. */
struct background {
  bool is_possible;
  bool has_entered; /* for the thread alone: it is between enter and leave, even if it was brought forward meanwhile */
  pid_t thread;
  int policy;                     /* of the thread in front */
  _Atomic int64_t since_ns;       /* when it went there; 0: it is not there */
  _Atomic int64_t front_until_ns; /* it was brought forward, and does not go again before this */
};

/* Prepare the calling thread. It can go to the background only if the system would let it return: as a process that may
 * raise priorities (CAP_SYS_NICE), or whose RLIMIT_NICE allows its own nice value (in systemd: LimitNICE=). Elsewhere
 * background_enter() does nothing. A thread with another policy than SCHED_OTHER and SCHED_BATCH keeps it.
 *
 * b  all zeros, or prepared before
 *
 * Returns false if it is not possible. */
bool background_init(struct background *b);

/* Go to the background; return from it. In between, the thread must start no threads: they would stay there. NULL:
 * the thread stays where it is. Thread: the one that was prepared. */
void background_enter(struct background *b);
void background_leave(struct background *b);

/* If the thread has been in the background for longer than this, bring it forward, and let it stay there for ten times
 * as long. So where the processor is never free, it has its share of it for ten elevenths of the time. Thread: any one.
 */
void background_relieve(struct background *b, int64_t limit_ns);

/* Bring the thread forward for good. Thread: any one; the same one that calls background_relieve(), or after it. */
void background_end(struct background *b);

/* Lower the priority of the calling thread for good, so that it still gets a tenth of what others get. Returns false if
 * the system does not allow it. */
bool background_lower_priority(void);

#endif
