/* SPDX-License-Identifier: Apache-2.0 */
/* Writing the fields one after the other into one buffer. */
#include "daemon/journal/journal_fields.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/log_pairs.h"
#include "daemon/journal/journal_events.h"

/* Make the next n bytes of the text a field. */
static void end_field(struct journal_fields *f, size_t n)
{
  f->field[f->n++] = (struct iovec){ f->text + f->n_text, n };
  f->n_text += n;
}

static void __attribute__((format(printf, 2, 3))) add(struct journal_fields *f, const char *format, ...)
{
  size_t room = sizeof f->text - f->n_text;
  va_list args;

  va_start(args, format);
  int n = vsnprintf(f->text + f->n_text, room, format, args);
  va_end(args);
  if (n > 0 && (size_t)n < room && f->n < JOURNAL_FIELDS_MAX)
    end_field(f, (size_t)n);
}

/* The journal allows upper-case letters, digits and underscores. */
static char name_letter(uint8_t c)
{
  bool is_lower = c >= 'a' && c <= 'z', is_fine = (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');

  return is_lower ? (char)(c - 'a' + 'A') : is_fine ? (char)c : '_';
}

static void add_pair(struct journal_fields *f, const struct log_pair *pair)
{
  static const char prefix[] = "SLUICE_";
  char *to = f->text + f->n_text;
  size_t n = sizeof prefix - 1;

  if (n + pair->key.n + 1 + pair->value.n > sizeof f->text - f->n_text || f->n == JOURNAL_FIELDS_MAX)
    return;
  memcpy(to, prefix, sizeof prefix);
  for (size_t i = 0; i < pair->key.n; i++)
    to[n++] = name_letter(pair->key.p[i]);
  to[n++] = '=';
  end_field(f, n + log_pairs_unquote(pair->value, to + n));
}

static void add_message(struct journal_fields *f, const struct log_record *r)
{
  const struct journal_event *event = journal_events_find(r->event);

  if (!event) {
    add(f, "MESSAGE=event=%s%s%s", r->event, *r->pairs ? " " : "", r->pairs);
    return;
  }
  add(f, "MESSAGE=%s%s%s", event->sentence, *r->pairs ? ": " : "", r->pairs);
  add(f, "MESSAGE_ID=%s", event->message_id);
}

void journal_fields_make(const struct log_record *record, struct journal_fields *out)
{
  const char *pairs = record->pairs;
  struct log_pair pair;

  out->n = 0;
  out->n_text = 0;
  add_message(out, record);
  add(out, "PRIORITY=%d", log_priority(record->level));
  add(out, "SYSLOG_IDENTIFIER=sluiced");
  add(out, "SLUICE_EVENT=%s", record->event);
  while (log_pairs_next(&pairs, &pair))
    add_pair(out, &pair);
}
