/* SPDX-License-Identifier: Apache-2.0 */
/* The table of settings, and operations on a setting by its row: private to the configuration. Thread: one. */
#ifndef DAEMON_CONFIG_CONFIG_SETTINGS_H
#define DAEMON_CONFIG_CONFIG_SETTINGS_H

#include <stdio.h>

#include "daemon/config/config.h"

enum setting_type {
  SETTING_NUMBER,     /* uint64_t */
  SETTING_BOOL,       /* bool */
  SETTING_CHOICE,     /* an enum: one of the row's words */
  SETTING_EITHER,     /* bool: one of the row's two words */
  SETTING_TEXT,       /* char * */
  SETTING_SECRET,     /* char *; the file may refer to the value (config_secret.h) */
  SETTING_TOPIC,      /* char *, a valid name of a Kafka topic */
  SETTING_PATH,       /* char *; a relative path starts at the configuration file's directory */
  SETTING_ADDRESS,    /* char *, numeric address:port */
  SETTING_URL,        /* char *, of http or https; "": none */
  SETTING_HOSTS,      /* struct config_list of hosts */
  SETTING_PATTERNS,   /* struct config_list of topics with wildcards; the file has a list or a single one */
  SETTING_PROPERTIES, /* struct kafka_properties */
  SETTING_ATTRIBUTES, /* struct attributes */
  SETTING_FIELD,      /* char *, a path into a record; "": none */
  SETTING_FIELDS,     /* struct config_fields */
};

/* A word that a setting may be, and the value that stands for it. */
struct setting_word {
  const char *word; /* NULL: after the last one */
  unsigned value;   /* of the row's enum; false or true */
};

struct setting {
  const char *path; /* "catalogue.max_items"; in "spaces.NAME.dim" NAME stands for any space */
  enum setting_type type;
  size_t offset; /* of the field in struct config; below spaces.NAME, in struct config_space */
  uint64_t min;  /* smallest number; of a string or a list's element, fewest bytes */
  uint64_t max;
  const char *default_text;         /* as in the file; NULL: the setting is required; "": an empty map or list */
  const struct setting_word *words; /* SETTING_CHOICE, SETTING_EITHER; else NULL */
  const char *meaning;
};

enum { SPACES_MAX = 1000, LIST_MAX = 1000, FIELDS_MAX = 256, SETTING_PATH_BYTES = 128, SETTING_WORDS_BYTES = 128 };

extern const struct setting settings[];
extern const size_t n_settings;

/* Return the index of the setting with this path; n_settings if there is none. */
size_t settings_find(const char *path);

/* Is there a setting below this path? */
bool settings_has_section(const char *path);

/* Copy the path of the setting or section that is most similar to the given path. Those with the same last word come
 * first, because a setting is often put into the wrong section.
 *
 * out  [SETTING_PATH_BYTES]
 */
void settings_nearest(const char *path, char *out);

/* Is it a map or a list? These are empty unless the file gives them. */
bool setting_is_collection(const struct setting *s);

/* Does every space have its own value? */
bool setting_is_in_space(const struct setting *s);

/* Set the value of a setting from text. A list gets the text as a new element. Not for maps.
 *
 * base       the struct that `offset` counts from
 * directory  of the configuration file, with a slash at the end; "" for the working directory
 *
 * Returns ERR_CONFIG with what is expected: "expects true or false, not "yes"".
 */
err_t setting_set(const struct setting *s, void *base, const char *directory, struct span text);

/* Print the words that a setting may be, as documented: "`wait`, `stop`". */
void setting_print_words(const struct setting *s, char out[SETTING_WORDS_BYTES]);

/* Free the memory of a setting's value. All zeros, as before the value was set, is fine.
 *
 * base  the struct that `offset` counts from
 */
void setting_free(const struct setting *s, void *base);

/* Verify that a librdkafka property may be configured: Sluice sets some itself, and librdkafka rejects some.
 *
 * s  the setting of SETTING_PROPERTIES that contains the property
 *
 * Returns ERR_CONFIG with the reason.
 */
err_t setting_verify_property(const struct setting *s, const struct kafka_property *property);

/* Verify the name of a space. Returns ERR_CONFIG. */
err_t setting_verify_space(struct span name);

#endif
