/* SPDX-License-Identifier: Apache-2.0 */
/* The threads of one Kafka client that have a connection: they can stand back behind all other threads.
 *
 * librdkafka has a thread for each broker, which opens and closes the connection, takes in what comes and checks it. So
 * the client's callbacks for sockets list its threads. librdkafka 2.0 has interceptors for this, but a client that has
 * one must not fail to be made: with a wrong certificate, for example, the process ends in a segmentation fault.
 */
#ifndef INGEST_KAFKA_THREADS_H
#define INGEST_KAFKA_THREADS_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Those beyond the limit stay in front. */
enum { KAFKA_THREADS_MAX = 256 };

struct kafka_threads {
  pthread_mutex_t lock; /* a thread that is listed does not end meanwhile */
  pid_t ids[KAFKA_THREADS_MAX];
  size_t n;
  int policy; /* of a thread in front */
  bool stands_back;
};

/* In front, threads have the policy of the calling thread. */
void kafka_threads_init(struct kafka_threads *out);
void kafka_threads_fini(struct kafka_threads *t);

/* Open a socket as socket() does, and list the calling thread. */
int kafka_threads_open_socket(struct kafka_threads *t, int domain, int type, int protocol);

/* Close a socket, and list the calling thread no longer: it is in front again. Returns what close() does. */
int kafka_threads_close_socket(struct kafka_threads *t, int socket);

/* Let all threads stand back (SCHED_IDLE), also those that are listed later; or let them return, if the system allows
 * it. Thread: any. */
void kafka_threads_stand_back(struct kafka_threads *t, bool stands_back);

#endif
