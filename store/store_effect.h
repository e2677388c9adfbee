/* SPDX-License-Identifier: Apache-2.0 */
/* What became of a change. Apart from store.h because the files that apply a change to a key decide it. */
#ifndef STORE_STORE_EFFECT_H
#define STORE_STORE_EFFECT_H

enum store_effect {
  STORE_APPLIED, /* the catalogue changed: store_effects.changes has one change for it */
  STORE_SKIPPED, /* nothing to do: it was applied before, or it deletes an item that does not exist */
  STORE_ASIDE,   /* kept aside: another partition has a newer record of the key */
  STORE_REFUSED, /* the catalogue is full: see store_set_limit() */
  STORE_UNFIT,   /* dropped: merged with the stored item it would exceed the size of a record */
};

#endif
