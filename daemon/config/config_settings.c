/* SPDX-License-Identifier: Apache-2.0 */
/* The table of settings, and how to find a row. A new setting is added here. */
#include "daemon/config/config_settings.h"

#include <assert.h>
#include <string.h>

#include "base/edit_distance.h"

#define AT(field)       offsetof(struct config, field)
#define AT_SPACE(field) offsetof(struct config_space, field)
/* Of a choice, which is written and compared as an unsigned. */
#define AT_ENUM(field)                                                                                              \
  (AT(field) + 0 * sizeof(struct {                                                                                  \
                 static_assert(sizeof((struct config *)0)->field == sizeof(unsigned), "the enum has another size"); \
                 int none;                                                                                          \
               }))
#define WORDS(...)              \
  (const struct setting_word[]) \
  {                             \
    __VA_ARGS__,                \
    {                           \
      NULL, 0                   \
    }                           \
  }

/* A new setting needs:
 * 1. a field in struct config, or in struct config_space if every space has its own value (config.h);
 * 2. a row in this table. The row is all that reading, checking, comparing, freeing and documenting it needs. Without a
 *    default the setting is required;
 * 3. a line with the default in systemd/sluice.example.yaml;
 * 4. the new output of `sluicectl settings` between the markers in docs/configuration.md.
 * test_config fails until 3 and 4 are done.
 */
/* clang-format off */
const struct setting settings[] = {
  { .path = "role", .type = SETTING_CHOICE, .offset = AT_ENUM(role), .default_text = "search",
    .words = WORDS({ "search", CONFIG_ROLE_SEARCH }, { "merge", CONFIG_ROLE_MERGE }),
    .meaning = "`search`: keep a catalogue, or a shard of it, and answer queries. `merge`: join the parts of answers "
               "that shards send. It needs neither store nor spaces (sharding.md)." },
  { .path = "kafka", .type = SETTING_PROPERTIES, .offset = AT(kafka), .default_text = "",
    .meaning = "Properties for all Kafka clients. `bootstrap.servers` is required unless the embedded broker is "
               "enabled." },

  { .path = "catalogue.topic", .type = SETTING_TOPIC, .offset = AT(catalogue.topic), .default_text = "sluice.catalogue",
    .meaning = "Topic that holds the items, by key. It should be compacted." },
  { .path = "catalogue.dead_letter_topic", .type = SETTING_TOPIC, .offset = AT(catalogue.dead_letter_topic),
    .default_text = "sluice.dead-letters",
    .meaning = "Topic for items and queries that cannot be used. The reason is in each record's headers." },
  { .path = "catalogue.max_items", .type = SETTING_NUMBER, .offset = AT(catalogue.max_items),
    .min = 1, .max = 4294967294, .default_text = "1000000",
    .meaning = "Maximum number of items in the catalogue. Address space for them is reserved at start; memory is used "
               "only as items arrive." },
  { .path = "catalogue.publish_interval_ms", .type = SETTING_NUMBER, .offset = AT(catalogue.publish_interval_ms),
    .min = 1, .max = 10000, .default_text = "10",
    .meaning = "Maximum wait before a batch is published." },
  { .path = "catalogue.batch_items", .type = SETTING_NUMBER, .offset = AT(catalogue.batch_items),
    .min = 1, .max = 50000, .default_text = "10000",
    .meaning = "Maximum number of changes in a batch, which is one transaction of the store. A first fill and a "
               "rebuild have batches of up to 65,536 changes." },
  { .path = "catalogue.not_before", .type = SETTING_TEXT, .offset = AT(catalogue.not_before), .min = 0, .max = 64,
    .default_text = "",
    .meaning = "Attribute of type `time`. An item that has it is not returned before that moment." },
  { .path = "catalogue.expires", .type = SETTING_TEXT, .offset = AT(catalogue.expires), .min = 0, .max = 64,
    .default_text = "",
    .meaning = "Attribute of type `time`. An item that has it is not returned from that moment on." },
  { .path = "catalogue.delete_expired_after_s", .type = SETTING_NUMBER,
    .offset = AT(catalogue.delete_expired_after_s), .min = 0, .max = 3153600000, .default_text = "0",
    .meaning = "After this time an expired item is deleted from the store and from memory. The topic keeps its "
               "records. 0: never." },
  { .path = "catalogue.on_discontinuity", .type = SETTING_EITHER, .offset = AT(catalogue.stops_on_discontinuity),
    .default_text = "rebuild", .words = WORDS({ "rebuild", false }, { "stop", true }),
    .meaning = "What to do when the topic does not continue what the store has seen. `rebuild`: read the topic again "
               "from its beginning. `stop`: end the daemon, so that a person can look." },
  { .path = "catalogue.rebuild_min_percent", .type = SETTING_NUMBER, .offset = AT(catalogue.rebuild_min_percent),
    .min = 0, .max = 100, .default_text = "50",
    .meaning = "A rebuild that would leave fewer than this percentage of the items waits for `sluicectl rebuild "
               "accept`. Until then the old catalogue is served." },
  { .path = "catalogue.on_damage", .type = SETTING_EITHER, .offset = AT(catalogue.stops_on_damage),
    .default_text = "wait", .words = WORDS({ "wait", false }, { "stop", true }),
    .meaning = "What to do when a partition cannot be read at one place because the broker's disk is damaged. `wait`: "
               "retry less and less often while the other partitions go on. `stop`: end the daemon." },
  { .path = "catalogue.unknown_spaces", .type = SETTING_CHOICE, .offset = AT_ENUM(catalogue.unknown_spaces),
    .default_text = "keep",
    .words = WORDS({ "keep", CONFIG_UNKNOWN_KEEP }, { "skip", CONFIG_UNKNOWN_SKIP },
                   { "refuse", CONFIG_UNKNOWN_REFUSE }),
    .meaning = "What to do with a part of a space that is not configured. `keep`: store it, and serve it once the "
               "space is configured. `skip`: drop it. `refuse`: send the record to the dead letters." },
  { .path = "catalogue.format", .type = SETTING_CHOICE, .offset = AT_ENUM(catalogue.format),
    .default_text = "sluice",
    .words = WORDS({ "sluice", CONFIG_FORMAT_SLUICE }, { "json", CONFIG_FORMAT_JSON }, { "avro", CONFIG_FORMAT_AVRO },
                   { "protobuf", CONFIG_FORMAT_PROTOBUF }),
    .meaning = "What the topic's values are. `sluice`: the messages of protocol.md. `json`: objects of any form. "
               "`avro`: records of any schema. `protobuf`: messages of your own `.proto` files. With these three, "
               "`catalogue.mapping` says where an item's parts are (formats.md)." },
  { .path = "catalogue.framing", .type = SETTING_EITHER, .offset = AT(catalogue.is_framed), .default_text = "none",
    .words = WORDS({ "none", false }, { "confluent", true }),
    .meaning = "`confluent`: a zero byte and a schema's id are in front of each value." },
  { .path = "catalogue.schemas", .type = SETTING_PATH, .offset = AT(catalogue.schemas), .min = 0, .max = 4000,
    .default_text = "",
    .meaning = "With `catalogue.format: avro`: the file of the schema; with `framing: confluent`, a folder that has "
               "each schema as `ID.avsc`, if `catalogue.registry` is not used. With `protobuf`: the file of a "
               "descriptor set, as `protoc --include_imports --descriptor_set_out=FILE` writes it." },
  { .path = "catalogue.message", .type = SETTING_TEXT, .offset = AT(catalogue.message), .min = 0, .max = 1000,
    .default_text = "",
    .meaning = "With `catalogue.format: protobuf`: the full name of the message that each value is, such as "
               "`shop.v1.Film`." },
  { .path = "catalogue.registry.url", .type = SETTING_URL, .offset = AT(catalogue.registry.url), .min = 0, .max = 2000,
    .default_text = "",
    .meaning = "With `catalogue.format: avro` and `framing: confluent`: the schema registry, such as "
               "`https://registry:8081`. It is asked for ids that `catalogue.schemas` does not have." },
  { .path = "catalogue.registry.user", .type = SETTING_TEXT, .offset = AT(catalogue.registry.user), .min = 0,
    .max = 255, .default_text = "",
    .meaning = "User name, or key, for basic authentication at the registry. Empty: there is no authentication." },
  { .path = "catalogue.registry.password", .type = SETTING_SECRET, .offset = AT(catalogue.registry.password),
    .min = 0, .max = 4000, .default_text = "",
    .meaning = "Password, or secret, for it: best as `credential:NAME`, `file:PATH` or `env:NAME`." },
  { .path = "catalogue.registry.ca_file", .type = SETTING_PATH, .offset = AT(catalogue.registry.ca_file), .min = 0,
    .max = 4000, .default_text = "",
    .meaning = "Certificates of the authorities that may have signed the registry's, PEM. Empty: the system's." },
  { .path = "catalogue.mapping.key", .type = SETTING_FIELD, .offset = AT(catalogue.mapping.key), .default_text = "",
    .meaning = "Path of the item's key in the value. Empty: the record's key." },
  { .path = "catalogue.mapping.vectors", .type = SETTING_FIELDS, .offset = AT(catalogue.mapping.vectors),
    .default_text = "", .meaning = "For each space, the path of the item's vector." },
  { .path = "catalogue.mapping.codes", .type = SETTING_FIELDS, .offset = AT(catalogue.mapping.codes),
    .default_text = "", .meaning = "For each `recjpq` space, the path of the item's codes." },
  { .path = "catalogue.mapping.attributes", .type = SETTING_FIELDS, .offset = AT(catalogue.mapping.attributes),
    .default_text = "", .meaning = "For each attribute, the path of its value." },
  { .path = "catalogue.mapping.deleted", .type = SETTING_FIELD, .offset = AT(catalogue.mapping.deleted),
    .default_text = "",
    .meaning = "Path of a flag: `true`, or a time that is set, deletes the item. Empty: there is none." },
  { .path = "catalogue.mapping.envelope", .type = SETTING_EITHER, .offset = AT(catalogue.mapping.is_debezium),
    .default_text = "none", .words = WORDS({ "none", false }, { "debezium", true }),
    .meaning = "`debezium`: rows are in Debezium's envelope, with `op`, `before` and `after`. Paths start in the "
               "row." },
  { .path = "catalogue.partitions_refresh_ms", .type = SETTING_NUMBER, .offset = AT(catalogue.partitions_refresh_ms),
    .min = 100, .max = 3600000, .default_text = "30000",
    .meaning = "How often to look for new partitions of the topic, and of `seen.topic`. The time between two audits of "
               "the topic, and of `models.topic`, is not longer." },
  { .path = "catalogue.group", .type = SETTING_TEXT, .offset = AT(catalogue.group), .min = 1, .max = 255,
    .default_text = "sluice-catalogue",
    .meaning = "Group that the positions in the catalogue topic are committed to, for Kafka's tools only: the daemon "
               "never reads them. Each daemon overwrites what another one committed to the same group." },
  { .path = "catalogue.commit_interval_ms", .type = SETTING_NUMBER, .offset = AT(catalogue.commit_interval_ms),
    .min = 0, .max = 3600000, .default_text = "5000",
    .meaning = "How often to commit them. 0: never." },
  { .path = "catalogue.ready_max_lag", .type = SETTING_NUMBER, .offset = AT(catalogue.ready_max_lag),
    .min = 0, .max = 1000000000000, .default_text = "0",
    .meaning = "A daemon that starts reads the topic up to where it ended at the start, and then joins the query "
               "group. If this is not 0, it also waits until its lag, the records of all its partitions that are not "
               "applied, is at most this. Later it does not leave the group because of its lag. 0: no limit." },
  { .path = "catalogue.shard.index", .type = SETTING_NUMBER, .offset = AT(catalogue.shard),
    .min = 0, .max = 1023, .default_text = "0",
    .meaning = "Which shard this daemon is: it keeps the items of the catalogue partitions whose number, modulo "
               "`catalogue.shard.of`, is this." },
  { .path = "catalogue.shard.of", .type = SETTING_NUMBER, .offset = AT(catalogue.n_shards),
    .min = 0, .max = 1024, .default_text = "0",
    .meaning = "Number of shards. The topic needs at least as many partitions. 0: there are none, and the daemon keeps "
               "the whole catalogue (sharding.md)." },
  { .path = "catalogue.kafka", .type = SETTING_PROPERTIES, .offset = AT(catalogue.kafka), .default_text = "",
    .meaning = "Extra properties for the consumer of the catalogue. They override `kafka`." },

  { .path = "query.topic", .type = SETTING_TOPIC, .offset = AT(query.topic), .default_text = "sluice.queries",
    .meaning = "Topic that queries are read from." },
  { .path = "query.group", .type = SETTING_TEXT, .offset = AT(query.group), .min = 1, .max = 255,
    .default_text = "sluice",
    .meaning = "Consumer group on the query topic. Daemons in one group share its partitions. Shards add "
               "`.shard-INDEX-of-N` to it, and the role merge adds `.merge`." },
  { .path = "query.start", .type = SETTING_EITHER, .offset = AT(query.starts_at_latest), .default_text = "earliest",
    .words = WORDS({ "earliest", false }, { "latest", true }),
    .meaning = "Where a group without positions begins. `earliest`: at the oldest query, so that none is skipped. "
               "`latest`: at the next one, for new shards beside those that answer (sharding.md). Before a daemon "
               "is ready, that position is committed, so a restart skips nothing, and partitions that are added later are "
               "read from their oldest query." },
  { .path = "query.answer_topic", .type = SETTING_TOPIC, .offset = AT(query.answer_topic),
    .default_text = "sluice.answers",
    .meaning = "Topic for answers to queries that name no `reply_topic`." },
  { .path = "query.reply_topics", .type = SETTING_PATTERNS, .offset = AT(query.reply_topics), .default_text = "",
    .meaning = "Topics that a query may name in `reply_topic`, besides `query.answer_topic`. Topics that Sluice reads "
               "and the dead-letter topic are always refused. Do not list a topic that is somebody's catalogue: a "
               "crafted query could write items to it." },
  { .path = "query.partials_topic", .type = SETTING_TOPIC, .offset = AT(query.partials_topic),
    .default_text = "sluice.partials",
    .meaning = "Topic for parts of answers, from shards to the role merge. Others do not use it." },
  { .path = "query.reply_timeout_ms", .type = SETTING_NUMBER, .offset = AT(query.reply_timeout_ms),
    .min = 1000, .max = 600000, .default_text = "10000",
    .meaning = "How long a reply waits for the broker of the topic that its query named. After that, an error goes to "
               "`query.answer_topic`, where replies wait without limit." },
  { .path = "query.batch_size", .type = SETTING_NUMBER, .offset = AT(query.batch_size), .min = 1, .max = 1024,
    .default_text = "32", .meaning = "Maximum number of queries that are searched together." },
  { .path = "query.batch_time_ms", .type = SETTING_NUMBER, .offset = AT(query.batch_time_ms), .min = 1, .max = 60000,
    .default_text = "50",
    .meaning = "Target time of a batch. A batch has as many queries as are expected to finish in this time, judging "
               "by earlier ones: at least one, at most `query.batch_size`." },
  { .path = "query.max_k", .type = SETTING_NUMBER, .offset = AT(query.max_k), .min = 1, .max = 100000,
    .default_text = "10000",
    .meaning = "Maximum number of hits that a query may ask for. An answer must also fit into a Kafka message, which is "
               "1 MB by default: about 10,000 hits with keys of 90 bytes in protobuf, of 60 bytes in JSON." },
  { .path = "query.workers", .type = SETTING_NUMBER, .offset = AT(query.workers), .min = 0, .max = 256,
    .default_text = "0",
    .meaning = "Number of batches that are searched at a time, each by a thread. 0: as many as the daemon has cores; "
               "1 on a GPU." },
  { .path = "query.threads_per_search", .type = SETTING_NUMBER, .offset = AT(query.threads_per_search),
    .min = 0, .max = 64, .default_text = "0",
    .meaning = "Number of threads that may share one search on the processor. They share it only while cores are "
               "idle, and answers do not depend on it. 0: as many as the daemon has cores; 1: none shares. More than 1 "
               "also lets them share the models of many items that change at once." },
  { .path = "query.at_least_timeout_ms", .type = SETTING_NUMBER, .offset = AT(query.at_least_timeout_ms),
    .min = 1, .max = 600000, .default_text = "5000",
    .meaning = "How long a query waits for the positions in its `at_least` and `at_least_seen`, unless its deadline is "
               "earlier." },
  { .path = "query.memory_bytes", .type = SETTING_NUMBER, .offset = AT(query.memory_bytes),
    .min = 1048576, .max = 1099511627776, .default_text = "268435456",
    .meaning = "Memory limit for queries that were read and are not yet answered. Above it no more are read. Half of "
               "it is for queries that wait for their `at_least`." },
  { .path = "query.kafka", .type = SETTING_PROPERTIES, .offset = AT(query.kafka), .default_text = "",
    .meaning = "Extra properties for the consumer of queries. They override `kafka`." },
  { .path = "query.answer_kafka", .type = SETTING_PROPERTIES, .offset = AT(query.answer_kafka), .default_text = "",
    .meaning = "Extra properties for the producer of answers. They override `kafka`." },

  { .path = "merge.instance", .type = SETTING_TEXT, .offset = AT(merge.instance), .min = 0, .max = 200,
    .default_text = "",
    .meaning = "Name of this daemon in the role merge, which Kafka fences by: no two that run have the same one, and a "
               "restart keeps it. Empty: the host's name and `http.listen`." },
  { .path = "merge.delivery", .type = SETTING_EITHER, .offset = AT(merge.is_exactly_once),
    .default_text = "exactly_once", .words = WORDS({ "exactly_once", true }, { "at_least_once", false }),
    .meaning = "`exactly_once`: answers are sent in Kafka transactions; clients must read with "
               "`isolation.level=read_committed`. `at_least_once`: without; a merge that dies may answer its last "
               "queries twice." },
  { .path = "merge.wait_ms", .type = SETTING_NUMBER, .offset = AT(merge.wait_ms),
    .min = 10, .max = 600000, .default_text = "6000",
    .meaning = "How long a query waits for the parts of all shards, from its first part on, unless its deadline is "
               "earlier. It should be longer than the shards' `query.at_least_timeout_ms`." },
  { .path = "merge.remember_ms", .type = SETTING_NUMBER, .offset = AT(merge.remember_ms),
    .min = 1000, .max = 86400000, .default_text = "60000",
    .meaning = "How long an answered query is remembered, restarts included. Parts of it that come later, because a "
               "shard has sent them again, are not answered again. A start reads this much of the topic." },
  { .path = "merge.memory_bytes", .type = SETTING_NUMBER, .offset = AT(merge.memory_bytes),
    .min = 1048576, .max = 1099511627776, .default_text = "268435456",
    .meaning = "Memory limit for parts that wait for others. Above it no more are read, until answers are sent." },

  { .path = "seen.topic", .type = SETTING_TOPIC, .offset = AT(seen.topic), .default_text = "",
    .meaning = "Topic that says which items each user has seen, for queries with `exclude_seen_by`. Empty: there is "
               "none. It should not be compacted." },
  { .path = "seen.max_per_user", .type = SETTING_NUMBER, .offset = AT(seen.max_per_user), .min = 1, .max = 100000,
    .default_text = "10000",
    .meaning = "How many items are remembered for each user: those that were recorded last. Up to an eighth more may "
               "be remembered." },
  { .path = "seen.ttl_s", .type = SETTING_NUMBER, .offset = AT(seen.ttl_s), .min = 0, .max = 3153600000,
    .default_text = "2592000",
    .meaning = "For how many seconds a seen item is remembered. 0: as long as there is room for it." },
  { .path = "seen.kafka", .type = SETTING_PROPERTIES, .offset = AT(seen.kafka), .default_text = "",
    .meaning = "Extra properties for the consumer of the seen topic. They override `kafka`." },

  { .path = "models.topic", .type = SETTING_TOPIC, .offset = AT(models.topic), .default_text = "",
    .meaning = "Topic that adds, switches and retires generations of models (rollout.md). Empty: there is "
               "none. It has one partition and should be compacted. It is read with `catalogue.kafka`." },
  { .path = "models.files_topic", .type = SETTING_TOPIC, .offset = AT(models.files_topic), .default_text = "",
    .meaning = "Topic that carries model files (rollout.md). Empty: there is none. It should be compacted. It is read "
               "with `catalogue.kafka`." },
  { .path = "models.max_file_bytes", .type = SETTING_NUMBER, .offset = AT(models.max_file_bytes), .min = 1,
    .max = 1099511627776, .default_text = "17179869184",
    .meaning = "A larger model file is not fetched from `models.files_topic`: the disk of the store must have room "
               "for it." },
  { .path = "models.shadow_topic", .type = SETTING_TOPIC, .offset = AT(models.shadow_topic), .default_text = "",
    .meaning = "Topic for a record of each query that is compared in two generations (rollout.md). Empty: there is "
               "none. It is written with `query.answer_kafka`." },

  { .path = "store.path", .type = SETTING_PATH, .offset = AT(store_path), .min = 1, .max = 4000,
    .meaning = "Directory of the store." },

  { .path = "spaces.NAME.model", .type = SETTING_PATH, .offset = AT_SPACE(model_path), .min = 1, .max = 4000,
    .meaning = "Model file of the space, in safetensors format. NAME is the space's name in queries and items: "
               "1 to 64 of `A-Z a-z 0-9 . _ -`. At least one space is required." },
  { .path = "spaces.NAME.dim", .type = SETTING_NUMBER, .offset = AT_SPACE(dim), .min = 0, .max = 65536,
    .default_text = "0",
    .meaning = "Dimension of the vectors, for a `dot` or `cosine` model whose file has no `sluice.dim`. 0: the file "
               "has it." },
  { .path = "spaces.NAME.cells", .type = SETTING_BOOL, .offset = AT_SPACE(has_cells), .default_text = "true",
    .meaning = "For `recjpq`: whether to keep cells, the index of the method `exact`. `false` or `off` saves memory: "
               "in each of the two arenas, an item of 8 splits takes 8 bytes in the place of 120. Then every method "
               "scans all items, which takes about four times as long. Other similarities have no cells." },
  { .path = "spaces.NAME.weight", .type = SETTING_NUMBER, .offset = AT_SPACE(weight), .min = 1, .max = 1000,
    .default_text = "1",
    .meaning = "The space's share of the workers while other spaces have waiting queries too. Shares are in "
               "proportion to the weights. Background queries of all spaces have a twentieth of the smallest one." },

  { .path = "attributes", .type = SETTING_ATTRIBUTES, .offset = AT(attributes), .default_text = "",
    .meaning = "Attributes of items, by name, which filters compare; at most 64. `keyword` is a text, `keywords` a set "
               "of texts, `integer` a whole number of 64 bits, `number` a floating-point number, `time` milliseconds "
               "since 1970. A new attribute is absent from every item until items are written with it. A removed one "
               "is dropped from the store. To change a type, give the attribute a new name." },

  { .path = "engine.backend", .type = SETTING_CHOICE, .offset = AT_ENUM(backend), .default_text = "auto",
    .words = WORDS({ "auto", ENGINE_AUTO }, { "cpu", ENGINE_CPU }, { "cuda", ENGINE_CUDA }),
    .meaning = "Where the catalogue is kept and searched. `cpu`: in host memory. `cuda`: in GPU memory only; the "
               "daemon stops if the GPU fails. `auto`: on a GPU if there is one, with a copy in host memory that takes "
               "over if the GPU fails; else in host memory." },

  { .path = "kernels.isa", .type = SETTING_CHOICE, .offset = AT_ENUM(isa), .default_text = "auto",
    .words = WORDS({ "auto", N_ISAS }, { "ref", ISA_REF }, { "avx2", ISA_AVX2 }, { "avx512", ISA_AVX512 },
                   { "avx512vnni", ISA_AVX512_VNNI }, { "avx512vbmi", ISA_AVX512_VBMI }, { "amx", ISA_AMX }),
    .meaning = "Instruction set for the arithmetic. All give the same results; `auto` picks the best available." },

  { .path = "canary.interval_ms", .type = SETTING_NUMBER, .offset = AT(canary.interval_ms), .min = 0, .max = 60000,
    .default_text = "0",
    .meaning = "How often to measure how long an update takes to be in the answers: the daemon writes a delete of an "
               "item that never was, `sluice.canary`, to `catalogue.topic`, and waits for it. It needs `WRITE` on the "
               "topic. Needs `catalogue.format: sluice`. 0: never." },

  { .path = "http.listen", .type = SETTING_ADDRESS, .offset = AT(http.listen), .min = 1, .max = 64,
    .default_text = "127.0.0.1:8321",
    .meaning = "Address of the status page `/`, and of `/healthz`, `/readyz`, `/metrics` and `/status`. There is no "
               "authentication: keep it on a loopback address." },
  { .path = "http.hosts", .type = SETTING_HOSTS, .offset = AT(http.hosts), .min = 1, .max = 253, .default_text = "",
    .meaning = "Hosts that requests may use: names such as `sluice.example.org`, or addresses; the port does not "
               "matter. On a loopback address, only `localhost`, loopback addresses and these are answered, which "
               "protects against DNS rebinding. On another address, every name is answered until this list has an "
               "entry." },

  { .path = "http.data", .type = SETTING_CHOICE, .offset = AT_ENUM(http.data), .default_text = "local",
    .words = WORDS({ "local", CONFIG_DATA_LOCAL }, { "all", CONFIG_DATA_ALL }, { "off", CONFIG_DATA_OFF }),
    .meaning = "Who may read the pages with data, `/items/KEY` and `/seen/USER`, and the lines of the log in `/` and "
               "`/status`. `local`: clients on this machine, which a proxy on it is too. `all`: whoever reaches "
               "`http.listen`. `off`: nobody." },
  { .path = "http.try_queries", .type = SETTING_CHOICE, .offset = AT_ENUM(http.trials), .default_text = "auto",
    .words = WORDS({ "auto", CONFIG_TRIALS_AUTO }, { "on", CONFIG_TRIALS_ON }, { "off", CONFIG_TRIALS_OFF }),
    .meaning = "A box on the status page to try a query by an item's key, for those who may see data (`http.data`). "
               "`auto`: if `http.listen` is a loopback address; elsewhere people reach it who may not write queries. "
               "A shard has none." },

  { .path = "tracing.endpoint", .type = SETTING_URL, .offset = AT(tracing.endpoint), .min = 0, .max = 2000,
    .default_text = "",
    .meaning = "Where an OpenTelemetry collector takes traces by OTLP/HTTP: `http://127.0.0.1:4318/v1/traces`. Queries "
               "whose `traceparent` is sampled then have spans (operations.md). Empty: there are no spans." },

  { .path = "embedded_broker.enabled", .type = SETTING_BOOL, .offset = AT(embedded_broker.is_enabled),
    .default_text = "false",
    .meaning = "Run a broker inside the daemon, to try Sluice without Kafka. It is reachable from this machine only, "
               "holds about 5 MiB per partition, drops older records, and keeps nothing when the daemon stops. "
               "`/status` shows its address." },
  { .path = "embedded_broker.partitions", .type = SETTING_NUMBER, .offset = AT(embedded_broker.partitions),
    .min = 1, .max = 1000, .default_text = "4",
    .meaning = "Partitions of each topic of the embedded broker. Each has room for about 5 MiB." },

  { .path = "log.level", .type = SETTING_CHOICE, .offset = AT_ENUM(log_level), .default_text = "info",
    .words = WORDS({ "error", LOG_LEVEL_ERROR }, { "warn", LOG_LEVEL_WARN }, { "info", LOG_LEVEL_INFO },
                   { "debug", LOG_LEVEL_DEBUG }),
    .meaning = "Least important level that is logged. The log goes to standard error, or to the journal if that is "
               "where it leads." },
};
/* clang-format on */

const size_t n_settings = sizeof settings / sizeof settings[0];

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
  return s->type == SETTING_PROPERTIES || s->type == SETTING_HOSTS || s->type == SETTING_PATTERNS ||
         s->type == SETTING_ATTRIBUTES || s->type == SETTING_FIELDS;
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
    /* Compare with the setting itself and with each section that contains it. */
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
