/* SPDX-License-Identifier: Apache-2.0 */
/* Values of attributes and of filter parameters, and the types that a configuration gives to attributes. */
#ifndef BASE_VALUE_H
#define BASE_VALUE_H

#include "base/span.h"

/* What a value is, as JSON tells it. */
enum value_kind {
  VALUE_NULL, /* removes an attribute; as the value of an item: the attribute is absent */
  VALUE_BOOL,
  VALUE_INTEGER,
  VALUE_NUMBER,
  VALUE_TEXT, /* UTF-8 */
  VALUE_LIST, /* of values that are neither null nor lists */
};

/* A value. It borrows its texts and elements from the message, record or region that it came from. */
struct value {
  enum value_kind kind;
  union {
    bool is_true;     /* VALUE_BOOL */
    int64_t integer;  /* VALUE_INTEGER */
    double number;    /* VALUE_NUMBER: finite */
    struct span text; /* VALUE_TEXT */
    struct {          /* VALUE_LIST */
      const struct value *v;
      size_t n;
    } list;
  };
};

/* Digits of a number that a person reads. More would show 9.99 as 9.9900000000000002. */
enum { VALUE_SHOWN_DIGITS = 15 };

/* The type of an attribute, from the configuration. The comment says which values it takes. */
enum attribute_type {
  ATTRIBUTE_BOOL,     /* VALUE_BOOL */
  ATTRIBUTE_KEYWORD,  /* VALUE_TEXT */
  ATTRIBUTE_KEYWORDS, /* VALUE_LIST of VALUE_TEXT: a set. Kept without repetitions, in bytewise order */
  ATTRIBUTE_INTEGER,  /* VALUE_INTEGER */
  ATTRIBUTE_NUMBER,   /* VALUE_NUMBER or VALUE_INTEGER, kept as VALUE_NUMBER */
  ATTRIBUTE_TIME,     /* VALUE_INTEGER: milliseconds since 1970, not negative */
  N_ATTRIBUTE_TYPES
};

/* Limits of attributes. */
enum {
  ATTRIBUTES_MAX = 64,      /* attributes of a configuration, and values of one item */
  ATTRIBUTE_NAME_MAX = 64,  /* bytes: a letter or _, then letters, digits and _ */
  ATTRIBUTE_TEXT_MAX = 256, /* bytes of a text */
  ATTRIBUTE_SET_MAX = 256,  /* texts in a set */
};

/* An attribute as the configuration declares it. */
struct attribute {
  struct span name;
  enum attribute_type type;
};

/* The attributes of a configuration, in its order. An index of this array is "the attribute" everywhere else. */
struct attributes {
  const struct attribute *v;
  size_t n;
};

/* An attribute's value in a change of an item. */
struct attribute_value {
  struct span name;
  struct value value; /* VALUE_NULL: the attribute is removed */
};

#endif
