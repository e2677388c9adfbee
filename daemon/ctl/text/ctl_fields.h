/* SPDX-License-Identifier: Apache-2.0 */
/* Options that give fields to queries, of the commands that send queries: --filter, --max-per and others. Thread: one.
 */
#ifndef DAEMON_CTL_CTL_FIELDS_H
#define DAEMON_CTL_CTL_FIELDS_H

#include <jansson.h>

#include "daemon/ctl/text/ctl_boosts.h"
#include "daemon/ctl/text/ctl_max_per.h"
#include "daemon/ctl/text/ctl_min_score.h"
#include "daemon/ctl/text/ctl_mmr.h"

/* What the command line gives. All zeros: nothing. */
struct ctl_fields {
  const char *filter, *parameters;
  struct max_per max_per;
  struct mmr mmr; /* diversity 0: none */
  struct ctl_min_score min_score;
  const char *shown; /* names of attributes */
  struct ctl_boosts boosts;
};

/* The options' rows for ctl_option_take(). f: a pointer to the struct above. Of an empty --filter or --show,
 * ctl_fields_make() says what is expected. */
#define CTL_FIELDS_OPTIONS(f)                                                                           \
  { "filter", .text = &(f)->filter, .may_be_empty = true }, { "parameters", .text = &(f)->parameters }, \
      { "max-per", .take = ctl_max_per_take, .context = &(f)->max_per },                                \
      { "mmr", .take = ctl_mmr_take, .context = &(f)->mmr },                                            \
      { "min-score", .take = ctl_min_score_take, .context = &(f)->min_score },                          \
      { "show", .text = &(f)->shown, .may_be_empty = true },                                            \
      { "boost", .take = ctl_boosts_take, .context = &(f)->boosts },                                    \
      { "boost-if", .take = ctl_boosts_take_if, .context = &(f)->boosts },                              \
  {                                                                                                     \
    "now", .take = ctl_boosts_take_now, .context = &(f)->boosts                                         \
  }

/* Their places in a command's line of arguments, and in its help. */
#define CTL_FIELDS_ARGUMENTS                                                                    \
  " [--filter TEXT] [--max-per ATTRIBUTE:N] [--mmr DIVERSITY[:CANDIDATES]] [--min-score SCORE]" \
  " [--show ATTRIBUTE,...]"                                                                     \
  " [--boost WEIGHT:ATTRIBUTE[:HALF_LIFE]]... [--boost-if WEIGHT:FILTER]... [--now TIME]"
#define CTL_FIELDS_HELP                                                                                         \
  "  --filter TEXT     a filter for all of these queries: 'price < $1 and country in $2'\n"                     \
  "  --parameters JSON the values of $1, $2, ... in it: '[20, [\"de\", \"at\"]]'\n"                             \
  "  --max-per ATTRIBUTE:N\n"                                                                                   \
  "                    at most N hits with the same value of this attribute\n"                                  \
  "  --mmr DIVERSITY[:CANDIDATES]\n"                                                                            \
  "                    choose hits that differ from each other, among the best CANDIDATES (default: 5 times\n"  \
  "                    as many): the larger DIVERSITY, up to 1, the more they differ. 0.3 is a start\n"         \
  "  --min-score SCORE leave out hits with lower scores, even if fewer are left than were wanted\n"             \
  "  --show ATTRIBUTE,...\n"                                                                                    \
  "                    show these attributes of each hit: title,price; all with '*'\n"                          \
  "  --boost WEIGHT:ATTRIBUTE[:HALF_LIFE]\n"                                                                    \
  "                    add WEIGHT times this attribute to the score of each item: 0.2:popularity. Of a time,\n" \
  "                    add WEIGHT times 2^(-age / HALF_LIFE): 0.5:published:7d; s, m, h and d are its units.\n" \
  "                    May be repeated\n"                                                                       \
  "  --boost-if WEIGHT:FILTER\n"                                                                                \
  "                    add WEIGHT to the score of each item that this filter admits:\n"                         \
  "                    \"0.3:section = 'graphics'\". May be repeated\n"                                         \
  "  --now TIME        count ages in boosts to this time: 2026-11-22T12:00:00Z, milliseconds since 1970, or\n"  \
  "                    90s, 10m, 2h, 7d ago (default: when the query is sent)\n"

/* Make an object of the fields. The caller releases it. Returns ERR_USAGE with the option that is wrong, ERR_MEMORY. */
err_t ctl_fields_make(const struct ctl_fields *f, json_t **out);

/* Add a field to such an object, and release the value. NULL: a text that is not UTF-8. Returns ERR_USAGE, ERR_MEMORY.
 */
err_t ctl_fields_add(json_t *fields, const char *name, json_t *value);

/* Add the field `vector`, of numbers with commas between them. Returns ERR_USAGE, ERR_MEMORY. */
err_t ctl_fields_add_vector(json_t *fields, const char *numbers);

/* Does a query have a field, as max_per or as maxPer? null is as if it were absent, and is removed. */
bool ctl_fields_has(json_t *query, const char *name);

/* Give a query fields; NULL: none. One that it has itself is not replaced: nobody could tell which was meant. who: what
 * it is called in messages. Returns ERR_USAGE if it has one of its own, ERR_MEMORY. */
err_t ctl_fields_give(json_t *fields, const char *who, json_t *query);

#endif
