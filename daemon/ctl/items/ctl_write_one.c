/* SPDX-License-Identifier: Apache-2.0 */
/* Write one record and report what the daemon did with it: shared by put and delete. */
#include "daemon/ctl/items/ctl_write_one.h"

#include <getopt.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/space_name.h"
#include "daemon/ctl/text/ctl_format.h"
#include "daemon/ctl/text/ctl_option.h"
#include "daemon/ctl/letters/ctl_letters.h"
#include "daemon/ctl/text/ctl_print.h"
#include "daemon/ctl/text/ctl_say.h"
#include "ingest/wire/wire.h"

/* How long a letter is waited for, and how many of each partition are looked at. */
enum { LETTER_TRIES = 20, LETTER_WAIT_MS = 100, LETTERS_LOOKED_AT = 100, REASON_BYTES = 1024 };

/* Is it a space of the configuration, or a generation of one? The daemon knows which generations there are. */
static bool has_space(const struct config *config, struct span text)
{
  struct space_name name;
  bool is_name = space_name_parse(text, &name);

  for (size_t i = 0; is_name && i < config->n_spaces; i++) {
    if (span_equal(name.space, span_of_str(config->spaces[i].name)))
      return true;
  }
  return false;
}

/* Report parts and attributes that are not configured: no query sees them.
 *
 * is_served  true if queries see at least one part or attribute
 */
static err_t tell_unserved(const struct config *config, const struct ctl_record *record, bool *is_served)
{
  AUTO(region_fini) struct region region = { 0 };
  struct item_change item;

  TRY(wire_decode_item(record->value, WIRE_PROTOBUF, &region, &item));
  *is_served = false;
  for (size_t i = 0; i < item.n_parts; i++) {
    if (has_space(config, item.parts[i].space))
      *is_served = true;
    else
      ctl_say("the configuration has no space %s: queries do not see that part", log_quote(item.parts[i].space));
  }
  for (size_t i = 0; i < item.n_attributes; i++) {
    size_t found;
    if (attributes_get(&config->attributes, item.attributes[i].name, &found) == ERR_OK)
      *is_served |= item.n_parts == 0;
    else
      ctl_say("the value of %s is dropped: %s", log_quote(item.attributes[i].name), err_message());
  }
  return ERR_OK;
}

/* Say what was done with the record. The counters tell only if nobody else wrote at the same time. */
static const char *name_result(const struct ctl_record *record, const struct ctl_counts *counts, bool is_served)
{
  bool is_alone = counts->applied + counts->deleted + counts->skipped == 1;

  if (!record->is_delete)
    return is_served ? "visible" : "stored, but not served,";
  if (is_alone && counts->deleted == 1)
    return "deleted";
  if (is_alone && counts->skipped == 1)
    return "there was no such item; the tombstone was stored";
  return "no longer there";
}

/* The letter of a record, while it is looked for. */
struct search {
  const struct ctl_writer *writer;
  char reason[REASON_BYTES]; /* "": not found yet */
};

/* Keep a reason as a terminal may show it. Its daemon has quoted what comes from the record. */
static void keep_reason(struct search *s, struct span reason)
{
  char text[REASON_BYTES];
  FILE *out = fmemopen(s->reason, sizeof s->reason - 1, "w");

  snprintf(text, sizeof text, "%.*s", (int)(reason.n < REASON_BYTES ? reason.n : REASON_BYTES - 1),
           (const char *)reason.p);
  if (!out)
    return;
  ctl_print_text(text, out);
  fclose(out);
}

static err_code_t look_at_letter(void *context, const struct ctl_letter *letter)
{
  struct search *s = context;

  if (letter->partition == s->writer->newest.partition && letter->offset == s->writer->newest.next)
    keep_reason(s, letter->reason);
  return ERR_OK;
}

/* Fail with the reason in the record's letter, which is counted a little before it is written. Who may write records
 * may not be allowed to read letters: then the counters say enough. */
static err_t fail_refused(const struct ctl_writer *w)
{
  struct search search = { .writer = w };
  const struct config *config = w->ctx->config;
  const struct ctl_letters_selection selection = { .filter.topic = config->catalogue.topic };
  err_code_t err = ERR_OK;

  for (int i = 0; i < LETTER_TRIES && err == ERR_OK && !*search.reason; i++) {
    err = ctl_letters_visit_all(w->ctx, &selection, LETTERS_LOOKED_AT, look_at_letter, &search);
    if (err == ERR_OK && !*search.reason)
      clock_sleep_ns(LETTER_WAIT_MS * CLOCK_NS_PER_MS);
  }
  if (!*search.reason)
    FAIL(ERR_ITEM, "the daemon has refused records meanwhile, perhaps this one: topic %s has the reasons",
         config->catalogue.dead_letter_topic);
  FAIL(ERR_ITEM, "the daemon has refused it: %s", search.reason);
}

err_t ctl_write_one(struct ctl_context *ctx, const struct ctl_record *record)
{
  AUTO(ctl_writer_close) struct ctl_writer *w = NULL;
  int64_t visible_ns;
  struct ctl_counts counts;
  bool is_served = false;

  TRY(ctl_writer_verify_format(ctx->config));
  TRY(ctl_writer_open(ctx, "0", &w));
  int64_t started_ns = clock_now_ns();
  TRY(ctl_writer_send(w, 0, record));
  TRY(ctl_writer_flush(w));
  TRY(ctl_writer_await_visible(w, NULL, &visible_ns));
  TRY(ctl_writer_counts(w, &counts));
  if (counts.refused)
    return fail_refused(w);
  if (!record->is_delete)
    TRY(tell_unserved(ctx->config, record, &is_served));
  printf("%s after %s (%s after Kafka had it)\n", name_result(record, &counts, is_served),
         ctl_format_span(visible_ns - started_ns).s, ctl_format_span(visible_ns - w->delivered_ns).s);
  return ERR_OK;
}

err_t ctl_write_one_parse(int argc, char **argv, int n_expected, const char *expected)
{
  static const struct ctl_option none[] = { { 0 } };

  TRY(ctl_option_take(none, "a key", argc, argv));
  if (argc - optind != n_expected)
    FAIL(ERR_USAGE, "%s expects %s", argv[0], expected);
  return ERR_OK;
}
