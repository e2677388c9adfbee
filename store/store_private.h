/* What the files of the store share. */
#ifndef STORE_STORE_PRIVATE_H
#define STORE_STORE_PRIVATE_H

#include "store/env.h"
#include "store/meta.h"
#include "store/positions.h"
#include "store/slots.h"
#include "store/store.h"
#include "store/tables.h"

#include <stdatomic.h>

/* A new map: address space and a sparse file, not memory or disk. */
enum { STORE_MAP_BYTES = 1 << 30 };

struct store {
  struct env *env;
  struct tables tables;

  /* As of the newest committed transaction. */
  struct meta meta;
  struct positions positions;
  char *cluster_id; /* NULL: no source yet */
  char *topic;

  uint64_t sweep_slot;    /* slots from here on are of the present generation: see store_rebuild.c */
  struct positions draft; /* positions of the transaction that is being written */
  struct region scratch;  /* lives for one change */
  struct region batch;    /* lives for one chunk of items that a visitor gets */

  struct {
    enum store_effect *kinds; /* [capacity] */
    size_t kinds_capacity;
    struct item_change *changes; /* [capacity] */
    size_t changes_capacity;
    size_t n_changes;
    size_t n_refused;
  } effects; /* of the newest batch */

  struct {
    _Atomic uint64_t n_items;
    _Atomic uint64_t map_bytes;
    _Atomic uint64_t used_bytes;
  } stats;
};

/* As store_open(), with the size of a new map: so that tests meet its end soon. */
err_t store_open_sized(const char *path, size_t map_bytes, struct store **out);

/* The slots as the newest committed transaction left them, within `txn`. */
struct slots store_slots(struct store *s, MDB_txn *txn);

/* Run `body` as env_write() does, then take over `*meta`, which body has written. */
err_t store_write(struct store *s, env_body body, void *context, const struct meta *meta);

#endif
