/* SPDX-License-Identifier: Apache-2.0 */
/* A reload that changes certificates or keys of the Kafka clients. Thread: main. */
#ifndef DAEMON_RELOAD_CERTIFICATES_H
#define DAEMON_RELOAD_CERTIFICATES_H

#include <stdint.h>

#include "daemon/config/config.h"

/* Return a digest of the certificates, keys and other properties of encryption, and of the files that they name. */
uint64_t certificates_digest(const struct config *c);

/* Use the values of a newer configuration, and have all clients opened again. `newer` gets the former values. Only if
 * credentials_can_change(). */
void certificates_renew(const struct config *running, const struct config *newer);

#endif
