/* SPDX-License-Identifier: Apache-2.0 */
/* The log's sink that speaks the journal's own protocol. */
#include "daemon/journal/journal.h"

#define SD_JOURNAL_SUPPRESS_LOCATION /* it would be this file for each event */
#include <systemd/sd-journal.h>

#include "daemon/journal/journal_fields.h"

static bool send_record(const struct log_record *record)
{
  struct journal_fields fields;

  journal_fields_make(record, &fields);
  return sd_journal_sendv(fields.field, fields.n) == 0;
}

void journal_begin(void)
{
  if (log_is_journal())
    log_set_sink(send_record);
}
