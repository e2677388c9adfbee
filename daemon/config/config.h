/* SPDX-License-Identifier: Apache-2.0 */
/* The configuration: one YAML file, read and checked at start (docs/configuration.md).
 *
 * Every setting is a field below and a row of the table in config_settings.c, which has its type, bounds, default and
 * meaning. The reader, the reference in docs/ and the error messages come from that table.
 */
#ifndef DAEMON_CONFIG_CONFIG_H
#define DAEMON_CONFIG_CONFIG_H

#include "base/attributes.h"
#include "base/err.h"
#include "base/log.h"
#include "daemon/config/problems.h"
#include "engine/engine.h"
#include "ingest/kafka/kafka_properties.h"
#include "kernels/isa.h"

struct config_list {
  char **items;
  size_t n;
};

/* What the values of the catalogue topic are. */
enum config_format { CONFIG_FORMAT_SLUICE, CONFIG_FORMAT_JSON, CONFIG_FORMAT_AVRO, CONFIG_FORMAT_PROTOBUF };

/* What to do with a part of a space that is not configured. */
enum config_unknown {
  CONFIG_UNKNOWN_KEEP,   /* store it without serving it */
  CONFIG_UNKNOWN_SKIP,   /* drop it */
  CONFIG_UNKNOWN_REFUSE, /* send the record to the dead letters */
};

/* Who may read the HTTP pages with data. */
enum config_data { CONFIG_DATA_LOCAL, CONFIG_DATA_ALL, CONFIG_DATA_OFF };

/* Is there a box on the status page to try a query? Automatic: if http.listen is a loopback address. */
enum config_trials { CONFIG_TRIALS_AUTO, CONFIG_TRIALS_ON, CONFIG_TRIALS_OFF };

/* What the daemon does: it searches a catalogue, or joins the parts of answers that shards send. */
enum config_role { CONFIG_ROLE_SEARCH, CONFIG_ROLE_MERGE };

/* A name and the path of its value in a record, from a map in the file. */
struct config_field {
  char *name;
  char *path;
  int line;
};

struct config_fields {
  struct config_field *v; /* [n] */
  size_t n;
};

struct config_space {
  char *name;
  char *model_path; /* relative paths were resolved against the configuration file's directory */
  uint64_t dim;     /* 0: the model's file says */
  bool has_cells;
  uint64_t weight;
  int line; /* line of the space's name in the file */
};

struct config {
  char *path;
  int *lines; /* [n_settings] the line of each setting in the file; 0 if it is not there */
  bool may_lack_mapping;
  enum config_role role;
  struct kafka_properties kafka; /* for all clients */
  struct {
    char *topic;
    uint64_t shard;    /* shard.index */
    uint64_t n_shards; /* shard.of; 0: the daemon keeps the whole catalogue */
    char *dead_letter_topic;
    uint64_t max_items;
    uint64_t publish_interval_ms;
    uint64_t batch_items;
    char *not_before; /* attributes of type time; "": none */
    char *expires;
    uint64_t delete_expired_after_s; /* 0: never */
    bool stops_on_discontinuity;     /* on_discontinuity: stop; else rebuild */
    uint64_t rebuild_min_percent;
    bool stops_on_damage; /* on_damage: stop; else wait */
    enum config_unknown unknown_spaces;
    enum config_format format;
    bool is_framed; /* framing: confluent */
    char *schemas;  /* a file; of Avro that is framed, a folder; "": none */
    char *message;  /* of Protobuf: its full name */
    struct {
      char *url; /* "": none is asked */
      char *user;
      char *password;
      char *ca_file; /* "": the system's */
    } registry;
    struct {
      char *key;                    /* paths (ingest/json/json_path.h); "": the record's key */
      char *deleted;                /* "": none */
      bool is_debezium;             /* envelope: debezium */
      struct config_fields vectors; /* by space */
      struct config_fields codes;   /* by space */
      struct config_fields attributes;
    } mapping;
    uint64_t partitions_refresh_ms;
    char *group;
    uint64_t commit_interval_ms; /* 0: never */
    uint64_t ready_max_lag;      /* 0: no limit */
    struct kafka_properties kafka;
  } catalogue;
  struct {
    char *topic;
    char *group;
    bool starts_at_latest; /* start: latest; else earliest */
    char *answer_topic;
    struct config_list reply_topics; /* patterns (base/glob.h) of topics that queries may name */
    uint64_t reply_timeout_ms;
    uint64_t batch_size;
    uint64_t batch_time_ms;
    uint64_t memory_bytes;
    uint64_t max_k;
    uint64_t workers;            /* 0: as many as there are cores */
    uint64_t threads_per_search; /* the same */
    uint64_t at_least_timeout_ms;
    struct kafka_properties kafka;
    char *partials_topic; /* used by shards, and by the role merge */
    struct kafka_properties answer_kafka;
  } query;
  struct {
    char *instance;       /* "": the host and http.listen */
    bool is_exactly_once; /* delivery: exactly_once */
    uint64_t wait_ms;
    uint64_t remember_ms;
    uint64_t memory_bytes;
  } merge;
  struct {
    char *topic; /* "": none is read */
    uint64_t max_per_user;
    uint64_t ttl_s; /* 0: for ever */
    struct kafka_properties kafka;
  } seen;
  struct {
    char *topic;       /* "": none is read */
    char *files_topic; /* "": there is none */
    uint64_t max_file_bytes;
    char *shadow_topic; /* "": comparisons are not written */
  } models;
  char *store_path;
  struct config_space *spaces;
  size_t n_spaces;
  struct attributes attributes;
  enum engine_backend backend;
  enum isa isa; /* N_ISAS: auto */
  struct {
    uint64_t interval_ms; /* 0: there are no canaries */
  } canary;
  struct {
    char *listen;             /* address:port */
    struct config_list hosts; /* further host names that requests may use */
    enum config_data data;
    enum config_trials trials; /* try_queries */
  } http;
  struct {
    char *endpoint; /* "": there are no spans */
  } tracing;
  struct {
    bool is_enabled;
    uint64_t partitions;
  } embedded_broker;
  enum log_level log_level;
};

/* Read and check a configuration file.
 *
 * Returns ERR_CONFIG with a line for each problem: "path:line: what is wrong and what is expected". Problems are
 * unknown and duplicate keys, missing settings, wrong types, values out of bounds and properties that librdkafka
 * rejects.
 */
err_t config_open(const char *path, struct config **out);
void config_close(struct config **c);

/* Read and check a configuration file, but leave settings whose values are elsewhere as they are written: other than
 * properties of Kafka, or all. For programs that open nothing but Kafka clients, or not even those: their users may not
 * be allowed to read passwords. */
err_t config_open_for_kafka(const char *path, struct config **out);
err_t config_open_without_secrets(const char *path, struct config **out);

/* Read and check a configuration file that may lack a catalogue.mapping, for a program that suggests one. */
err_t config_open_for_mapping(const char *path, struct config **out);

/* Read a configuration file and go on after mistakes, for a caller that has more checks.
 *
 * problems  receives every mistake in the file. If there is one, the configuration is incomplete: it may only be used
 *           to check the models that it names
 *
 * Returns ERR_CONFIG only if the file cannot be read or is not YAML.
 */
err_t config_read(const char *path, struct problems *problems, struct config **out);

/* The same in a running daemon, whose main thread must not wait for the writer of a pipe: a file that is not a regular
 * one is refused. */
err_t config_read_again(const char *path, struct problems *problems, struct config **out);

/* Prefix the newest error message with file and line of a setting: "sluice.yaml:12: ". For mistakes that the
 * file alone does not show, such as a directory that cannot be written.
 *
 * setting  path in the table, such as "catalogue.max_items"; if the file does not have it, the prefix has no line
 *
 * Returns err.
 */
err_t config_blame(const struct config *c, const char *setting, err_code_t err);

/* The same for a space, by its index. */
err_t config_blame_space(const struct config *c, size_t space, err_code_t err);

/* Return the index of the space of a name, which may have a generation. 0 if there is none. */
size_t config_find_space(const struct config *c, struct span name);

/* Return a number that a reload may change meanwhile. Thread: any. */
static inline uint64_t config_number(const uint64_t *number)
{
  return __atomic_load_n(number, __ATOMIC_RELAXED);
}

/* Call `differs` with each setting that differs: "catalogue.max_items", "spaces.books". */
void config_compare(const struct config *a, const struct config *b, void (*differs)(void *context, const char *setting),
                    void *context);

/* Do two maps of Kafka properties differ in nothing but the values of SASL user names, passwords, certificates, keys
 * and other properties of encryption? */
bool config_differs_in_credentials_at_most(const struct kafka_properties *a, const struct kafka_properties *b);

/* Print the table of settings as Markdown. docs/configuration.md has exactly this between its markers. */
void config_print_reference(void);

#endif
