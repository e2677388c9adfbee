/* SPDX-License-Identifier: Apache-2.0 */
/* The attribute columns of an arena: each item's values, indexed by slot, and the slots that have each text. They are
 * written by the same path as the columns of the spaces, so a filter and the vectors share one epoch.
 *
 * Thread: written by the owner of the back arena; read by any thread while the arena is in front.
 */
#ifndef ENGINE_ATTRIBUTES_ATTRIBUTE_COLUMNS_H
#define ENGINE_ATTRIBUTES_ATTRIBUTE_COLUMNS_H

#include "base/change_log.h"
#include "base/item.h"
#include "engine/filter/filter.h"
#include "kernels/kernels.h"

struct attribute_columns;

/* Reserve columns for `capacity` slots. The types of the attributes are copied. Returns ERR_MEMORY. */
err_t attribute_columns_open(const struct attributes *attributes, const struct kernels *kernels, size_t capacity,
                             struct attribute_columns **out);
void attribute_columns_close(struct attribute_columns **c);

/* Estimate the bytes of an item: with texts that some other items have too, and with few texts in a set. Items whose
 * texts are long and all different take more. */
size_t attribute_columns_bytes_per_item(const struct attributes *attributes);

/* Write a value of a slot; VALUE_NULL removes it. The value has the attribute's type.
 *
 * Returns ERR_MEMORY; ERR_ITEM for a set of more than ATTRIBUTE_SET_MAX texts, which changes nothing. */
err_t attribute_columns_put(struct attribute_columns *c, uint32_t slot, size_t attribute, const struct value *value);

/* Remove all values of a slot. */
void attribute_columns_drop(struct attribute_columns *c, uint32_t slot);

/* Move the values of `from` to `to`, which has none. Afterwards `from` has none. Returns ERR_MEMORY. */
err_t attribute_columns_move(struct attribute_columns *c, uint32_t from, uint32_t to);

/* Give back the memory of slots from..to-1, which have no values. No slot from `to` on has had one since the last call.
 */
void attribute_columns_trim(struct attribute_columns *c, size_t from, size_t to);

/* Loading empty columns from several threads, as columns_ops.load and columns_ops.copy do. Nobody reads meanwhile, and
 * attribute_columns_finish() comes at the end.
 *
 * Put a value into a slot. Threads: several at once, each for other blocks of
 * LOAD_BLOCK_SLOTS slots. Returns as attribute_columns_put(). */
err_t attribute_columns_load(struct attribute_columns *c, uint32_t slot, size_t attribute, const struct value *value);

/* Copy slots first..first+n-1, which begin a block of LOAD_BLOCK_SLOTS slots and lie in it, from columns of the same
 * attributes, which may be read meanwhile. All values must come by copies then, and from the same columns. Threads as
 * attribute_columns_load(). Returns ERR_MEMORY. */
err_t attribute_columns_copy(struct attribute_columns *c, const struct attribute_columns *from, size_t first, size_t n);

/* Complete loaded columns: no slot from `n_slots` on has a value. Returns ERR_MEMORY. */
err_t attribute_columns_finish(struct attribute_columns *c, size_t n_slots);

/* Changes of values since the last call belong to this epoch. A value that is put again is no change. Moves, loads and
 * copies are not noted: the arena notes them for all attributes. */
void attribute_columns_date(struct attribute_columns *c, uint64_t epoch);

/* The changes of an attribute's values, by slot. Valid while the columns are open. */
const struct change_log *attribute_columns_changes(const struct attribute_columns *c, size_t attribute);

/* Number of slots that have the attribute. */
uint64_t attribute_columns_count(const struct attribute_columns *c, size_t attribute);

/* What a copy of a column elsewhere keeps of a slot. */
struct attribute_cell {
  bool is_present;
  bool is_true;  /* bool */
  int64_t value; /* integer, time; number: its key, an integer in the order of the numbers; keyword: its text's code. 0
                  * if the slot has no value, and for sets of keywords */
};
struct attribute_cell attribute_columns_cell(const struct attribute_columns *c, size_t attribute, uint32_t slot);

/* The value of a slot; VALUE_NULL: it has none. The attribute is no set of keywords. A text is valid until the columns
 * change. */
struct value attribute_columns_value(const struct attribute_columns *c, size_t attribute, uint32_t slot);

/* Copy the value of a slot into a region. The texts of a set are in bytewise order. Returns ERR_MEMORY. */
err_t attribute_columns_copy_value(const struct attribute_columns *c, size_t attribute, uint32_t slot,
                                   struct region *region, struct value *out);

/* Read the number of a slot, rounded to a double; false: it has none. The attribute is an integer, a number or a time.
 */
bool attribute_columns_number(const struct attribute_columns *c, size_t attribute, uint32_t slot, double *out);

/* The slots that have the attribute: a bit for each. Valid until the columns change. */
const uint64_t *attribute_columns_present(const struct attribute_columns *c, size_t attribute);

/* The bucket of each slot's number (value_buckets.h); 0 if it has none. Valid until the columns change. */
const uint8_t *attribute_columns_buckets(const struct attribute_columns *c, size_t attribute);

/* Bound the numbers of all slots, or of those in a bucket, rounded to doubles. Returns false if there are none. The
 * bounds need not be numbers of any slot. */
bool attribute_columns_range(const struct attribute_columns *c, size_t attribute, double *low, double *high);
bool attribute_columns_bucket_range(const struct attribute_columns *c, size_t attribute, unsigned bucket, double *low,
                                    double *high);

/* From now on, mark slots whose values are written, for the one who keeps copies. The columns are empty. Returns
 * ERR_MEMORY. */
err_t attribute_columns_mark(struct attribute_columns *c);

/* Take the marks of the first word of 64 slots at or after `from` that has some: as slot_marks_take(). */
bool attribute_columns_take_marks(struct attribute_columns *c, size_t attribute, size_t from, size_t *word,
                                  uint64_t *slots);

/* The column of an attribute of type `time`. Valid until the columns change. */
struct attribute_times {
  const uint64_t *present; /* a bit for each slot: it has the attribute */
  const int64_t *v;        /* by slot, in milliseconds since 1970; unspecified for slots without the attribute */
};
struct attribute_times attribute_columns_times(const struct attribute_columns *c, size_t attribute);

/* Evaluate a filter for slots 64*first..64*(first+n)-1: bit s % 64 of words[s / 64 - first] is set if the filter is
 * true for slot s. Bits of slots that have no item are unspecified.
 *
 * first, n  first + n is at most the capacity in words of 64 slots, rounded up
 * words     [n]
 * scratch   memory for the call, which is rewound
 *
 * Returns ERR_MEMORY. Thread: any, while the arena is in front. Evaluate many stretches by attribute_selection.h.
 */
err_t attribute_columns_select(const struct attribute_columns *c, const struct filter_node *filter, size_t first,
                               size_t n, uint64_t *words, struct region *scratch);

#endif
