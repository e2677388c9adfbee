/* SPDX-License-Identifier: Apache-2.0 */
/* Why no client gets through to its brokers although they answer: a wrong password, a certificate that cannot be
 * trusted. librdkafka only says it in lines of its log, and tries again for ever. All clients of the process share one
 * record, because they usually share their credentials. Thread: any. */
#ifndef INGEST_KAFKA_TROUBLE_H
#define INGEST_KAFKA_TROUBLE_H

/* Return the newest trouble as a sentence that names the broker: "cannot authenticate to h:9093: Invalid username or
 * password". The text is valid for ever. NULL: there was none in the last 30 s, which is longer than librdkafka waits
 * between two tries. */
const char *kafka_trouble_newest(void);

/* Forget it: the clients have new certificates now. */
void kafka_trouble_forget(void);

/* Note a line of librdkafka's log about a connection that failed. Lines without trouble of this kind are ignored. The
 * event `kafka_refused` logs a trouble when it is new, and once a minute. */
void kafka_trouble_note_line(const char *text);

/* Note that the certificate of a broker was refused.
 *
 * error  an X509_V_ERR of OpenSSL
 */
void kafka_trouble_note_certificate(const char *broker, int error);

#endif
