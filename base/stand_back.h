/* SPDX-License-Identifier: Apache-2.0 */
/* Work that can wait. While a thread does it, every other thread of the machine gets the processor first (SCHED_IDLE):
 * a search that begins does not even wait for the end of a time slice. Only threads in control groups with a weight of
 * their own compete with those of this group as a whole.
 *
 * A machine that is always busy would not let the thread go on at all, and somebody may wait for what it does next. So
 * another thread looks, and brings it forward when it has stood back for too long.
 */
#ifndef BASE_STAND_BACK_H
#define BASE_STAND_BACK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* How a thread stands back and returns. All zeros: it never stands back. */
struct stand_back {
  bool is_possible;
  bool has_entered; /* for the thread alone: it is between enter and leave, even if it was brought forward meanwhile */
  pid_t thread;
  int policy;                     /* of the thread in front */
  _Atomic int64_t since_ns;       /* when it began to stand back; 0: it does not */
  _Atomic int64_t front_until_ns; /* it was brought forward, and does not stand back again before this */
};

/* Prepare the calling thread. It can stand back only if the system would let it return: as a process that may
 * raise priorities (CAP_SYS_NICE), or whose RLIMIT_NICE allows its own nice value (in systemd: LimitNICE=). Elsewhere
 * stand_back_enter() does nothing. A thread with another policy than SCHED_OTHER and SCHED_BATCH keeps it.
 *
 * b  all zeros, or prepared before
 *
 * Returns false if it is not possible. */
bool stand_back_init(struct stand_back *b);

/* Stand back; return. In between, the thread must start no threads: they would never return. NULL: it does not stand
 * back. Thread: the one that was prepared. */
void stand_back_enter(struct stand_back *b);
void stand_back_leave(struct stand_back *b);

/* If the thread has stood back for longer than this, bring it forward, and let it stay there for ten times as long. So
 * where the processor is never free, it has its share of it for ten elevenths of the time. Thread: any one.
 */
void stand_back_relieve(struct stand_back *b, int64_t limit_ns);

/* Bring the thread forward for good. Thread: any one; the same one that calls stand_back_relieve(), or after it. */
void stand_back_end(struct stand_back *b);

/* Lower the priority of the calling thread for good, so that it still gets a tenth of what others get. Returns false if
 * the system does not allow it. */
bool stand_back_for_good(void);

#endif
