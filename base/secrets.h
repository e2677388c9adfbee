/* SPDX-License-Identifier: Apache-2.0 */
/* The secrets of the process, such as passwords, and how they are kept out of every message: the log and err_set() hide
 * them, wherever the text came from. Thread: any. */
#ifndef BASE_SECRETS_H
#define BASE_SECRETS_H

#include <stddef.h>

/* Shorter secrets are not hidden: they would also be found in ordinary words. */
enum { SECRETS_BYTES_MIN = 6 };

/* Hide a text from now on. It is copied, and kept until the process ends. Without memory for the copy it stays visible
 * in messages; that is the only failure. */
void secrets_add(const char *secret);

/* Replace each secret in a text by "***", in place. A text that fills its buffer may have been cut: if it ends with the
 * beginning of a secret, that is replaced too.
 *
 * size  bytes of the buffer
 */
void secrets_hide(char *text, size_t size);

#endif
