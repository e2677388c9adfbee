/* SPDX-License-Identifier: Apache-2.0 */
/* Loading the lines of a .jsonl file. */
#ifndef DAEMON_CTL_CTL_LOAD_LINES_H
#define DAEMON_CTL_CTL_LOAD_LINES_H

#include "daemon/ctl/load/ctl_loading.h"

/* Send the items of a file, or of standard input. Lines that cannot be used are reported and counted.
 *
 * Returns ERR_SYSTEM if the file cannot be read; ERR_USAGE if standard input is to be resumed; the errors of Kafka.
 */
err_t ctl_load_lines(struct ctl_loading *l);

#endif
