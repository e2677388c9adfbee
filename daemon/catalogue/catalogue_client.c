/* SPDX-License-Identifier: Apache-2.0 */
/* Where the threads of the Kafka client run while records are read that nobody waits for. Taking in hundreds of
 * thousands of records a second is most of the work of a fill, and librdkafka's threads do it. So they stand back
 * behind searches as the catalogue thread does.
 *
 * Where the processors are always busy, they would hardly run at all. Then they bring few records, and come forward for
 * ten times as long as they were back. If few come because the network is slow, or because this thread takes few, the
 * client has little to do, and being in front harms no search. */
#include "daemon/catalogue/catalogue_state.h"

#include "base/clock.h"

enum { BACK_MS = 200, FEW_RECORDS = 2000, FRONT_MS = 10 * BACK_MS };

static void move(struct catalogue *c, bool stands_back, int64_t now_ns)
{
  if (stands_back != (c->client.since_ns != 0)) {
    c->client.since_ns = stands_back ? now_ns : 0;
    c->client.n_records = 0;
  }
  topic_reader_stand_back(c->topic.reader, stands_back);
}

void catalogue_relegate_client(struct catalogue *c)
{
  int64_t now_ns = clock_now_ns();

  move(c, c->stand_back.has_entered && now_ns >= c->client.front_until_ns, now_ns);
}

/* Once in BACK_MS, see how many records the client brings. */
static void measure(struct catalogue *c, int64_t now_ns)
{
  if (now_ns - c->client.since_ns < BACK_MS * CLOCK_NS_PER_MS)
    return;
  if (c->client.n_records < FEW_RECORDS)
    c->client.front_until_ns = now_ns + FRONT_MS * CLOCK_NS_PER_MS;
  c->client.since_ns = now_ns;
  c->client.n_records = 0;
}

void catalogue_recall_client(struct catalogue *c, size_t n_records)
{
  int64_t now_ns = clock_now_ns();

  if (!c->client.since_ns)
    return;
  c->client.n_records += n_records;
  measure(c, now_ns);
  if (!c->gather.newest_can_wait)
    move(c, false, now_ns);
}
