/* SPDX-License-Identifier: Apache-2.0 */
/* Reading the headers of a dead letter, and showing it. */
#include "daemon/ctl/letters/ctl_letter.h"

#include <stdio.h>
#include <stdlib.h>

#include "daemon/ctl/text/ctl_format.h"
#include "daemon/ctl/text/ctl_json.h"
#include "daemon/ctl/text/ctl_payload.h"
#include "daemon/ctl/text/ctl_print.h"
#include "ingest/json/json_bytes.h"
#include "ingest/kafka/retried_header.h"
#include "ingest/wire/wire.h"

enum { REASON_MAX = 1024, DIGITS_MAX = 18 };

/* Read a whole number of at most DIGITS_MAX digits. */
static bool read_number(struct span text, int64_t *out)
{
  int64_t n = 0;

  if (text.n == 0 || text.n > DIGITS_MAX)
    return false;
  for (size_t i = 0; i < text.n; i++) {
    if (text.p[i] < '0' || text.p[i] > '9')
      return false;
    n = n * 10 + (text.p[i] - '0');
  }
  *out = n;
  return true;
}

bool ctl_letter_read(const struct topic_scan_record *record, struct ctl_letter *out)
{
  struct ctl_letter letter = {
    .record = record,
    .topic = topic_scan_header(record, "sluice.topic"),
    .reason = topic_scan_header(record, "sluice.reason"),
    .left_out = topic_scan_header(record, "sluice.left-out"),
    .content_type = topic_scan_header(record, "content-type"),
  };
  int64_t partition, n_retries = 0;

  if (letter.topic.n == 0 || !read_number(topic_scan_header(record, "sluice.partition"), &partition) ||
      !read_number(topic_scan_header(record, "sluice.offset"), &letter.offset) || partition > INT32_MAX)
    return false;
  read_number(topic_scan_header(record, RETRIED_HEADER), &n_retries);
  letter.partition = (int32_t)partition;
  letter.n_retries = n_retries < 1000000 ? (uint32_t)n_retries : 1000000;
  *out = letter;
  return true;
}

bool ctl_letter_matches(const struct ctl_letter *letter, const struct ctl_letter_filter *filter)
{
  char reason[REASON_MAX + 1];

  if (filter->topic && !span_equal(letter->topic, span_of_str(filter->topic)))
    return false;
  snprintf(reason, sizeof reason, "%.*s", (int)(letter->reason.n < REASON_MAX ? letter->reason.n : REASON_MAX),
           (const char *)letter->reason.p);
  return !filter->reason || strcasestr(reason, filter->reason);
}

/* ---- As JSON ---- */

static enum wire_kind kind_of(const struct ctl_letter *letter, const struct config *config)
{
  if (span_equal(letter->topic, span_of_str(config->query.topic)))
    return WIRE_QUERY;
  return *config->seen.topic && span_equal(letter->topic, span_of_str(config->seen.topic)) ? WIRE_SEEN : WIRE_ITEM;
}

/* Add a member, unless it is empty. */
static void put_text(json_t *object, const char *name, struct span text)
{
  if (text.n)
    json_object_set_new(object, name, json_bytes_make(text));
}

json_t *ctl_letter_json(const struct ctl_letter *letter, const struct config *config, bool with_value)
{
  const struct topic_scan_record *record = letter->record;
  json_t *json = json_pack("{s:o,s:s}", "letter", json_sprintf("%d:%lld", record->partition, (long long)record->offset),
                           "time", ctl_format_time(record->timestamp_ms).s);

  put_text(json, "topic", letter->topic);
  json_object_set_new(json, "partition", json_integer(letter->partition));
  json_object_set_new(json, "offset", json_integer(letter->offset));
  if (record->has_key)
    json_object_set_new(json, "key", json_bytes_make(record->key));
  put_text(json, "reason", letter->reason);
  if (letter->n_retries)
    json_object_set_new(json, "retried", json_integer(letter->n_retries));
  put_text(json, "left_out", letter->left_out);
  put_text(json, "content_type", letter->content_type);
  if (record->has_value)
    json_object_set_new(json, "value_bytes", json_integer((json_int_t)record->value.n));
  if (record->has_value && with_value)
    json_object_set_new(json, "value", ctl_payload_json(record->value, letter->content_type, kind_of(letter, config)));
  return json;
}

/* ---- For people ---- */

static void print_text(const char *label, const json_t *letter, const char *name, FILE *out)
{
  const json_t *text = json_object_get(letter, name);

  if (!text)
    return;
  fprintf(out, "  %-8s ", label);
  ctl_print_key(text, out);
  fputc('\n', out);
}

static void print_value(const json_t *letter, FILE *out)
{
  const json_t *value = json_object_get(letter, "value");
  char *text;

  if (!value) {
    fputs("  value    none\n", out);
    return;
  }
  fprintf(out, "  value    %s bytes\n", ctl_format_count(ctl_json_count(letter, "value_bytes")).s);
  if (!json_is_object(value) || json_object_get(value, "base64")) {
    ctl_print_key(value, out);
  } else if ((text = json_dumps(value, JSON_REAL_PRECISION(17) | JSON_PRESERVE_ORDER))) {
    ctl_print_text(text, out);
    free(text);
  }
  fputc('\n', out);
}

void ctl_letter_print(const json_t *letter, FILE *out)
{
  uint64_t n_retries = ctl_json_count(letter, "retried");

  fprintf(out, "letter %s of %s\n", json_string_value(json_object_get(letter, "letter")),
          json_string_value(json_object_get(letter, "time")));
  print_text("topic", letter, "topic", out);
  fprintf(out, "  place    partition %llu, offset %llu\n", (unsigned long long)ctl_json_count(letter, "partition"),
          (unsigned long long)ctl_json_count(letter, "offset"));
  print_text("key", letter, "key", out);
  print_text("reason", letter, "reason", out);
  print_text("left out", letter, "left_out", out);
  print_text("format", letter, "content_type", out);
  if (n_retries)
    fprintf(out, "  retried  %llu %s\n", (unsigned long long)n_retries, ctl_format_plural(n_retries, "time", "times"));
  print_value(letter, out);
}
