/* SPDX-License-Identifier: Apache-2.0 */
/* The threads that librdkafka runs for one client, and their scheduling policy. Private to ingest/.
 *
 * Thread: any.
 */
#ifndef INGEST_KAFKA_THREADS_H
#define INGEST_KAFKA_THREADS_H

#include <librdkafka/rdkafka.h>
#include <pthread.h>
#include <sys/types.h>

/* A client has a thread for each broker, and two or three more. Those beyond the limit keep their policy. */
enum { KAFKA_THREADS_MAX = 256 };

struct kafka_threads {
  pthread_mutex_t lock; /* a thread that is listed does not end meanwhile */
  pid_t ids[KAFKA_THREADS_MAX];
  size_t n;
  int policy; /* of all of them */
};

/* Watch the threads of the client that will be made with this configuration. They have the policy of the calling
 * thread.
 *
 * out  outlives the client */
void kafka_threads_watch(rd_kafka_conf_t *conf, struct kafka_threads *out);
void kafka_threads_fini(struct kafka_threads *t);

/* Set the policy of all threads, also of those that start later: SCHED_OTHER, SCHED_BATCH or SCHED_IDLE. What the
 * system does not allow is not done. */
void kafka_threads_set_policy(struct kafka_threads *t, int policy);

#endif
