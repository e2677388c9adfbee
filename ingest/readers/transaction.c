/* SPDX-License-Identifier: Apache-2.0 */
/* Transactions on top of the sender. librdkafka's errors say what may be done: repeat the call, abort, or give up. */
#include "ingest/readers/transaction.h"

#include "base/clock.h"
#include "base/mem.h"
#include "ingest/kafka/kafka_group.h"
#include "ingest/kafka/kafka_topic.h"

/* A transaction that its producer leaves open holds back all readers until it times out. */
#define TRANSACTION_TIMEOUT_MS "10000"
#define MESSAGE_TIMEOUT_MS     "5000"
enum { COMMIT_TIMEOUT_MS = 8000, FLUSH_TIMEOUT_MS = 6000, ABORT_TIMEOUT_MS = 8000, FULL_POLL_MS = 10 };

enum { TOPICS_MAX = 1000, REFUSED_S = 10 };

struct known_topic {
  char *name;
  int64_t refused_until_ns; /* 0: it is there */
};

struct transaction {
  struct sender *sender;
  bool has_transactions;
  rd_kafka_resp_err_t cause; /* of the last transaction's failure: the first error */
  struct known_topic *topics;
  size_t n_topics, topics_capacity;
};

static const struct kafka_property common[] = {
  { "message.timeout.ms", MESSAGE_TIMEOUT_MS },
  { "topic.metadata.propagation.max.ms", "2000" }, /* give up an unknown topic after 2 s and not after 30 s */
  { "enable.idempotence", "true" },
};

static void on_report(void *context, const struct sender_report *report)
{
  struct transaction_message *message = report->opaque;

  (void)context;
  message->fate = report->fate;
  message->reason = report->reason;
}

err_t transaction_open(const struct kafka_layers *layers, const char *id, struct transaction **out)
{
  AUTO(transaction_close) struct transaction *t = NULL;
  struct kafka_layers all = *layers;
  const struct kafka_property own[] = { { "transactional.id", id },
                                        { "transaction.timeout.ms", TRANSACTION_TIMEOUT_MS } };

  kafka_layers_add(&all, common, sizeof common / sizeof common[0]);
  if (id)
    kafka_layers_add(&all, own, sizeof own / sizeof own[0]);
  TRY(mem_array(1, sizeof *t, &t));
  t->has_transactions = id != NULL;
  TRY(sender_open(&all, on_report, t, &t->sender));
  *out = t;
  t = NULL;
  return ERR_OK;
}

void transaction_close(struct transaction **t)
{
  if (!*t)
    return;
  sender_close(&(*t)->sender);
  for (size_t i = 0; i < (*t)->n_topics; i++)
    mem_free(&(*t)->topics[i].name);
  mem_free(&(*t)->topics);
  mem_free(t);
}

/* Turn an error of the transactional API into ours, and free it. */
static err_t check(struct transaction *t, rd_kafka_error_t *error, const char *what, bool *must_abort)
{
  if (!error)
    return ERR_OK;
  if (!t->cause)
    t->cause = rd_kafka_error_code(error);
  bool is_retriable = rd_kafka_error_is_retriable(error) || rd_kafka_error_code(error) == RD_KAFKA_RESP_ERR__TIMED_OUT;
  bool is_fenced = rd_kafka_error_code(error) == RD_KAFKA_RESP_ERR__FENCED;
  *must_abort = rd_kafka_error_txn_requires_abort(error);
  err_code_t err = err_set(is_retriable || *must_abort ? ERR_KAFKA_RETRY : ERR_KAFKA, __FILE__, __LINE__,
                           "a transaction cannot be %s: %s%s", what, rd_kafka_error_string(error),
                           is_fenced ? ": another daemon with the same merge.instance has started (give each a name of "
                                       "its own), or this one was suspended for too long"
                                     : "");
  rd_kafka_error_destroy(error);
  return err;
}

err_t transaction_init(struct transaction *t, int timeout_ms)
{
  bool must_abort;

  if (!t->has_transactions)
    return ERR_OK;
  return check(t, rd_kafka_init_transactions(sender_client(t->sender), timeout_ms), "prepared", &must_abort);
}

/* ---- Sending ---- */

/* Queue the messages that are not delivered. Returns false if one was refused at once. */
static bool queue_all(struct transaction *t, struct transaction_message *messages, size_t n)
{
  bool is_fine = true;

  for (size_t i = 0; i < n; i++) {
    struct transaction_message *m = &messages[i];
    if (m->fate == SENDER_DELIVERED)
      continue;
    m->message.opaque = m;
    while ((m->fate = sender_try(t->sender, &m->message, &m->reason)) == SENDER_FULL)
      sender_poll(t->sender, FULL_POLL_MS);
    is_fine &= m->fate == SENDER_QUEUED;
  }
  return is_fine;
}

static err_t verify_delivered(const struct transaction_message *messages, size_t n)
{
  for (size_t i = 0; i < n; i++) {
    if (messages[i].fate != SENDER_DELIVERED)
      FAIL(messages[i].fate == SENDER_FATAL ? ERR_KAFKA : ERR_KAFKA_RETRY,
           "a message for topic %s was not delivered: %s", messages[i].message.topic,
           messages[i].reason ? messages[i].reason : "no broker has answered");
  }
  return ERR_OK;
}

/* Without transactions: the messages first. A crash before the positions are committed sends them again. */
static err_t send_plain(struct transaction *t, struct transaction_message *messages, size_t n, struct partial_reader *r,
                        const struct position *positions, size_t n_positions)
{
  queue_all(t, messages, n);
  if (sender_flush(t->sender, FLUSH_TIMEOUT_MS) != ERR_OK)
    FAIL(ERR_KAFKA, "brokers have answered neither yes nor no for %s ms", MESSAGE_TIMEOUT_MS);
  TRY(verify_delivered(messages, n));
  partial_reader_commit(r, positions, n_positions);
  return ERR_OK;
}

static err_t add_positions(struct transaction *t, struct partial_reader *r, const struct position *positions, size_t n)
{
  bool must_abort; /* it must in any case */
  rd_kafka_topic_partition_list_t *list = kafka_group_offsets(partial_reader_topic(r), positions, n);
  rd_kafka_consumer_group_metadata_t *group = rd_kafka_consumer_group_metadata(partial_reader_client(r));

  rd_kafka_error_t *error =
      rd_kafka_send_offsets_to_transaction(sender_client(t->sender), list, group, COMMIT_TIMEOUT_MS);
  rd_kafka_consumer_group_metadata_destroy(group);
  rd_kafka_topic_partition_list_destroy(list);
  return check(t, error, "given the positions of the group", &must_abort);
}

/* The group's positions are fenced by the member's generation: a daemon that has lost its partitions cannot commit. */
static err_t try_transaction(struct transaction *t, struct transaction_message *messages, size_t n,
                             struct partial_reader *r, const struct position *positions, size_t n_positions,
                             bool *must_abort)
{
  rd_kafka_t *rk = sender_client(t->sender);

  TRY(check(t, rd_kafka_begin_transaction(rk), "begun", must_abort));
  *must_abort = true;
  if (!queue_all(t, messages, n)) { /* the others first: brokers refuse to abort before they know a partition */
    TRY(sender_flush(t->sender, FLUSH_TIMEOUT_MS));
    FAIL(ERR_KAFKA_RETRY, "a message was refused");
  }
  TRY(add_positions(t, r, positions, n_positions));
  err_code_t err = check(t, rd_kafka_commit_transaction(rk, COMMIT_TIMEOUT_MS), "committed", must_abort);
  if (err == ERR_KAFKA_RETRY && !*must_abort) /* it may have been committed: only the same call may tell */
    err = check(t, rd_kafka_commit_transaction(rk, COMMIT_TIMEOUT_MS), "committed", must_abort);
  if (err == ERR_KAFKA_RETRY && !*must_abort)
    FAIL(ERR_KAFKA, "%s: nobody knows whether it is, until the next start", err_message());
  return err;
}

/* Nothing of the transaction counts as delivered. */
static err_t abort_transaction(struct transaction *t, struct transaction_message *messages, size_t n)
{
  struct err_kept cause;
  bool must_abort;

  err_keep(ERR_KAFKA_RETRY, &cause);
  err_code_t err =
      check(t, rd_kafka_abort_transaction(sender_client(t->sender), ABORT_TIMEOUT_MS), "aborted", &must_abort);
  for (size_t i = 0; i < n; i++)
    messages[i].fate =
        messages[i].fate == SENDER_DELIVERED || messages[i].fate == SENDER_QUEUED ? SENDER_CLOSED : messages[i].fate;
  if (err != ERR_OK)
    FAIL(ERR_KAFKA, "%s", err_message());
  return err_give_back(&cause);
}

err_t transaction_send(struct transaction *t, struct transaction_message *messages, size_t n, struct partial_reader *r,
                       const struct position *positions, size_t n_positions)
{
  bool must_abort = false;

  if (!t->has_transactions)
    return send_plain(t, messages, n, r, positions, n_positions);
  for (size_t i = 0; i < n; i++)
    messages[i].fate = SENDER_QUEUED;
  t->cause = RD_KAFKA_RESP_ERR_NO_ERROR;
  err_code_t err = try_transaction(t, messages, n, r, positions, n_positions, &must_abort);
  if (err != ERR_KAFKA_RETRY)
    return err;
  if (!must_abort)
    FAIL(ERR_KAFKA, "%s", err_message());
  return abort_transaction(t, messages, n);
}

bool transaction_is_fenced(const struct transaction *t)
{
  char reason[8];

  return rd_kafka_fatal_error(sender_client(t->sender), reason, sizeof reason) == RD_KAFKA_RESP_ERR__FENCED;
}

bool transaction_lacked_topic(const struct transaction *t)
{
  switch (t->cause) {
  case RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED:
  case RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART:
  case RD_KAFKA_RESP_ERR__STATE: /* it had failed before it was given the positions */
    return true;
  default:
    return false;
  }
}

/* ---- Topics ---- */

static struct known_topic *find_topic(const struct transaction *t, const char *topic)
{
  for (size_t i = 0; i < t->n_topics; i++) {
    if (strcmp(t->topics[i].name, topic) == 0)
      return &t->topics[i];
  }
  return NULL;
}

/* Remember a topic, if there is room. Returns NULL if there is none. */
static struct known_topic *add_topic(struct transaction *t, const char *topic)
{
  struct known_topic known = { 0 };

  if (t->n_topics == TOPICS_MAX ||
      mem_grow(t->n_topics + 1, sizeof *t->topics, &t->topics_capacity, &t->topics) != ERR_OK ||
      mem_copy_str(topic, &known.name) != ERR_OK)
    return NULL;
  t->topics[t->n_topics] = known;
  return &t->topics[t->n_topics++];
}

bool transaction_has_topic(struct transaction *t, const char *topic, int timeout_ms)
{
  struct known_topic *known = find_topic(t, topic);

  if (known && clock_now_ns() < known->refused_until_ns)
    return false;
  if (known && !known->refused_until_ns)
    return true;
  if (!kafka_topic_is_there(sender_client(t->sender), topic, timeout_ms))
    return false;
  if (known)
    known->refused_until_ns = 0;
  else
    add_topic(t, topic);
  return true;
}

err_t transaction_verify_topic(struct transaction *t, const char *topic, int timeout_ms)
{
  int n = 0;
  rd_kafka_resp_err_t error = kafka_topic_n_partitions(sender_client(t->sender), topic, timeout_ms, &n);

  if (error == RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART)
    FAIL(ERR_KAFKA_TOPIC, "topic %s does not exist", topic);
  if (error < 0) /* librdkafka's own */
    FAIL(ERR_KAFKA_RETRY, "no broker has said whether topic %s exists: %s", topic, rd_kafka_err2str(error));
  return ERR_OK;
}

void transaction_refuse_topic(struct transaction *t, const char *topic)
{
  struct known_topic *known = find_topic(t, topic);

  if (!known)
    known = add_topic(t, topic);
  if (known)
    known->refused_until_ns = clock_now_ns() + REFUSED_S * CLOCK_NS_PER_S;
}
