/* SPDX-License-Identifier: Apache-2.0 */
/* A scan that follows the answer topic from its end. */
#include "ingest/readers/answer_reader.h"

#include "base/clock.h"
#include "base/mem.h"
#include "ingest/kafka/kafka_client.h"
#include "ingest/readers/topic_scan.h"

struct answer_reader {
  struct topic_scan *scan;
};

err_t answer_reader_open(const struct kafka_layers *layers, const char *topic, int timeout_ms,
                         struct answer_reader **out)
{
  static const struct topic_scan_range range = { .follows = true };
  AUTO(answer_reader_close) struct answer_reader *r = NULL;

  TRY(mem_array(1, sizeof *r, &r));
  TRY(topic_scan_open(layers, topic, &range, timeout_ms, &r->scan));
  *out = r;
  r = NULL;
  return ERR_OK;
}

void answer_reader_close(struct answer_reader **r)
{
  if (*r)
    topic_scan_close(&(*r)->scan);
  mem_free(r);
}

err_t answer_reader_next(struct answer_reader *r, int timeout_ms, struct span *value)
{
  int64_t deadline_ns = clock_now_ns() + timeout_ms * CLOCK_NS_PER_MS;
  struct topic_scan_record record;
  enum topic_scan_found found;

  do {
    TRY(topic_scan_next(r->scan, timeout_ms > 0 ? kafka_ms_until(deadline_ns) : 0, &record, &found));
    *value = found == TOPIC_SCAN_RECORD ? record.value : (struct span){ 0 };
  } while (value->n == 0 && clock_now_ns() < deadline_ns);
  return ERR_OK;
}
