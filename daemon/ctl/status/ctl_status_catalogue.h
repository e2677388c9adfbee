/* SPDX-License-Identifier: Apache-2.0 */
/* The part of `sluicectl status` about the catalogue. */
#ifndef DAEMON_CTL_CTL_STATUS_CATALOGUE_H
#define DAEMON_CTL_CTL_STATUS_CATALOGUE_H

#include <jansson.h>

/* Print how many items are not returned because of their lifetimes, and when that changes. Nothing without lifetimes.
 */
void ctl_status_lifetimes_print(const json_t *status);

/* Print the spaces, the attributes, what items have that the configuration has not, and how far the topic is read. */
void ctl_status_catalogue_print(const json_t *status);

#endif
