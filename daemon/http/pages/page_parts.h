/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of a status page that all roles have: its head and foot, and tables of values of /status. Thread: any. */
#ifndef DAEMON_HTTP_PAGE_PARTS_H
#define DAEMON_HTTP_PAGE_PARTS_H

#include <jansson.h>
#include <stddef.h>
#include <stdio.h>

/* How a value of /status is shown. */
enum page_format {
  FORMAT_TEXT,
  FORMAT_LINE,
  FORMAT_NUMBER,
  FORMAT_BYTES,
  FORMAT_MS_OF_US,
  FORMAT_DURATION,
  FORMAT_TIME
};

struct page_column {
  const char *heading, *field;
  enum page_format format;
};

/* Print the head of the page, with the state as its title, up to the beginning of `main`.
 *
 * root  the fields of /status, here and below */
void page_parts_head(FILE *out, const json_t *root);

/* Print the links to other pages, and end `main`. */
void page_parts_foot(FILE *out);

/* Print the heading: whether the daemon is ready, or why not. */
void page_parts_state(FILE *out, const json_t *root);

/* Print single fields, and the address of the broker. */
void page_parts_facts(FILE *out, const json_t *root, const struct page_column *facts, size_t n);

/* Print a list of objects, a row each. Nothing if there are none. */
void page_parts_table(FILE *out, const char *title, const json_t *list, const struct page_column *columns, size_t n);

#define PAGE_PARTS_TABLE(out, title, list, columns) \
  page_parts_table(out, title, list, columns, sizeof(columns) / sizeof(columns)[0])

/* Durations of /status's `latency_us` and `latency_since_start_us`. */
struct page_time {
  const char *field, *what;
};
void page_parts_times(FILE *out, const json_t *root, const struct page_time *times, size_t n);

/* Print names and values, folded away. */
void page_parts_counters(FILE *out, json_t *counters);

#endif
