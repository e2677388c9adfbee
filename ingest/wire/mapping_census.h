/* SPDX-License-Identifier: Apache-2.0 */
/* What the fields of a topic's rows are, by some of its records: how many of a field's values a mapping could read in
 * each way (docs/formats.md). From this a mapping can be suggested.
 *
 * Thread: one. Blocks: see mapped_document.h.
 */
#ifndef INGEST_MAPPING_CENSUS_H
#define INGEST_MAPPING_CENSUS_H

#include "base/region.h"
#include "ingest/kafka/topic_record.h"
#include "ingest/wire/mapping.h"

enum { CENSUS_FIELDS_MAX = 1000, CENSUS_EXAMPLE_BYTES = 40 };

/* The values of one path that are not null or, in Protobuf, empty or 0. An object has none itself, but its members
 * have. */
struct census_field {
  char *path;       /* as a mapping has it */
  const char *name; /* the last step of it, in `path` */
  uint64_t hash;    /* of the path */
  size_t n_objects; /* they do not count below */
  size_t n;
  size_t n_booleans, n_integers, n_fractions, n_texts; /* of JSON */
  size_t n_lists;                                      /* of JSON, or as text */
  size_t n_keys;                                       /* could be the item's key */
  size_t n_record_keys;                                /* are the record's key */
  size_t n_times;                                      /* text of a time, or milliseconds within 2001 to 2100 */
  size_t n_bits;                                       /* 0 or 1 */
  size_t n_decimals;                                   /* text of a number */
  size_t n_points;                                     /* of these, with a point */
  size_t n_keyword;                                    /* text or an integer that is not too long */
  size_t n_keywords;                                   /* a list of such texts, or a list as text */
  size_t n_vectors;                                    /* a list of numbers, or text that stands for one */
  size_t n_codes;                                      /* the same, of bytes */
  size_t n_flags;                                      /* can say whether the row is deleted: no other number */
  size_t vector_length, codes_length;                  /* of the first one; 0: they differ */
  char example[CENSUS_EXAMPLE_BYTES];
};

/* All zeros: nothing was counted. */
struct mapping_census {
  size_t n_records;
  size_t n_deletes; /* tombstones, and deletes in envelopes */
  size_t n_unread;  /* they are not of the topic's form, or no object */
  struct err_kept first_unread;
  size_t n_rows;
  size_t n_envelopes;          /* records in Debezium's envelope */
  size_t n_bare;               /* rows that are not */
  size_t n_keyed;              /* rows whose record's key can be the item's */
  struct census_field *fields; /* in the order of their first values */
  size_t n_fields;
  size_t hint;   /* the field after the one that was found last */
  size_t n_more; /* values of fields that were left out: of more than CENSUS_FIELDS_MAX, or their path is too long */
  size_t capacity;
};

/* Count the values of a record.
 *
 * m        its schemas are used
 * scratch  grows; the caller rewinds it
 *
 * Returns ERR_MEMORY; ERR_REGISTRY. */
err_t mapping_census_add(struct mapping_census *c, const struct mapping *m, bool is_framed,
                         const struct topic_record *record, struct region *scratch);
void mapping_census_fini(struct mapping_census *c);

#endif
