/* SPDX-License-Identifier: Apache-2.0 */
/* The phases of the catalogue thread and their names. Thread: any. */
#ifndef DAEMON_CATALOGUE_CATALOGUE_PHASE_H
#define DAEMON_CATALOGUE_CATALOGUE_PHASE_H

/* Only CATALOGUE_LIVE is ready. */
enum catalogue_phase {
  CATALOGUE_LOADING,     /* loading the store into the arenas */
  CATALOGUE_CONNECTING,  /* waiting for a broker that answers */
  CATALOGUE_TOPIC_AWAY,  /* the broker answers, but has no such topic */
  CATALOGUE_DENIED,      /* the broker does not allow us to read the topic */
  CATALOGUE_CATCHING_UP, /* reading up to the end that the topic had when reading began */
  CATALOGUE_REBUILDING,  /* reading another topic from its first record; the former catalogue is served */
  CATALOGUE_AWAITING,    /* the rebuilt catalogue waits for `sluicectl rebuild accept` */
  CATALOGUE_FULL,        /* catalogue.max_items is reached: deletes and updates are applied, new items wait */
  CATALOGUE_DISK_FULL,   /* the store's disk is full: nothing is applied */
  CATALOGUE_DAMAGED,     /* a partition cannot be read at some offset: the broker's data is damaged */
  CATALOGUE_SCHEMA_AWAY, /* a partition waits for the schema of its next record: the registry does not answer */
  CATALOGUE_LIVE,
};

/* Return the phase in words, for people: "catching up". */
const char *catalogue_phase_name(enum catalogue_phase phase);

/* Return the phase as one word, for metrics: "disk_full". */
const char *catalogue_phase_word(enum catalogue_phase phase);

#endif
