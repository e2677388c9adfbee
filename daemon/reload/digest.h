/* SPDX-License-Identifier: Apache-2.0 */
/* Digests of settings and of the files that they name: whether a reload changes something that is not a setting's text.
 * Thread: main. */
#ifndef DAEMON_RELOAD_DIGEST_H
#define DAEMON_RELOAD_DIGEST_H

#include <stdint.h>

uint64_t digest_text(uint64_t digest, const char *text);

/* Add what a file has: its first 16 MiB. A file that cannot be read adds nothing. Of a folder of authorities, only the
 * time of its newest file that came or went counts. */
uint64_t digest_file(uint64_t digest, const char *path);

#endif
