/* SPDX-License-Identifier: Apache-2.0 */
/* Errors: a code with a class, and a message for people, which each thread keeps for its newest failure.
 *
 * A function that can fail returns err_t. It returns values through out parameters and writes them only on success. The
 * function that finds the failure writes FAIL(ERR_X, "what %s", detail); its callers write TRY(call). The class tells
 * the caller what to do:
 *
 *   RETRY    wait and repeat the same call
 *   REJECT   the input is wrong: count it, send it to the dead letters or answer with an error, then continue
 *   FATAL    log the error, close in order and exit non-zero; the service manager restarts the daemon
 */
#ifndef BASE_ERR_H
#define BASE_ERR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ERR_LIST(X)                                                              \
  X(ERR_OK, NONE, "ok")                                                          \
  X(ERR_MEMORY, FATAL, "out of memory")                                          \
  X(ERR_SYSTEM, FATAL, "the operating system refused")                           \
  X(ERR_CONFIG, FATAL, "the configuration cannot be used")                       \
  X(ERR_MODEL, FATAL, "the model cannot be used")                                \
  X(ERR_STORE, FATAL, "the store failed")                                        \
  X(ERR_STORE_FULL, RETRY, "the store's disk is full")                           \
  X(ERR_STORE_IN_USE, FATAL, "the store is open in another process")             \
  X(ERR_STORE_CORRUPT, FATAL, "the store is damaged")                            \
  X(ERR_FULL, FATAL, "the catalogue does not fit")                               \
  X(ERR_DEVICE, FATAL, "the GPU failed")                                         \
  X(ERR_DISCONTINUITY, FATAL, "the catalogue topic does not continue the store") \
  X(ERR_KAFKA, FATAL, "Kafka failed")                                            \
  X(ERR_KAFKA_RETRY, RETRY, "Kafka is not available")                            \
  X(ERR_KAFKA_TOPIC, RETRY, "a topic does not exist")                            \
  X(ERR_KAFKA_DENIED, RETRY, "Kafka does not allow it")                          \
  X(ERR_KAFKA_DAMAGED, RETRY, "the broker's log is damaged")                     \
  X(ERR_REGISTRY, RETRY, "the schema registry is not available")                 \
  X(ERR_STOPPING, FATAL, "the daemon is stopping")                               \
  X(ERR_WIRE, REJECT, "the message cannot be decoded")                           \
  X(ERR_ITEM, REJECT, "the item cannot be used")                                 \
  X(ERR_QUERY, REJECT, "the query cannot be served")                             \
  X(ERR_TOO_LARGE, REJECT, "the message is too large")                           \
  X(ERR_SPACE, REJECT, "unknown space")                                          \
  X(ERR_METHOD, REJECT, "unknown method")                                        \
  X(ERR_SPACE_CHANGED, RETRY, "the space changed after the query was checked")   \
  X(ERR_USAGE, REJECT, "the command line cannot be used")

enum err_code {
#define ERR_CODE(code, class_, text) code,
  ERR_LIST(ERR_CODE)
#undef ERR_CODE
};

enum err_class { ERR_CLASS_NONE, ERR_CLASS_RETRY, ERR_CLASS_REJECT, ERR_CLASS_FATAL };

typedef enum err_code err_code_t;

/* Return type of a function that can fail. Ignoring the result is a compile-time error. */
#define err_t __attribute__((warn_unused_result)) err_code_t

/* Return the class of a code. */
enum err_class err_class(err_code_t code);

/* Return the text of a code. It is static and never NULL. */
const char *err_text(err_code_t code);

/* Return the message of the calling thread's newest failure, without file and line. Valid until its next FAIL. */
const char *err_message(void);

/* Return "file:line" of the calling thread's newest failure. */
const char *err_origin(void);

/* Store a failure for err_message() and return its code. Use FAIL where possible. Thread: any. Allocates: no. */
err_code_t err_set(err_code_t code, const char *file, int line, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* A failure that is kept while its thread goes on, or for another thread. */
struct err_kept {
  err_code_t code; /* ERR_OK: there is none */
  char message[1024];
  char origin[128];
};

/* Keep the calling thread's newest failure, whose code is `code`; ERR_OK: there is none. */
void err_keep(err_code_t code, struct err_kept *out);

/* Make a kept failure the newest one of the calling thread, and return its code; ERR_OK: do nothing. */
err_t err_give_back(const struct err_kept *kept);

/* Return a failure with a printf-style message. */
#define FAIL(code, ...) return err_set((code), __FILE__, __LINE__, __VA_ARGS__)

/* Return the error of a call, if it fails. */
#define TRY(call)                 \
  do {                            \
    err_code_t try_err_ = (call); \
    if (try_err_ != ERR_OK)       \
      return try_err_;            \
  } while (0)

/* Clean a variable up when it goes out of scope: AUTO(store_close) struct store *s = NULL; */
#define AUTO(close) __attribute__((cleanup(close)))

#endif
