/* SPDX-License-Identifier: Apache-2.0 */
/* A short table of the errors that were logged lately. */
#include "ingest/kafka/kafka_repeats.h"

#include <pthread.h>
#include <stddef.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/clock.h"

enum { SLOTS = 32, EVERY_S = 30 };

struct slot {
  uint64_t digest;
  int64_t logged_ns; /* 0: the slot is free */
  uint64_t n_more;
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct slot slots[SLOTS];

/* A reason ends with how long the try took: "... (after 3ms in state CONNECT)". */
static uint64_t digest_of(int error, const char *reason)
{
  const char *end = strstr(reason, " (after ");

  return XXH3_64bits_withSeed(reason, end ? (size_t)(end - reason) : strlen(reason), (uint64_t)error);
}

/* Return the slot of the digest, else the one that was logged longest ago. */
static struct slot *find(uint64_t digest)
{
  struct slot *oldest = &slots[0];

  for (size_t i = 0; i < SLOTS; i++) {
    if (slots[i].logged_ns && slots[i].digest == digest)
      return &slots[i];
    if (slots[i].logged_ns < oldest->logged_ns)
      oldest = &slots[i];
  }
  *oldest = (struct slot){ .digest = digest };
  return oldest;
}

bool kafka_repeats_allow(int error, const char *reason, uint64_t *n_more)
{
  uint64_t digest = digest_of(error, reason);
  int64_t now_ns = clock_now_ns();

  pthread_mutex_lock(&mutex);
  struct slot *s = find(digest);
  bool is_due = !s->logged_ns || now_ns - s->logged_ns >= EVERY_S * CLOCK_NS_PER_S;
  *n_more = s->n_more;
  if (is_due)
    *s = (struct slot){ .digest = digest, .logged_ns = now_ns };
  else
    s->n_more++;
  pthread_mutex_unlock(&mutex);
  return is_due;
}
