/* SPDX-License-Identifier: Apache-2.0 */
/* The files that a client's properties name. OpenSSL, which reads them, does not tell which one it could not read, and
 * would wait for the writer of a pipe. Private to ingest/. */
#ifndef INGEST_KAFKA_FILES_H
#define INGEST_KAFKA_FILES_H

#include <librdkafka/rdkafka.h>

#include "base/err.h"

/* Verify that the client can read the files of certificates and keys. Without encryption, they are not read.
 *
 * conf  complete, with all properties
 *
 * Returns ERR_OK; ERR_CONFIG with property, path and remedy.
 */
err_t kafka_files_verify(const rd_kafka_conf_t *conf);

#endif
