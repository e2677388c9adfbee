/* SPDX-License-Identifier: Apache-2.0 */
/* Commit the positions to which the topic was read to a consumer group, so that Kafka's tools show the lag. The daemon
 * never reads them: its own positions are in the store. */
#include "daemon/catalogue/catalogue_state.h"

#include "base/clock.h"

/* Positions are committed even if they have not changed, because a broker forgets a group that is not used. Those that
 * it has refused are committed again after some intervals: not after each, because each refusal is logged. */
enum { UNCHANGED_EVERY_S = 600, REFUSED_INTERVALS = 10 };

/* Return a number that differs, in all likelihood, after any position has changed. */
static uint64_t digest_of(const struct position *positions, size_t n)
{
  uint64_t digest = n;

  for (size_t i = 0; i < n; i++)
    digest = digest * UINT64_C(0x9e3779b97f4a7c15) + (uint64_t)positions[i].next;
  return digest;
}

err_t catalogue_commit(struct catalogue *c)
{
  int64_t now = clock_now_ns(), interval_ns = (int64_t)c->with.config->catalogue.commit_interval_ms * CLOCK_NS_PER_MS;
  struct position *positions;
  size_t n = 0;

  if (interval_ns == 0 || now < c->commit.due_ns)
    return ERR_OK;
  c->commit.due_ns = now + interval_ns;
  region_reset(&c->scratch);
  TRY(region_array(&c->scratch, c->topic.positions.n, sizeof *positions, &positions));
  for (size_t i = 0; i < c->topic.positions.n; i++) {
    if (!c->topic.positions.items[i].is_foreign)
      positions[n++] = c->topic.positions.items[i].position.at;
  }
  uint64_t digest = digest_of(positions, n);
  if (topic_reader_take_refusal(c->topic.reader) && c->commit.again_ns > now + REFUSED_INTERVALS * interval_ns)
    c->commit.again_ns = now + REFUSED_INTERVALS * interval_ns;
  if (digest == c->commit.digest && now < c->commit.again_ns)
    return ERR_OK;
  if (topic_reader_commit(c->topic.reader, positions, n)) {
    c->commit.digest = digest;
    c->commit.again_ns = now + UNCHANGED_EVERY_S * CLOCK_NS_PER_S;
  }
  return ERR_OK;
}
