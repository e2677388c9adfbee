/* SPDX-License-Identifier: Apache-2.0 */
/* The role merge: its thread and its HTTP endpoint, and the loop of main. Thread: main. */
#ifndef DAEMON_MERGE_MERGE_SERVICE_H
#define DAEMON_MERGE_MERGE_SERVICE_H

#include "daemon/http/http.h"
#include "daemon/merge/merge_pages.h"
#include "daemon/merge/merge_thread.h"

struct merge_service {
  struct counters counters;
  struct merge_figures figures;
  struct merge_windows windows;
  int64_t windows_due_ns; /* when they are turned */
  struct alarm alarm;
  struct kafka_setup kafka;
  struct shards_heard *heard;
  struct merge_thread *thread;
  struct merge_view view;
  struct other_pages pages;
  struct status status; /* of the HTTP endpoint */
  struct http *http;
};

/* Open all parts. Call merge_service_close() in any case. */
err_t merge_service_open(const struct config *config, struct merge_service *s);

/* Update the readiness. Call this often. */
void merge_service_step(struct merge_service *s);

/* Write one line for people. */
void merge_service_line(const struct merge_service *s, char *text, size_t n);

/* Close all parts. Returns false if Kafka clients were left behind, whose threads still run. Thread: any. */
bool merge_service_close(struct merge_service *s);

#endif
