/* SPDX-License-Identifier: Apache-2.0 */
/* Opening the clients of a merge, and the wait for the next ones to be let into the group. */
#include "daemon/merge/merge_clients.h"

#include <stdio.h>
#include <unistd.h>

#include "base/log.h"
#include "daemon/health/pulse.h"
#include "ingest/kafka/kafka_renewal.h"

/* Room for a host's name, an address, and what is put around them. */
enum { HOST_BYTES = 256, NAME_BYTES = 600, GROUP_BYTES = 300 };

enum { PREPARE_MS = 1000, TOPIC_MS = 1000 };

/* ---- Opening ---- */

/* A name that no other daemon has, and that a restart keeps. */
static void name_transactions(const struct config *config, char out[NAME_BYTES])
{
  char host[HOST_BYTES] = "";

  gethostname(host, sizeof host - 1);
  if (*config->merge.instance)
    snprintf(out, NAME_BYTES, "%s.merge.%s", config->query.group, config->merge.instance);
  else
    snprintf(out, NAME_BYTES, "%s.merge.%s.%s", config->query.group, host, config->http.listen);
}

err_t merge_clients_open_producer(const struct merge_clients_context *context, struct merge_clients *out)
{
  const struct config *config = context->config;
  struct kafka_layers layers = kafka_setup_layers(context->kafka, &config->query.answer_kafka, false);
  char id[NAME_BYTES];

  layers.client = "answers";
  name_transactions(config, id);
  out->version = kafka_renewal_version(); /* before the certificates are read */
  return transaction_open(&layers, config->merge.is_exactly_once ? id : NULL, &out->transaction);
}

err_t merge_clients_open_reader(const struct merge_clients_context *context, struct merge_clients *out)
{
  const struct config *config = context->config;
  struct kafka_layers layers = kafka_setup_layers(context->kafka, &config->query.kafka, true);
  char group[GROUP_BYTES];

  snprintf(group, sizeof group, "%s.merge", config->query.group);
  layers.client = "partials";
  return partial_reader_open(&layers, config->query.partials_topic, group, (int64_t)config->merge.remember_ms,
                             context->is_stopping, &out->reader);
}

void merge_clients_fini(struct merge_clients *c)
{
  partial_reader_close(&c->reader);
  transaction_close(&c->transaction);
}

static err_t open_like(const struct merge_clients_context *context, const struct merge_clients *former,
                       struct merge_clients *out)
{
  AUTO(merge_clients_fini) struct merge_clients next = { 0 };

  TRY(merge_clients_open_producer(context, &next));
  if (former->reader)
    TRY(merge_clients_open_reader(context, &next));
  *out = next;
  next = (struct merge_clients){ 0 };
  return ERR_OK;
}

/* Take up new certificates at once: nothing was read yet, and the former ones may be why brokers do not answer. */
static err_t renew(const struct merge_clients_context *context, struct merge_clients *c, struct renewal_wait *wait)
{
  struct merge_clients next;

  if (c->version == kafka_renewal_version() || !renewal_wait_is_over(wait))
    return ERR_OK;
  err_code_t err = open_like(context, c, &next);
  if (err == ERR_CONFIG) { /* it was good before */
    renewal_wait_begin(wait, "answers");
    return ERR_OK;
  }
  TRY(err);
  renewal_wait_end(wait);
  merge_clients_fini(c);
  *c = next;
  log_info("kafka_client_renewed", "client=answers");
  return ERR_OK;
}

/* A former daemon of the same name may have left a transaction open. And librdkafka would let the first mark, and so
 * the second batch, wait for a second until it knows the topic. */
err_t merge_clients_prepare(const struct merge_clients_context *context, struct merge_clients *c)
{
  struct renewal_wait wait = { 0 };
  err_code_t err;

  while ((err = transaction_init(c->transaction, PREPARE_MS)) == ERR_KAFKA_RETRY &&
         !atomic_load(context->is_stopping)) {
    pulse_beat();
    log_warn("merge_waiting", "reason=%s", log_failure());
    TRY(renew(context, c, &wait));
  }
  if (err == ERR_OK)
    (void)transaction_has_topic(c->transaction, context->config->query.partials_topic, TOPIC_MS);
  return err;
}

/* ---- Handover ---- */

/* Begin, and give up the handover that is under way: its clients have former certificates too. */
static err_t begin(struct merge_handover *h, const struct merge_clients_context *context,
                   const struct merge_clients *former)
{
  struct merge_clients next;
  err_code_t err = open_like(context, former, &next);

  if (err == ERR_CONFIG) { /* it was good before */
    renewal_wait_begin(&h->wait, "partials");
    return ERR_OK;
  }
  TRY(err);
  renewal_wait_end(&h->wait);
  merge_clients_fini(&h->next);
  h->next = next;
  h->generation = partial_reader_generation(former->reader);
  return ERR_OK;
}

/* Has the group made another assignment with the next consumer in it? Another merge that has come changes the
 * assignment too: that does not prove that brokers let the next consumer in. */
static bool is_let_in(struct merge_handover *h, const struct merge_clients *former)
{
  uint64_t generation = partial_reader_generation(former->reader);
  bool has_changed = generation != h->generation;

  h->generation = generation;
  return partial_reader_is_assigned(h->next.reader) || (has_changed && partial_reader_is_member(h->next.reader));
}

err_t merge_handover_step(struct merge_handover *h, const struct merge_clients_context *context,
                          const struct merge_clients *former, bool *is_due)
{
  uint64_t version = h->next.reader ? h->next.version : former->version;
  struct partial_record none;
  bool has_record;

  *is_due = false;
  if (version != kafka_renewal_version() && renewal_wait_is_over(&h->wait))
    TRY(begin(h, context, former));
  if (!h->next.reader)
    return ERR_OK;
  TRY(partial_reader_poll(h->next.reader, 0, false, &has_record, &none));
  *is_due = is_let_in(h, former);
  return ERR_OK;
}

err_t merge_handover_at_once(struct merge_handover *h, const struct merge_clients_context *context,
                             const struct merge_clients *former)
{
  merge_clients_fini(&h->next);
  *h = (struct merge_handover){ 0 };
  return open_like(context, former, &h->next);
}

struct merge_clients merge_handover_end(struct merge_handover *h)
{
  struct merge_clients next = h->next;

  *h = (struct merge_handover){ 0 };
  return next;
}
