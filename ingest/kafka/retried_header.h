/* SPDX-License-Identifier: Apache-2.0 */
/* The header that says how often a record was written again from a dead letter, in decimal. `sluicectl dead-letters
 * retry` writes it, and the daemon copies it from the record to a new letter. So what fails again is not retried for
 * ever. */
#ifndef INGEST_RETRIED_HEADER_H
#define INGEST_RETRIED_HEADER_H

#define RETRIED_HEADER "sluice.retried"

enum { RETRIED_DIGITS_MAX = 9 };

#endif
