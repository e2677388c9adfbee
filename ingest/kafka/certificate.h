/* SPDX-License-Identifier: Apache-2.0 */
/* When certificates expire. librdkafka reads them, but does not tell. Thread: any. */
#ifndef INGEST_CERTIFICATE_H
#define INGEST_CERTIFICATE_H

#include <stdint.h>

#include "base/span.h"

/* A file or text has one or several certificates in PEM. */
enum certificate_choice {
  CERTIFICATE_FIRST_TO_EXPIRE, /* of a chain: without one of them it is worth nothing */
  CERTIFICATE_LAST_TO_EXPIRE,  /* of authorities: one that is left may be enough */
};

/* Return when they expire, in seconds since 1970; 0 if there is no certificate that can be read. */
int64_t certificate_expiry_in_file(const char *path, enum certificate_choice choice);
int64_t certificate_expiry_in_text(struct span pem, enum certificate_choice choice);

#endif
