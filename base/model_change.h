/* SPDX-License-Identifier: Apache-2.0 */
/* What a record of the control topic says about the models of a space. */
#ifndef BASE_MODEL_CHANGE_H
#define BASE_MODEL_CHANGE_H

#include "base/space_name.h"

enum { MODEL_DIGEST_CHARS = 64, MODEL_PATH_MAX = 4095, MODEL_SWITCHES_MAX = 64 };

/* A larger file is a mistake. */
#define MODEL_FILE_BYTES_MAX (UINT64_C(1) << 40)

/* From a time on, a generation is the current one of its space. */
struct model_switch {
  uint32_t to;
  int64_t at_ms; /* milliseconds since 1970 */
};

enum model_change_kind {
  MODEL_ADD,      /* there is this model */
  MODEL_RETIRE,   /* the generation is gone for ever: its parts are deleted */
  MODEL_SWITCHES, /* the whole history of switches of a space */
  MODEL_FORGET,   /* the record's key is forgotten, as if there had been no record */
};

/* Each change replaces all that earlier records of its key said. Texts are borrowed. */
struct model_change {
  enum model_change_kind kind;
  struct span space;                   /* the plain name */
  uint32_t generation;                 /* 0: the change is about the space's switches */
  struct span digest;                  /* MODEL_ADD: SHA-256 of the file, as MODEL_DIGEST_CHARS lower-case hex digits */
  struct span path;                    /* MODEL_ADD: of the file; absolute. Empty: it is in the topic of files */
  bool is_in_topic;                    /* MODEL_ADD: the file is in the topic of files, by its digest */
  uint64_t n_bytes;                    /* MODEL_ADD: of a file in that topic; up to MODEL_FILE_BYTES_MAX */
  uint32_t derives_from;               /* an earlier generation, whose parts it uses; 0: it has parts of its own */
  double shadow;                       /* MODEL_ADD: share of the queries that are compared in it, from 0 to 1 */
  const struct model_switch *switches; /* MODEL_SWITCHES: [n_switches], times never fall */
  size_t n_switches;
};

#endif
