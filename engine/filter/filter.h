/* SPDX-License-Identifier: Apache-2.0 */
/* Filters: which items a query admits. A filter is text with parameters (docs/filters.md). It is parsed and checked
 * against the configured attributes once, and becomes a tree of few kinds of nodes.
 *
 * An absent attribute satisfies no comparison. A node is therefore true or false for every item, and `not` inverts it.
 */
#ifndef ENGINE_FILTER_FILTER_H
#define ENGINE_FILTER_FILTER_H

#include "base/err.h"
#include "base/region.h"
#include "base/value.h"

enum filter_kind {
  FILTER_ALL,      /* true for every item */
  FILTER_NONE,     /* false for every item */
  FILTER_AND,      /* all operands are true */
  FILTER_OR,       /* one operand is true */
  FILTER_NOT,      /* its one operand is false */
  FILTER_HAS,      /* the attribute is present */
  FILTER_IS,       /* bool: present and equal to is_true */
  FILTER_INTEGERS, /* integer, time: present, and low <= value <= high */
  FILTER_NUMBERS,  /* number: present, and low <= value <= high; neither bound is NaN */
  FILTER_ONE_OF,   /* integer, time, number: present, and equal to one of the values */
  FILTER_TEXTS,    /* keyword: present, and one of the texts; keywords: the set has one of the texts */
};

/* Limits of a filter. */
enum {
  FILTER_NODES_MAX = 1024,   /* of a tree */
  FILTER_DEPTH_MAX = 64,     /* levels of a tree */
  FILTER_NESTING_MAX = 30,   /* parentheses and nots inside one another in the text */
  FILTER_VALUES_MAX = 20000, /* values of all lists; those of a parameter count at each use */
};

struct filter_node {
  enum filter_kind kind;
  size_t attribute; /* an index of the configured attributes; of leaves only */
  union {
    struct { /* FILTER_AND, FILTER_OR: two or more; FILTER_NOT: one */
      const struct filter_node *const *v;
      size_t n;
    } operands;
    bool is_true; /* FILTER_IS */
    struct {      /* FILTER_INTEGERS; low <= high */
      int64_t low, high;
    } integers;
    struct { /* FILTER_NUMBERS; low <= high; the bounds may be infinite */
      double low, high;
    } numbers;
    struct { /* FILTER_ONE_OF of integers and times: rising, each once, two or more */
      const int64_t *v;
      size_t n;
    } integer_values;
    struct { /* FILTER_ONE_OF of numbers: rising, each once, two or more */
      const double *v;
      size_t n;
    } number_values;
    struct { /* FILTER_TEXTS: in bytewise order, each once, one or more */
      const struct span *v;
      size_t n;
    } texts;
  };
};

/* Parse a filter and check it against the attributes.
 *
 * text        UTF-8, at most QUERY_FILTER_MAX bytes; text without a filter in it is an error
 * parameters  [n] values of $1 ... $n; each must be used
 * out         the root; it lives in the region, and borrows texts from `text` and `parameters`
 *
 * Returns ERR_OK; ERR_QUERY with the position and what was expected there, such as "filter: at character 9: price is a
 * number, and 'cheap' is text"; ERR_MEMORY, or ERR_TOO_LARGE beyond the region's limit. Thread: any. Time: linear in
 * the text and the parameters, except for sorting lists.
 */
err_t filter_parse(struct span text, const struct value *parameters, size_t n, const struct attributes *attributes,
                   struct region *region, const struct filter_node **out);

/* Is the word a keyword of filters, such as "and", in any case? An attribute of that name could not be written. */
bool filter_is_keyword(struct span word);

/* Write the filter as bytes that are equal for equal trees: a key for a cache. Lives in the region. */
err_t filter_print(const struct filter_node *node, const struct attributes *attributes, struct region *region,
                   struct span *out);

#endif
