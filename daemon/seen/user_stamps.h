/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers that rise when what a user has seen may have changed. Users share numbers: then one of them looks changed
 * when another one is. */
#ifndef DAEMON_SEEN_USER_STAMPS_H
#define DAEMON_SEEN_USER_STAMPS_H

#include <stdatomic.h>
#include <xxhash.h>

#include "base/span.h"

/* A megabyte: at 1,000 users a second, a number rises for somebody else every two minutes. */
enum { USER_STAMPS = 1 << 17 };

/* All zeros is valid. */
struct user_stamps {
  _Atomic uint64_t of[USER_STAMPS];
};

static inline size_t user_stamps_place(struct span user)
{
  return XXH3_64bits(user.p, user.n) % USER_STAMPS;
}

/* Thread: any. */
static inline uint64_t user_stamps_get(const struct user_stamps *s, struct span user)
{
  return atomic_load(&s->of[user_stamps_place(user)]);
}

static inline void user_stamps_touch(struct user_stamps *s, struct span user)
{
  atomic_fetch_add(&s->of[user_stamps_place(user)], 1);
}

#endif
