/* SPDX-License-Identifier: Apache-2.0 */
/* One heartbeat at a time: while the topic is away, they do not pile up. */
#include "daemon/delivery/heartbeat.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/clock.h"
#include "ingest/wire/wire_partial.h"

enum { KEY_BYTES = 80 };

err_t heartbeat_init(const char *topic, uint32_t shard, uint32_t n_shards, struct heartbeat *out)
{
  struct partial partial = { .kind = PARTIAL_HEARTBEAT, .shard = shard, .n_shards = n_shards };

  *out = (struct heartbeat){ .topic = topic, .shard = shard, .n_shards = n_shards };
  return wire_encode_partial(&partial, &out->region, &out->value);
}

void heartbeat_fini(struct heartbeat *h)
{
  region_fini(&h->region);
}

void heartbeat_step(struct heartbeat *h, struct outlet *outlet)
{
  char key[KEY_BYTES];
  int64_t now_ns = clock_now_ns();

  if (h->is_on_its_way || now_ns < h->due_ns)
    return;
  int n = snprintf(key, sizeof key, "heartbeat/%" PRIu32 "/%" PRIu32 "/%" PRIu64, h->shard, h->n_shards, h->n_sent++);
  struct sender_message message = {
    .topic = h->topic,
    .has_key = true,
    .key = span_of(key, (size_t)n),
    .has_value = true,
    .value = h->value,
  };
  h->due_ns = now_ns + CLOCK_NS_PER_S;
  h->item = (struct outlet_item){ 0 };
  h->is_on_its_way = true;
  if (!outlet_send(outlet, &h->item, &message))
    h->is_on_its_way = false;
}

bool heartbeat_end(struct heartbeat *h, const struct outlet_item *item)
{
  if (item != &h->item)
    return false;
  h->is_on_its_way = false;
  return true;
}
