/* SPDX-License-Identifier: Apache-2.0 */
/* The table; what reads values is in config_value.c. */
#include "daemon/config/config_settings.h"

#include <assert.h>
#include <string.h>

#include "base/edit_distance.h"

static bool choose_discontinuity(struct config *c, const char *word)
{
  c->catalogue.stops_on_discontinuity = strcmp(word, "stop") == 0;
  return c->catalogue.stops_on_discontinuity || strcmp(word, "rebuild") == 0;
}

static bool choose_damage(struct config *c, const char *word)
{
  c->catalogue.stops_on_damage = strcmp(word, "stop") == 0;
  return c->catalogue.stops_on_damage || strcmp(word, "wait") == 0;
}

static bool choose_unknown_spaces(struct config *c, const char *word)
{
  static const char *const words[] = { "keep", "skip", "refuse" };

  for (int i = 0; i < 3; i++) {
    if (strcmp(word, words[i]) == 0) {
      c->catalogue.unknown_spaces = (enum unknown_policy)i;
      return true;
    }
  }
  return false;
}

static bool choose_isa(struct config *c, const char *word)
{
  c->is_isa_auto = strcmp(word, "auto") == 0;
  return c->is_isa_auto || isa_find(word, &c->isa);
}

static bool choose_backend(struct config *c, const char *word)
{
  return engine_backend_find(word, &c->backend);
}

static bool choose_log_level(struct config *c, const char *word)
{
  return log_level_find(word, &c->log_level);
}

#define AT(field)       offsetof(struct config, field)
#define AT_SPACE(field) offsetof(struct config_space, field)

/* clang-format off */
const struct setting settings[] = {
  { .path = "kafka", .type = SETTING_PROPERTIES, .offset = AT(kafka), .default_text = "",
    .meaning = "Properties for all Kafka clients. `bootstrap.servers` is required, unless the embedded broker is on." },

  { .path = "catalogue.topic", .type = SETTING_TOPIC, .offset = AT(catalogue.topic), .default_text = "sluice.catalogue",
    .meaning = "Topic that holds the items, by key. It should be compacted." },
  { .path = "catalogue.dead_letter_topic", .type = SETTING_TOPIC, .offset = AT(catalogue.dead_letter_topic),
    .default_text = "sluice.dead-letters",
    .meaning = "Topic for what cannot be used, items and queries, with the reason in the headers." },
  { .path = "catalogue.max_items", .type = SETTING_NUMBER, .offset = AT(catalogue.max_items),
    .min = 1, .max = 4294967294, .default_text = "1000000",
    .meaning = "Items that the catalogue may hold. Address space is reserved for them, memory is used as they come." },
  { .path = "catalogue.publish_interval_ms", .type = SETTING_NUMBER, .offset = AT(catalogue.publish_interval_ms),
    .min = 1, .max = 10000, .default_text = "10",
    .meaning = "Longest time that changes are gathered before queries see them." },
  { .path = "catalogue.batch_items", .type = SETTING_NUMBER, .offset = AT(catalogue.batch_items),
    .min = 1, .max = 50000, .default_text = "10000",
    .meaning = "Most changes in one transaction of the store." },
  { .path = "catalogue.on_discontinuity", .type = SETTING_CHOICE, .default_text = "rebuild",
    .choices = "`rebuild`, `stop`", .choose = choose_discontinuity,
    .meaning = "What to do when the topic does not continue what the store has seen: read it again from its "
               "beginning, or stop for a person to look." },
  { .path = "catalogue.rebuild_min_percent", .type = SETTING_NUMBER, .offset = AT(catalogue.rebuild_min_percent),
    .min = 0, .max = 100, .default_text = "50",
    .meaning = "A rebuild that would leave fewer than this share of the items waits for `sluicectl rebuild accept`; "
               "until then the former catalogue is served." },
  { .path = "catalogue.on_damage", .type = SETTING_CHOICE, .default_text = "wait",
    .choices = "`wait`, `stop`", .choose = choose_damage,
    .meaning = "What to do when a partition of the topic cannot be read at one place, because the broker's disk is "
               "damaged there: try again less and less often while the rest goes on, or stop." },
  { .path = "catalogue.unknown_spaces", .type = SETTING_CHOICE, .default_text = "keep",
    .choices = "`keep`, `skip`, `refuse`", .choose = choose_unknown_spaces,
    .meaning = "What to do with a part of a space that is not configured: store it, so that it is served once the "
               "space is; drop it; or put the record to the dead letters." },
  { .path = "catalogue.partitions_refresh_ms", .type = SETTING_NUMBER, .offset = AT(catalogue.partitions_refresh_ms),
    .min = 100, .max = 3600000, .default_text = "30000",
    .meaning = "How often to look for new partitions of the topic." },
  { .path = "catalogue.kafka", .type = SETTING_PROPERTIES, .offset = AT(catalogue.kafka), .default_text = "",
    .meaning = "More properties for the consumer of the catalogue; they override `kafka`." },

  { .path = "query.topic", .type = SETTING_TOPIC, .offset = AT(query.topic), .default_text = "sluice.queries",
    .meaning = "Topic that queries come from." },
  { .path = "query.group", .type = SETTING_TEXT, .offset = AT(query.group), .min = 1, .max = 255,
    .default_text = "sluice",
    .meaning = "Consumer group on the query topic: daemons of one group share its partitions." },
  { .path = "query.answer_topic", .type = SETTING_TOPIC, .offset = AT(query.answer_topic),
    .default_text = "sluice.answers",
    .meaning = "Topic that answers go to, where a query names no other." },
  { .path = "query.reply_topics", .type = SETTING_PATTERNS, .offset = AT(query.reply_topics), .default_text = "",
    .meaning = "Topics that a query may name in `reply_topic`, apart from `query.answer_topic`. Topics that Sluice "
               "reads, and the dead letters, are never among them. Admit no topic that is somebody's catalogue: "
               "a crafted query could write items there." },
  { .path = "query.reply_timeout_ms", .type = SETTING_NUMBER, .offset = AT(query.reply_timeout_ms),
    .min = 1000, .max = 600000, .default_text = "10000",
    .meaning = "How long a reply waits for the broker of a topic that its query names. Then an error goes to "
               "`query.answer_topic`, where replies wait without a limit." },
  { .path = "query.batch_size", .type = SETTING_NUMBER, .offset = AT(query.batch_size), .min = 1, .max = 1024,
    .default_text = "32", .meaning = "Most queries that are searched together." },
  { .path = "query.batch_wait_us", .type = SETTING_NUMBER, .offset = AT(query.batch_wait_us), .min = 0, .max = 1000000,
    .default_text = "500",
    .meaning = "Has no effect, and is accepted for files that have it: a worker that is free takes at once what "
               "waits." },
  { .path = "query.batch_time_ms", .type = SETTING_NUMBER, .offset = AT(query.batch_time_ms), .min = 1, .max = 60000,
    .default_text = "50", .meaning = "A batch has as many queries as are expected to take this long together, by what "
                                     "earlier ones took: at least one, at most `query.batch_size`." },
  { .path = "query.max_k", .type = SETTING_NUMBER, .offset = AT(query.max_k), .min = 1, .max = 100000,
    .default_text = "1000", .meaning = "Most hits that a query may ask for." },
  { .path = "query.workers", .type = SETTING_NUMBER, .offset = AT(query.workers), .min = 1, .max = 256,
    .default_text = "1", .meaning = "Threads that search." },
  { .path = "query.at_least_timeout_ms", .type = SETTING_NUMBER, .offset = AT(query.at_least_timeout_ms),
    .min = 1, .max = 600000, .default_text = "5000",
    .meaning = "How long a query waits for the positions in its `at_least`, unless its deadline is sooner." },
  { .path = "query.memory_bytes", .type = SETTING_NUMBER, .offset = AT(query.memory_bytes),
    .min = 1048576, .max = 1099511627776, .default_text = "268435456",
    .meaning = "Most memory that queries take from when they are read until they are answered. Above it no more are "
               "read; half of it is for queries that wait for their `at_least`." },
  { .path = "query.kafka", .type = SETTING_PROPERTIES, .offset = AT(query.kafka), .default_text = "",
    .meaning = "More properties for the consumer of queries; they override `kafka`." },
  { .path = "query.answer_kafka", .type = SETTING_PROPERTIES, .offset = AT(query.answer_kafka), .default_text = "",
    .meaning = "More properties for the producer of answers; they override `kafka`." },

  { .path = "store.path", .type = SETTING_PATH, .offset = AT(store_path), .min = 1, .max = 4000,
    .meaning = "Directory of the store." },

  { .path = "spaces.NAME.model", .type = SETTING_PATH, .offset = AT_SPACE(model_path), .min = 1, .max = 4000,
    .meaning = "Model of the space, a safetensors file. NAME is what queries and items call the space: "
               "1 to 64 of `A-Z a-z 0-9 . _ -`. There is at least one space." },
  { .path = "spaces.NAME.dim", .type = SETTING_NUMBER, .offset = AT_SPACE(dim), .min = 0, .max = 65536,
    .default_text = "0",
    .meaning = "Numbers of a vector, where the model is `dot` or `cosine` and its file has no `sluice.dim`. "
               "0: the file says." },
  { .path = "spaces.NAME.weight", .type = SETTING_NUMBER, .offset = AT_SPACE(weight), .min = 1, .max = 1000,
    .default_text = "1",
    .meaning = "The space's share of the workers while queries of other spaces wait too: in proportion to the "
               "weights." },

  { .path = "engine.backend", .type = SETTING_CHOICE, .default_text = "auto",
    .choices = "`auto`, `cpu`, `cuda`", .choose = choose_backend,
    .meaning = "Where the catalogue is kept and searched: in host memory, or in a GPU's. `auto` uses a GPU where there "
               "is one and keeps the catalogue in host memory beside it, so that the processor goes on if the GPU "
               "fails; `cuda` keeps it in the GPU's alone and stops if that fails." },

  { .path = "kernels.isa", .type = SETTING_CHOICE, .default_text = "auto",
    .choices = "`auto`, `ref`, `avx2`, `avx512`, `avx512vnni`, `avx512vbmi`, `amx`", .choose = choose_isa,
    .meaning = "Instruction set of the arithmetic. Every one gives the same results; `auto` takes the best there is." },

  { .path = "http.listen", .type = SETTING_ADDRESS, .offset = AT(http.listen), .min = 1, .max = 64,
    .default_text = "127.0.0.1:8321",
    .meaning = "Where `/healthz`, `/readyz`, `/metrics` and `/status` are served. Nothing there asks who you are: "
               "keep it on a loopback address." },
  { .path = "http.hosts", .type = SETTING_LIST, .offset = AT(http.hosts), .min = 1, .max = 253, .default_text = "",
    .meaning = "Names by which people reach `http.listen`, as in `sluice.example.org`; the port does not matter. On a "
               "loopback address, `localhost`, loopback addresses and these are answered, so that no web page can read "
               "from the daemon through a name of its own; on another address, any name is, until there is a list." },

  { .path = "embedded_broker.enabled", .type = SETTING_BOOL, .offset = AT(embedded_broker.is_enabled),
    .default_text = "false",
    .meaning = "Run a broker inside the daemon, for a first look: it is reachable from this machine only, holds about "
               "5 MiB of a partition and drops what is older, and keeps nothing when the daemon stops. `/status` tells "
               "its address." },
  { .path = "embedded_broker.partitions", .type = SETTING_NUMBER, .offset = AT(embedded_broker.partitions),
    .min = 1, .max = 1000, .default_text = "4",
    .meaning = "Partitions of each of its topics, each with room for about 5 MiB." },

  { .path = "log.level", .type = SETTING_CHOICE, .default_text = "info",
    .choices = "`error`, `warn`, `info`, `debug`", .choose = choose_log_level,
    .meaning = "Least important events that are logged, to standard error." },
};
/* clang-format on */

const size_t n_settings = sizeof settings / sizeof settings[0];

static_assert(sizeof settings / sizeof settings[0] <= SETTINGS_MAX, "SETTINGS_MAX is the size of arrays by setting");

size_t settings_find(const char *path)
{
  for (size_t i = 0; i < n_settings; i++) {
    if (strcmp(settings[i].path, path) == 0)
      return i;
  }
  return n_settings;
}

bool settings_has_section(const char *path)
{
  size_t n = strlen(path);

  for (size_t i = 0; i < n_settings; i++) {
    if (strncmp(settings[i].path, path, n) == 0 && settings[i].path[n] == '.')
      return true;
  }
  return false;
}

bool setting_is_collection(const struct setting *s)
{
  return s->type == SETTING_PROPERTIES || s->type == SETTING_LIST || s->type == SETTING_PATTERNS;
}

bool setting_is_in_space(const struct setting *s)
{
  return strncmp(s->path, "spaces.", strlen("spaces.")) == 0;
}

static const char *last_word(const char *path)
{
  const char *dot = strrchr(path, '.');

  return dot ? dot + 1 : path;
}

void settings_nearest(const char *path, char *out)
{
  size_t best_distance = SIZE_MAX;

  for (size_t i = 0; i < n_settings; i++) {
    /* The setting itself and the sections that it lies in. */
    for (size_t n = strcspn(settings[i].path, "."); n <= strlen(settings[i].path);
         n += 1 + strcspn(settings[i].path + n + 1, ".")) {
      char candidate[SETTING_PATH_BYTES] = { 0 };
      memcpy(candidate, settings[i].path, n);
      bool is_misplaced = strcmp(last_word(candidate), last_word(path)) == 0;
      size_t distance = edit_distance(candidate, path) + (is_misplaced ? 0 : SETTING_PATH_BYTES);
      if (distance < best_distance) {
        best_distance = distance;
        memcpy(out, candidate, sizeof candidate);
      }
      if (settings[i].path[n] == '\0')
        break;
    }
  }
}

static void write_values(const struct setting *s, FILE *out)
{
  switch (s->type) {
  case SETTING_NUMBER:
    fprintf(out, "%llu to %llu", (unsigned long long)s->min, (unsigned long long)s->max);
    break;
  case SETTING_BOOL:
    fputs("`true`, `false`", out);
    break;
  case SETTING_CHOICE:
    fputs(s->choices, out);
    break;
  case SETTING_TEXT:
    fprintf(out, "text of %llu to %llu bytes", (unsigned long long)s->min, (unsigned long long)s->max);
    break;
  case SETTING_TOPIC:
    fputs("a topic", out);
    break;
  case SETTING_PATH:
    fputs("a path; a relative one starts where the configuration file is", out);
    break;
  case SETTING_ADDRESS:
    fputs("numeric address:port, `[address]:port` for IPv6", out);
    break;
  case SETTING_LIST:
    fprintf(out, "a list of texts of %llu to %llu bytes", (unsigned long long)s->min, (unsigned long long)s->max);
    break;
  case SETTING_PATTERNS:
    fputs("a list of topics, in which `*` stands for any text and `?` for one character", out);
    break;
  case SETTING_PROPERTIES:
    fputs("a map of librdkafka's properties", out);
    break;
  }
}

static void write_default(const struct setting *s, FILE *out)
{
  if (!s->default_text)
    fputs("required", out);
  else if (*s->default_text)
    fprintf(out, "`%s`", s->default_text);
  else
    fputs("none", out);
}

void settings_write_reference(FILE *out)
{
  fputs("| setting | values | default | meaning |\n|---|---|---|---|\n", out);
  for (size_t i = 0; i < n_settings; i++) {
    fprintf(out, "| `%s` | ", settings[i].path);
    write_values(&settings[i], out);
    fputs(" | ", out);
    write_default(&settings[i], out);
    fprintf(out, " | %s |\n", settings[i].meaning);
  }
}

void config_print_reference(void)
{
  settings_write_reference(stdout);
}
