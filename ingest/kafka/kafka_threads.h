/* SPDX-License-Identifier: Apache-2.0 */
/* The threads that librdkafka runs for one client: they can stand back behind all other threads. Private to ingest/.
 *
 * Thread: any.
 */
#ifndef INGEST_KAFKA_THREADS_H
#define INGEST_KAFKA_THREADS_H

#include <librdkafka/rdkafka.h>
#include <pthread.h>
#include <stdbool.h>
#include <sys/types.h>

/* A client has a thread for each broker, and two or three more. Those beyond the limit stay in front. */
enum { KAFKA_THREADS_MAX = 256 };

struct kafka_threads {
  pthread_mutex_t lock; /* a thread that is listed does not end meanwhile */
  pid_t ids[KAFKA_THREADS_MAX];
  size_t n;
  int policy; /* of a thread in front */
  bool stands_back;
};

/* Watch the threads of the client that will be made with this configuration. In front they have the policy of the
 * calling thread.
 *
 * out  outlives the client */
void kafka_threads_watch(rd_kafka_conf_t *conf, struct kafka_threads *out);
void kafka_threads_fini(struct kafka_threads *t);

/* Let all threads stand back (SCHED_IDLE), also those that start later; or let them return, if the system allows it. */
void kafka_threads_stand_back(struct kafka_threads *t, bool stands_back);

#endif
