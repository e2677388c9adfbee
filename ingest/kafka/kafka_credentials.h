/* SPDX-License-Identifier: Apache-2.0 */
/* Passwords that change while clients are open. A client keeps its connections, and logs in with the new password when
 * it connects again; so nothing that is under way is lost or done twice. It works for SASL PLAIN and SCRAM.
 * Certificates cannot change this way: librdkafka reads them once (kafka_renewal.h). Thread: any. */
#ifndef INGEST_KAFKA_CREDENTIALS_H
#define INGEST_KAFKA_CREDENTIALS_H

struct kafka_credentials {
  const char *user;
  const char *password;
};

/* From now on, use other credentials wherever a configuration has these: in all open clients, and in those that are
 * opened later. What an earlier call replaced `configured` with is replaced too; clients that were configured with
 * other credentials keep theirs, even if they have the same ones now. The texts of `now` must stay valid until the next
 * call for the same `configured`. */
void kafka_credentials_replace(const struct kafka_credentials *configured, const struct kafka_credentials *now);

#endif
