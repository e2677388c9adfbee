/* SPDX-License-Identifier: Apache-2.0 */
/* The table of settings: private to the configuration. */
#ifndef DAEMON_CONFIG_CONFIG_SETTINGS_H
#define DAEMON_CONFIG_CONFIG_SETTINGS_H

#include <stdio.h>

#include "daemon/config/config.h"

enum setting_type {
  SETTING_NUMBER,     /* uint64_t */
  SETTING_BOOL,       /* bool */
  SETTING_CHOICE,     /* one of a few words: what it sets is its function's business */
  SETTING_TEXT,       /* char * */
  SETTING_TOPIC,      /* char *, what Kafka takes as a topic's name */
  SETTING_PATH,       /* char *, relative to the configuration file */
  SETTING_ADDRESS,    /* char *, numeric address:port */
  SETTING_LIST,       /* struct config_list of texts */
  SETTING_PATTERNS,   /* struct config_list of topics, with wildcards; in the file a list or one text */
  SETTING_PROPERTIES, /* struct kafka_properties */
};

struct setting {
  const char *path; /* "catalogue.max_items"; NAME stands for any name */
  enum setting_type type;
  size_t offset; /* of the field in struct config, or in struct config_space for what is below spaces.NAME */
  uint64_t min;  /* of a number; of a text, its bytes; of a list, those of each text */
  uint64_t max;
  const char *default_text; /* as one would write it; NULL: required; "" of properties and lists: none */
  const char *choices;      /* SETTING_CHOICE: the words, for people */
  bool (*choose)(struct config *c, const char *word); /* false: not one of them */
  const char *meaning;
};

enum { SETTINGS_MAX = 64, SPACES_MAX = 1000, LIST_MAX = 1000, SETTING_PATH_BYTES = 128 };

extern const struct setting settings[];
extern const size_t n_settings;

/* Find by path; n_settings where there is none. */
size_t settings_find(const char *path);

/* Whether some setting lies below the path. */
bool settings_has_section(const char *path);

/* Copy the path of the setting or section that is most like the given one: of those with the same last word, if there
 * are any.
 *
 * out  SETTING_PATH_BYTES
 */
void settings_nearest(const char *path, char *out);

/* A map or a list: empty unless given. */
bool setting_is_collection(const struct setting *s);

bool setting_is_in_space(const struct setting *s);

/* Set the value of a setting from text; of a list, add the text to it. Not of SETTING_PROPERTIES.
 *
 * base       what `offset` counts from
 * directory  of the configuration file, with the slash; "" for the working directory
 *
 * Returns ERR_CONFIG, the message says what would do: "expects true or false, not "yes"".
 */
err_t setting_set(const struct setting *s, struct config *c, void *base, const char *directory, struct span text);

/* Verify a property that a configuration gives for librdkafka: Sluice sets some itself, and librdkafka refuses some.
 *
 * s  the setting of SETTING_PROPERTIES that it is in
 */
err_t setting_verify_property(const struct setting *s, const struct kafka_property *property);

/* Verify the name of a space. */
err_t setting_verify_space(struct span name);

void settings_write_reference(FILE *out);

#endif
