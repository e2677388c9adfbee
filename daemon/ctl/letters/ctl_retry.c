/* SPDX-License-Identifier: Apache-2.0 */
/* One record after the other, so that a topic has them in the order of the letters. */
#include "daemon/ctl/letters/ctl_retry.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/log.h"
#include "daemon/ctl/text/ctl_format.h"
#include "daemon/ctl/ctl_data_page.h"
#include "daemon/ctl/letters/ctl_retried.h"
#include "daemon/ctl/writer/ctl_writer.h"
#include "ingest/kafka/retried_header.h"

enum { FLUSH_TIMEOUT_MS = 30000, WHY_BYTES = 512 };

/* The records of a topic that is not the catalogue's: nobody waits until the daemon has read them. */
struct other {
  struct sender *sender;
  struct position newest;  /* where the newest record is */
  char failure[WHY_BYTES]; /* why it is nowhere; "": it is there */
};

struct retry {
  struct ctl_context *ctx;
  const struct ctl_letters_selection *selection;
  const struct ctl_retry_options *options;
  struct ctl_writer *writer; /* of the catalogue topic */
  struct other queries, seen;
  struct ctl_retried retried; /* letters of items */
  uint64_t n_written;
  uint64_t n_left_out;
};

static void retry_fini(struct retry *r)
{
  ctl_writer_close(&r->writer);
  sender_close(&r->queries.sender);
  sender_close(&r->seen.sender);
  ctl_retried_fini(&r->retried);
}

/* ---- What is left out ---- */

static bool is_of(const struct ctl_letter *letter, const char *topic)
{
  return *topic && span_equal(letter->topic, span_of_str(topic));
}

static bool is_known(const struct retry *r, const struct ctl_letter *letter)
{
  const struct config *c = r->ctx->config;

  return is_of(letter, c->catalogue.topic) || is_of(letter, c->query.topic) || is_of(letter, c->seen.topic);
}

/* Is it unknown which item the record is about? With a mapping, its key may be anywhere in the record. */
static bool is_key_unknown(const struct retry *r, const struct ctl_letter *letter)
{
  const struct config *c = r->ctx->config;

  return c->catalogue.format != CONFIG_FORMAT_SLUICE && !r->options->overwrites && is_of(letter, c->catalogue.topic);
}

/* Is it about an item whose key is known? */
static bool has_item(const struct retry *r, const struct ctl_letter *letter)
{
  return is_of(letter, r->ctx->config->catalogue.topic) && letter->record->has_key;
}

static struct ctl_item_place place_of(const struct ctl_letter *letter)
{
  return (struct ctl_item_place){ letter->partition, letter->offset, letter->record->timestamp_ms };
}

/* Has the item a record that is newer than the letter's? Then the record would undo it. */
static err_t find_newer(const struct retry *r, const struct ctl_letter *letter, bool *is_newer)
{
  struct ctl_item_place stored, from = place_of(letter);
  bool is_found = false;

  *is_newer = false;
  if (r->options->overwrites || !has_item(r, letter))
    return ERR_OK;
  *is_newer = ctl_retried_has_newer(&r->retried, letter->record->key, &from);
  if (*is_newer)
    return ERR_OK;
  TRY(ctl_data_page_find(r->ctx, letter->record->key, &is_found, &stored));
  *is_newer = is_found && !ctl_retried_wrote(&r->retried, &stored) && ctl_retried_is_newer(&stored, &from);
  return ERR_OK;
}

/* Are the letters those of one topic, or named? Then a query is meant to be asked again. */
static bool is_chosen(const struct retry *r)
{
  return r->selection->n_places || r->selection->filter.topic;
}

/* Has the record a key that no item can have? With a mapping, the item's key may be in the value. */
static bool has_wrong_key(const struct retry *r, const struct ctl_letter *letter)
{
  const struct config *c = r->ctx->config;
  size_t n = letter->record->key.n;

  return is_of(letter, c->catalogue.topic) && c->catalogue.format == CONFIG_FORMAT_SLUICE &&
         (n < 1 || n > ITEM_KEY_MAX);
}

/* Can the record not be written as it is? Says why. */
static bool is_unusable(const struct retry *r, const struct ctl_letter *letter, char why[WHY_BYTES])
{
  if (!letter->record->has_value) { /* written as it is, it would delete the item */
    snprintf(why, WHY_BYTES, "it has no value: the record is in %s, partition %d, offset %lld, if it is still there",
             log_quote(letter->topic), letter->partition, (long long)letter->offset);
    return true;
  }
  if (has_wrong_key(r, letter)) {
    snprintf(why, WHY_BYTES, "its key has %zu bytes, and that of an item 1 to %d: it would be refused again",
             letter->record->key.n, ITEM_KEY_MAX);
    return true;
  }
  if (!is_known(r, letter))
    snprintf(why, WHY_BYTES, "the configuration has no topic %s", log_quote(letter->topic));
  return !is_known(r, letter);
}

/* Is the letter left out unless an option asks for it? Says which. */
static bool needs_option(const struct retry *r, const struct ctl_letter *letter, char why[WHY_BYTES])
{
  if (letter->n_retries && !r->selection->n_places)
    snprintf(why, WHY_BYTES, "it was retried before, and refused again; to retry it all the same, name it");
  else if (!is_of(letter, r->ctx->config->catalogue.topic) && !is_chosen(r))
    snprintf(why, WHY_BYTES, "it is of topic %s; to retry it, name it, or say --topic", log_quote(letter->topic));
  else if (is_key_unknown(r, letter))
    snprintf(why, WHY_BYTES,
             "the item may have a newer record, which is not looked for in a topic of this form; "
             "to write it all the same, use --overwrite");
  else
    return false;
  return true;
}

/* Say why a letter is left out; "": it is not. */
static err_t find_why(const struct retry *r, const struct ctl_letter *letter, char why[WHY_BYTES])
{
  bool is_newer;

  why[0] = '\0';
  if (is_unusable(r, letter, why) || needs_option(r, letter, why))
    return ERR_OK;
  TRY(find_newer(r, letter, &is_newer));
  if (is_newer)
    snprintf(why, WHY_BYTES, "the item has a newer record; to replace that, use --overwrite");
  return ERR_OK;
}

/* ---- Writing ---- */

static void on_report(void *context, const struct sender_report *report)
{
  struct other *o = context;

  o->newest = (struct position){ report->partition, report->offset };
  snprintf(o->failure, sizeof o->failure, "%s", report->fate == SENDER_DELIVERED ? "" : report->reason);
}

static err_t write_other(struct retry *r, struct other *o, const struct kafka_properties *of,
                         const struct sender_message *message, struct position *at)
{
  static const struct kafka_property defaults[] = { { "message.timeout.ms", "20000" } };
  struct kafka_layers layers;

  if (!o->sender) {
    TRY(ctl_context_layers(r->ctx, defaults, 1, of, &layers));
    TRY(sender_open(&layers, on_report, o, &o->sender));
  }
  TRY(sender_send(o->sender, message));
  TRY(sender_flush(o->sender, FLUSH_TIMEOUT_MS));
  if (*o->failure)
    FAIL(ERR_KAFKA, "Kafka did not take the record: %s", o->failure);
  *at = o->newest;
  return ERR_OK;
}

static err_t write_item(struct retry *r, const struct sender_message *message, struct position *at)
{
  if (!r->writer)
    TRY(ctl_writer_open(r->ctx, "0", &r->writer));
  TRY(ctl_writer_send_message(r->writer, message));
  TRY(ctl_writer_flush(r->writer));
  *at = r->writer->newest;
  return ERR_OK;
}

/* Write the record as it was, with a header that says how often it was retried. */
static err_t write_record(struct retry *r, const struct ctl_letter *letter, struct position *at)
{
  const struct config *c = r->ctx->config;
  bool is_query = is_of(letter, c->query.topic), is_seen = is_of(letter, c->seen.topic);
  struct ctl_text n_retries = ctl_format_number(letter->n_retries + 1);
  const struct sender_header headers[] = { { RETRIED_HEADER, span_of_str(n_retries.s) },
                                           { "content-type", letter->content_type } };
  const struct sender_message message = {
    .topic = is_query  ? c->query.topic
             : is_seen ? c->seen.topic
                       : c->catalogue.topic,
    .has_partition = true, /* producers may hash keys differently */
    .partition = letter->partition,
    .has_key = letter->record->has_key,
    .key = letter->record->key,
    .has_value = true,
    .value = letter->record->value,
    .headers = headers,
    .n_headers = letter->content_type.n ? 2 : 1,
  };

  if (is_query)
    return write_other(r, &r->queries, &c->query.kafka, &message, at);
  return is_seen ? write_other(r, &r->seen, &c->seen.kafka, &message, at) : write_item(r, &message, at);
}

/* Write the record, and note that it was, or only say where it would go. */
static err_t retry_letter(struct retry *r, const struct ctl_letter *letter)
{
  struct ctl_item_place from = place_of(letter);
  bool is_dry_run = r->options->is_dry_run;
  struct position at;

  r->n_written++;
  if (is_dry_run) {
    printf("would go to %.*s, partition %d\n", (int)letter->topic.n, (const char *)letter->topic.p, letter->partition);
  } else {
    TRY(write_record(r, letter, &at));
    printf("went to %.*s, partition %d, offset %lld\n", (int)letter->topic.n, (const char *)letter->topic.p,
           at.partition, (long long)at.next);
  }
  return has_item(r, letter) ? ctl_retried_add(&r->retried, letter->record->key, &from, is_dry_run ? NULL : &at)
                             : ERR_OK;
}

static err_code_t visit(void *context, const struct ctl_letter *letter)
{
  struct retry *r = context;
  char why[WHY_BYTES];

  TRY(find_why(r, letter, why));
  printf("%d:%lld ", letter->record->partition, (long long)letter->record->offset);
  if (!*why)
    return retry_letter(r, letter);
  r->n_left_out++;
  printf("left out: %s\n", why);
  return ERR_OK;
}

/* ---- What became of them ---- */

/* Wait until the daemon has read the records, and say what it did with them. */
static err_t await_items(struct retry *r)
{
  struct ctl_counts counts;
  int64_t visible_ns;

  if (!r->writer)
    return ERR_OK;
  TRY(ctl_writer_await_visible(r->writer, NULL, &visible_ns));
  TRY(ctl_writer_counts(r->writer, &counts));
  if (counts.refused > 0)
    FAIL(ERR_ITEM, "the daemon has refused %s %s meanwhile: sluicectl dead-letters list shows why",
         ctl_format_count((uint64_t)counts.refused).s,
         ctl_format_plural((uint64_t)counts.refused, "record", "records"));
  puts("the daemon has applied all records of the catalogue");
  return ERR_OK;
}

err_t ctl_retry(struct ctl_context *ctx, const struct ctl_letters_selection *selection,
                const struct ctl_retry_options *options)
{
  AUTO(retry_fini) struct retry r = { .ctx = ctx, .selection = selection, .options = options };

  err_code_t err = ctl_letters_visit_all(ctx, selection, 0, visit, &r);
  printf("%s%s %s, %s left out\n", options->is_dry_run ? "would retry " : "retried ", ctl_format_count(r.n_written).s,
         ctl_format_plural(r.n_written, "record", "records"), ctl_format_count(r.n_left_out).s);
  TRY(err);
  TRY(await_items(&r));
  if (selection->n_places && r.n_left_out)
    FAIL(ERR_ITEM, "%s of %zu letters could not be retried", ctl_format_count(r.n_left_out).s, selection->n_places);
  return ERR_OK;
}
