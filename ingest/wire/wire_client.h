/* SPDX-License-Identifier: Apache-2.0 */
/* The client's side of the wire, for sluicectl: queries are written, and answers are read.
 *
 * Thread: the one that owns the region. Blocks: no. Allocates: in the region.
 */
#ifndef INGEST_WIRE_CLIENT_H
#define INGEST_WIRE_CLIENT_H

#include "base/err.h"
#include "base/query.h"
#include "base/region.h"

/* Translate a query in JSON to protobuf. Returns ERR_WIRE or ERR_QUERY with what is wrong; ERR_MEMORY. */
err_t wire_translate_query(struct span json, struct region *r, struct span *out);

/* What a client needs to know of an answer. */
struct wire_reply {
  struct span id;
  enum answer_error error; /* ANSWER_OK: it has hits */
  const char *message;     /* of the error */
  uint32_t queued_us;
  uint32_t searched_us;
};

/* Decode an answer in protobuf into the region. Returns ERR_WIRE when it is none. */
err_t wire_decode_reply(struct span value, struct region *r, struct wire_reply *out);

/* Return the schema's name of an error, such as BAD_QUERY; "UNKNOWN" for a code that is not in it. */
const char *wire_error_name(enum answer_error error);

#endif
