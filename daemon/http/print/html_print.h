/* SPDX-License-Identifier: Apache-2.0 */
/* Print values into HTML that is also well-formed XML. Thread: any. */
#ifndef DAEMON_HTTP_HTML_PRINT_H
#define DAEMON_HTTP_HTML_PRINT_H

#include <stdint.h>
#include <stdio.h>

/* Print text, also inside of a quoted attribute. Control characters become spaces. */
void html_print_text(FILE *out, const char *text);

/* Print a number for people: 1,234,567; 12.3; 0.045. */
void html_print_number(FILE *out, double value);

/* Print an amount of memory: 1.5 GiB. */
void html_print_bytes(FILE *out, double n_bytes);

/* Print a duration: 45 s, 12 min, 3 h 20 min, 9 d 3 h. */
void html_print_duration(FILE *out, double seconds);

/* Print a time of day and its date, in UTC. */
void html_print_time(FILE *out, int64_t unix_ms);

#endif
