/* SPDX-License-Identifier: Apache-2.0 */
/* Queries and answers: ingest decodes and encodes them, the engine searches. */
#ifndef BASE_QUERY_H
#define BASE_QUERY_H

#include "base/err.h"
#include "base/item.h"

/* A search method: a name and up to two numbers, such as "average(4000)". */
enum { METHOD_NAME_MAX = 24, METHOD_ARGS_MAX = 2 };

struct method {
  char name[METHOD_NAME_MAX];
  uint32_t args[METHOD_ARGS_MAX];
  unsigned n_args;
};

/* Limits of a query. */
enum {
  QUERY_ID_MAX = 1024,                /* bytes */
  QUERY_METHOD_MAX = 128,             /* bytes */
  QUERY_EXCLUDE_MAX = 100000,         /* keys */
  QUERY_AT_LEAST_MAX = 4096,          /* positions */
  QUERY_FILTER_MAX = 16384,           /* bytes */
  QUERY_PARAMETERS_MAX = 64,          /* parameters of a filter */
  QUERY_PARAMETER_VALUES_MAX = 10000, /* values of all parameters of a filter */
  QUERY_EXPLAIN_MAX = 16,             /* keys */
  QUERY_LIKES_MAX = 100,              /* items */
  QUERY_BOOSTS_MAX = 8,               /* boosts */
  QUERY_MMR_MAX = 1000,               /* candidates of mmr */
};

/* Limit on the weight of a boost, in magnitude. */
#define QUERY_BOOST_WEIGHT_MAX 1e9

/* Limits on the weight of an item in `likes`, in magnitude. */
#define QUERY_LIKE_WEIGHT_MIN 1e-9
#define QUERY_LIKE_WEIGHT_MAX 1e9

/* Kafka's limit on the length of a topic name, in bytes. */
enum { TOPIC_NAME_MAX = 249 };

struct filter_node;
struct key_set;

/* An item that hits are to be like, or unlike if its weight is negative. */
struct like {
  struct span key;
  double weight;
};

/* At most n hits with the same value of an attribute. */
struct max_per {
  struct span attribute; /* its name */
  uint32_t n;            /* 0: there is no such limit */
};

/* Hits that differ from each other, chosen among the best items by maximal marginal relevance: engine/mmr.h. */
struct mmr {
  double diversity;    /* above 0, at most 1; 0: there is no mmr */
  uint32_t candidates; /* how many of the best items they are chosen among; 0: as many as query_mmr_candidates() says */
  bool is_left_open;   /* the answer has all candidates, with their vectors: a merge is to choose */
};

/* What is added to the score of each item: a multiple of an attribute, or a constant for the items that a filter
 * admits.
 */
struct boost {
  double weight;         /* finite */
  struct span attribute; /* its name; empty: there is a filter */
  int64_t half_life_ms;  /* of an attribute of type time, at least 1; 0: the attribute is a number */
  struct span filter;
  const struct value *parameters; /* [n_parameters] of the filter */
  size_t n_parameters;
  const struct filter_node *tree; /* the filter, parsed by engine_check_filter() */
  struct span tree_key;           /* equal bytes for equal trees */
};

/* A query, as its message has it. It borrows its bytes from that. */
struct query {
  struct span id;
  struct span space;
  struct span method; /* as the client wrote it */
  uint32_t k;
  struct floats vector;
  struct floats components;
  struct floats query_gate;
  bool has_user_id;
  int64_t user_id;
  struct span *exclude; /* keys */
  size_t n_exclude;
  struct like *likes; /* items whose parts make the query's data; none: the query has data of its own */
  size_t n_likes;
  struct span *explain; /* keys */
  size_t n_explain;
  struct span filter;             /* docs/filters.md; empty: every item is admitted */
  const struct value *parameters; /* parameters[i] is $(i+1) in the filter */
  size_t n_parameters;
  struct max_per max_per;
  struct mmr mmr;
  bool has_min_score; /* min_score is known */
  float min_score;    /* finite: hits with lower scores are left out */
  struct boost *boosts;
  size_t n_boosts;
  bool has_now;            /* now_unix_ms is known */
  int64_t now_unix_ms;     /* ages in boosts are counted to it */
  struct span *attributes; /* names of those that the hits show */
  size_t n_attributes;
  struct position *at_least;
  size_t n_at_least;
  struct span exclude_seen_by; /* a user, at most SEEN_USER_MAX bytes; empty: nobody */
  struct position *at_least_seen;
  size_t n_at_least_seen;
  bool no_wait;
  bool is_background; /* it lets others go first */
  bool allow_partial; /* shards that do not answer in time may be missing */
  bool has_deadline;
  int64_t deadline_unix_ms;
  struct span reply_topic; /* at most TOPIC_NAME_MAX bytes; empty: the configured topic */

  /* What the daemon adds before the search. */
  uint32_t generation;            /* to search if `space` names none, and has this one; 0: the current one */
  const struct filter_node *tree; /* the filter, parsed by engine_check_filter(); NULL: there is none */
  struct span tree_key;           /* equal bytes for equal trees */
  const struct key_set *seen;     /* more keys to exclude, such as those that a user has seen; NULL: none */
};

/* Does the search of a query take rounds (engine/search_rounds.h)? */
static inline bool query_takes_rounds(const struct query *query)
{
  return query->max_per.n > 0 || query->n_boosts > 0;
}

/* Return among how many items the hits of a query with mmr are chosen.
 *
 * max_k  query.max_k
 */
uint32_t query_mmr_candidates(const struct query *query, size_t max_k);

/* Verify the number of values of all parameters [n] together. Returns ERR_QUERY with that number. Thread: any. */
err_t query_verify_parameters(const struct value *parameters, size_t n);

struct hit {
  struct span key;
  uint32_t slot; /* in the arena, while the search that has found it holds that; later without meaning */
  float score;
  float similarity;   /* the score without boosts, if the query has some */
  struct value value; /* of the attribute of max_per; VALUE_NULL: the item has none, or the query has no max_per */
  struct attribute_value *attributes; /* those of the query's attributes that the item has, in the query's order */
  size_t n_attributes;
  struct floats vector; /* of a candidate that a merge may choose; else empty */
};

/* Compare two hits for qsort(): the best first, those of equal scores in the order of their keys. */
int query_compare_hits(const void *a, const void *b);

/* The guarantees of an answer. */
struct receipt {
  bool is_exact;  /* the hits are the K best, with min_score of the items that reach it */
  bool has_bound; /* false: the hits are all admitted items. Those that max_per or mmr leave out do not count */
  float bound;    /* no item outside the hits scores above this. Those that max_per or mmr leave out do not count */
};

/* How a query with a filter was searched. The counts decide. */
enum query_plan {
  QUERY_PLAN_MASKED, /* the method's search, which skips items that are not admitted */
  QUERY_PLAN_ALL,    /* the same, and nothing was to skip */
  QUERY_PLAN_FEW,    /* the admitted items were few: each was scored, without the method's own search */
  QUERY_PLAN_SCAN,   /* `exact` of recjpq gave up its cells before they were done, for a scan */
  QUERY_PLANS,
};

/* The work of a search. */
struct counts {
  uint64_t items;       /* items of the space in the epoch */
  uint64_t scored;      /* items scored in full */
  uint64_t candidates;  /* items that the first stage passed on */
  bool has_admitted;    /* `admitted` is known */
  uint64_t admitted;    /* items that the query admits: they have a part of the space, pass its filter, and are not
                         * excluded */
  enum query_plan plan; /* of the first round, if the query takes rounds */
};

/* Add the work of a further round of a search. `scored` and `candidates` stay at most `items`. */
void query_add_counts(const struct counts *round, struct counts *out);

/* Values of sluice.v1.Explanation.Verdict. */
enum verdict {
  VERDICT_UNKNOWN = 0,
  VERDICT_NO_ITEM = 1,
  VERDICT_NO_PART = 2,
  VERDICT_EXPIRED = 3,
  VERDICT_EMBARGOED = 4,
  VERDICT_EXCLUDED = 5,
  VERDICT_SEEN = 6,
  VERDICT_FILTERED = 7,
  VERDICT_HIT = 8,
  VERDICT_OUTRANKED = 9,
  VERDICT_MISSED = 10,
  VERDICT_CROWDED_OUT = 11,
  VERDICT_PASSED_OVER = 12,
  VERDICT_TOO_LOW = 13,
};

/* Why an item is a hit, or not. */
struct explanation {
  struct span key; /* the query's */
  enum verdict verdict;
  bool has_score;
  float score;
  uint32_t rank;        /* of a hit, from 1 on; else 0 */
  float below_last_hit; /* of VERDICT_OUTRANKED */
};

/* Values of sluice.v1.Error.Code. */
enum answer_error {
  ANSWER_OK = 0,
  ANSWER_BAD_QUERY = 1,
  ANSWER_UNKNOWN_SPACE = 2,
  ANSWER_UNKNOWN_METHOD = 3,
  ANSWER_DEADLINE_PASSED = 4,
  ANSWER_NOT_SEEN = 5,
  ANSWER_UNAVAILABLE = 6,
  ANSWER_INTERNAL = 7,
  ANSWER_PARTIAL = 8,
};
enum { QUERY_ERRORS = ANSWER_PARTIAL + 1 };

/* Their names in the schema. That of ANSWER_OK is NULL. */
extern const char *const query_error_words[QUERY_ERRORS];

/* So many digits of the SHA-256 of a model file tell models apart. */
enum { ANSWER_MODEL_DIGITS = 16 };

struct answer {
  struct span id;
  struct span space;   /* without generation */
  uint32_t generation; /* of the space, from 1 on; 0: there are no hits */
  char model[ANSWER_MODEL_DIGITS + 1];
  struct method method; /* the one that ran */
  struct hit *hits;     /* best first, with mmr in the order in which they were chosen */
  size_t n_hits;
  struct explanation *explanations; /* of the query's explain, in its order */
  size_t n_explanations;
  struct span *likes_missing; /* keys of the query's `likes` that have no part in the space */
  size_t n_likes_missing;
  struct receipt receipt;
  uint64_t epoch;
  bool has_time;        /* time_unix_ms is known */
  int64_t time_unix_ms; /* the epoch's time: no hit is expired or embargoed then */
  bool is_boosted;      /* the query has boosts: the next field is known, and the hits' similarity */
  int64_t now_unix_ms;  /* ages in boosts were counted to it */
  const struct position *watermark;
  size_t n_watermark;
  struct counts counts;
  uint32_t queued_us;
  uint32_t searched_us;
  bool is_merged; /* the next three are known: the answer is joined from the parts of shards */
  uint32_t merged_us;
  uint32_t n_parts; /* shards that have answered, of n_shards */
  uint32_t n_shards;
  enum answer_error error;
  const char *error_message; /* set if error is not ANSWER_OK */
};

#endif
