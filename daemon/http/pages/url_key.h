/* SPDX-License-Identifier: Apache-2.0 */
/* Keys in URLs. Thread: any. */
#ifndef DAEMON_HTTP_URL_KEY_H
#define DAEMON_HTTP_URL_KEY_H

#include "base/item.h"

/* Decode a percent-coded key (RFC 3986). Returns false if it is not one of 1 to ITEM_KEY_MAX bytes. */
bool url_key_decode(const char *text, uint8_t key[ITEM_KEY_MAX], size_t *n);

#endif
