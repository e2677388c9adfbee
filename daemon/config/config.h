/* SPDX-License-Identifier: Apache-2.0 */
/* The configuration: one YAML file, read once, checked whole (docs/configuration.md).
 *
 * Every setting is one row of the table in config_settings.c: path, type, bounds, default, meaning. The reader, the
 * reference in docs/ and the messages come from that table.
 */
#ifndef DAEMON_CONFIG_CONFIG_H
#define DAEMON_CONFIG_CONFIG_H

#include "base/err.h"
#include "base/log.h"
#include "daemon/config/unknown_spaces.h"
#include "daemon/config/problems.h"
#include "engine/engine.h"
#include "ingest/kafka_properties.h"
#include "kernels/kernels.h"

struct config_list {
  char **items;
  size_t n;
};

struct config_space {
  char *name;
  char *model_path; /* relative paths are relative to the configuration file */
  uint64_t dim;     /* 0: the model's own */
  uint64_t weight;
  int line;         /* of the space in the file */
};

struct config {
  char *path;
  char **given; /* by the table's index: the text of each setting that the file gives, else NULL; not of maps and
                 * lists */
  int *lines;   /* where it gives it; else 0 */
  struct kafka_properties kafka; /* of all clients */
  struct {
    char *topic;
    char *dead_letter_topic;
    uint64_t max_items;
    uint64_t publish_interval_ms;
    uint64_t batch_items;
    bool stops_on_discontinuity; /* on_discontinuity: stop; else rebuild */
    uint64_t rebuild_min_percent;
    bool stops_on_damage; /* on_damage: stop; else wait */
    enum unknown_policy unknown_spaces;
    uint64_t partitions_refresh_ms;
    struct kafka_properties kafka;
  } catalogue;
  struct {
    char *topic;
    char *group;
    char *answer_topic;
    struct config_list reply_topics; /* patterns (base/glob.h) of those that queries may name */
    uint64_t reply_timeout_ms;
    uint64_t batch_size;
    uint64_t batch_wait_us; /* read, and without effect */
    uint64_t batch_time_ms;
    uint64_t memory_bytes;
    uint64_t max_k;
    uint64_t workers;
    uint64_t at_least_timeout_ms;
    struct kafka_properties kafka;
    struct kafka_properties answer_kafka;
  } query;
  char *store_path;
  struct config_space *spaces;
  size_t n_spaces;
  enum engine_backend backend;
  bool is_isa_auto;
  enum isa isa;      /* where it is not auto */
  struct {
    char *listen;             /* address:port */
    struct config_list hosts; /* names that requests may be addressed to, besides the usual ones */
  } http;
  struct {
    bool is_enabled;
    uint64_t partitions;
  } embedded_broker;
  enum log_level log_level;
};

/* Read and check a configuration file.
 *
 * Returns ERR_CONFIG with `path:line: what is wrong and what would do`, a line for each problem: unknown keys (with the
 * nearest known one), values out of bounds, missing required settings, wrong types, properties that librdkafka refuses,
 * duplicate keys.
 */
err_t config_open(const char *path, struct config **out);
void config_close(struct config **c);

/* The same, for whoever wants to look on: ERR_CONFIG only when there is no YAML to read.
 *
 * problems  all that is wrong with the file are added to it. Where there is any, the configuration is not for use: what
 *           is wrong is missing from it, and only models that it names may be looked at
 */
err_t config_read(const char *path, struct problems *problems, struct config **out);

/* Put file and line of a setting before the newest failure: "sluice.yaml:12: ". For what the file alone cannot tell.
 *
 * setting  as the table has it, "catalogue.max_items"; where the file has none, the line is left out
 */
err_t config_blame(const struct config *c, const char *setting, err_code_t err);
err_t config_blame_space(const struct config *c, size_t space, err_code_t err);

/* Call `differs` for each setting in which two configurations are not alike: "catalogue.max_items", "spaces.books". */
void config_compare(const struct config *a, const struct config *b,
                    void (*differs)(void *context, const char *setting), void *context);

/* Print the reference as Markdown: docs/configuration.md holds exactly this between its markers. */
void config_print_reference(void);

#endif
