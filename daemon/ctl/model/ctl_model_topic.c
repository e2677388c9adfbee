/* SPDX-License-Identifier: Apache-2.0 */
/* A scan from the first record, and a producer for one record. */
#include "daemon/ctl/model/ctl_model_topic.h"

#include <stdio.h>

#include "daemon/ctl/ctl_scan.h"
#include "ingest/wire/model_record.h"
#include "ingest/kafka/sender.h"

enum { FLUSH_TIMEOUT_MS = 30000, REASON_BYTES = 256 };

static err_t verify_topic(const struct ctl_context *ctx)
{
  if (!*ctx->config->models.topic)
    FAIL(ERR_CONFIG,
         "%s has no models.topic: name the topic that controls generations of models, here and for the daemon: "
         "`models: {topic: sluice.models}`",
         ctx->config->path);
  return ERR_OK;
}

/* ---- Reading ---- */

struct reading {
  struct region *region;
  struct model_state *state;
};

static err_code_t take(void *context, const struct topic_scan_record *record)
{
  struct reading *r = context;
  struct model_change change;
  err_code_t err = model_record_decode(record->key, record->has_value, record->value, r->region, &change);

  if (err_class(err) == ERR_CLASS_REJECT)
    return ERR_OK;
  TRY(err);
  return model_state_apply(r->state, &change);
}

err_t ctl_model_topic_read(struct ctl_context *ctx, struct model_state *out)
{
  const struct topic_scan_range range = { .newest = TOPIC_SCAN_FROM_FIRST };
  struct reading r = { &ctx->region, out };

  *out = (struct model_state){ 0 };
  TRY(verify_topic(ctx));
  return ctl_scan_visit_all(ctx, ctx->config->models.topic, &range, take, &r);
}

/* ---- Writing ---- */

struct fate {
  bool is_delivered;
  int64_t offset;
  char reason[REASON_BYTES];
};

static void on_report(void *context, const struct sender_report *report)
{
  struct fate *fate = context;

  fate->is_delivered = report->fate == SENDER_DELIVERED;
  fate->offset = report->offset;
  snprintf(fate->reason, sizeof fate->reason, "%s", report->reason ? report->reason : "");
}

static err_t send(struct sender *sender, const struct ctl_context *ctx, const struct model_change *change,
                  struct region *region)
{
  char key[SPACE_NAME_MAX + 1];
  struct space_name name = { change->space, change->generation };
  struct sender_message message = { .topic = ctx->config->models.topic, .has_key = true, .has_value = true };

  if (!space_name_print(&name, key))
    FAIL(ERR_USAGE, "with its generation, the name of the space has more than %d bytes", SPACE_NAME_MAX);
  message.key = span_of_str(key);
  if (change->generation == 1) /* the plain name is the key of the switches */
    message.key =
        span_of(key, (size_t)snprintf(key, sizeof key, "%.*s@1", (int)change->space.n, (const char *)change->space.p));
  TRY(model_record_encode(change, region, &message.value));
  return sender_send(sender, &message);
}

err_t ctl_model_topic_write(struct ctl_context *ctx, const struct model_change *change, int64_t *next)
{
  static const struct kafka_property defaults[] = { { "acks", "all" }, { "message.timeout.ms", "20000" } };
  AUTO(sender_close) struct sender *sender = NULL;
  struct fate fate = { .reason = "no answer" };
  struct kafka_layers layers;

  TRY(verify_topic(ctx));
  TRY(ctl_context_layers(ctx, defaults, 2, &ctx->config->catalogue.kafka, &layers));
  TRY(sender_open(&layers, on_report, &fate, &sender));
  TRY(send(sender, ctx, change, &ctx->region));
  TRY(sender_flush(sender, FLUSH_TIMEOUT_MS));
  if (!fate.is_delivered)
    FAIL(ERR_KAFKA, "topic %s did not take the record: %s", ctx->config->models.topic, fate.reason);
  *next = fate.offset + 1;
  return ERR_OK;
}
