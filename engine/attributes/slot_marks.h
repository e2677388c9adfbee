/* SPDX-License-Identifier: Apache-2.0 */
/* A set of slots that have been written, from which whoever keeps copies takes them again. Two levels of bits: to find
 * the marked slots of a batch takes a look at one bit for each 64 slots.
 *
 * Thread: one.
 */
#ifndef ENGINE_ATTRIBUTES_SLOT_MARKS_H
#define ENGINE_ATTRIBUTES_SLOT_MARKS_H

#include "base/bits.h"
#include "base/err.h"

/* All zeros: it has no memory, and nothing can be marked. */
struct slot_marks {
  size_t n_words;
  uint64_t *slots; /* [n_words] a bit for each slot: it is marked */
  uint64_t *words; /* [bits_words(n_words)] a bit for each word of slots: it is not 0 */
  size_t n_marked; /* words that are not 0 */
};

/* Reserve marks for n_words words of 64 slots. Returns ERR_MEMORY. */
err_t slot_marks_init(size_t n_words, struct slot_marks *out);
void slot_marks_fini(struct slot_marks *m);

/* Mark a slot, or all slots below n_slots. */
void slot_marks_set(struct slot_marks *m, uint32_t slot);
void slot_marks_set_all(struct slot_marks *m, size_t n_slots);

/* Take the marks of the first marked word at or after `from`: they are cleared.
 *
 * word   its number
 * slots  bit i: slot 64 * word + i was marked
 *
 * Returns false if there is none.
 */
bool slot_marks_take(struct slot_marks *m, size_t from, size_t *word, uint64_t *slots);

#endif
