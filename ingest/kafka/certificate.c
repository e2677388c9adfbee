/* SPDX-License-Identifier: Apache-2.0 */
/* Reading the expiry of certificates with OpenSSL, which librdkafka uses too. */
#include "ingest/kafka/certificate.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "base/regular_file.h"

static int64_t expiry_of(const X509 *certificate)
{
  struct tm utc;

  return ASN1_TIME_to_tm(X509_get0_notAfter(certificate), &utc) == 1 ? (int64_t)timegm(&utc) : 0;
}

/* Takes the BIO; NULL has none. */
static int64_t expiry_in(BIO *pem, enum certificate_choice choice)
{
  int64_t chosen = 0;
  X509 *certificate;

  while (pem && (certificate = PEM_read_bio_X509(pem, NULL, NULL, NULL))) {
    int64_t expiry = expiry_of(certificate);
    X509_free(certificate);
    if (!chosen || (choice == CERTIFICATE_FIRST_TO_EXPIRE ? expiry < chosen : expiry > chosen))
      chosen = expiry;
  }
  BIO_free(pem);
  ERR_clear_error(); /* the end of the file is one */
  return chosen;
}

/* Returns NULL if it is not a regular file: a pipe would block the reader. */
static BIO *open_pem(const char *path)
{
  struct stat status;
  int fd;

  if (regular_file_open(path, &status, &fd) != ERR_OK)
    return NULL;
  FILE *file = fdopen(fd, "r");
  BIO *pem = file ? BIO_new_fp(file, BIO_CLOSE) : NULL;
  if (!file)
    close(fd);
  else if (!pem)
    fclose(file);
  return pem;
}

int64_t certificate_expiry_in_file(const char *path, enum certificate_choice choice)
{
  return expiry_in(open_pem(path), choice);
}

int64_t certificate_expiry_in_text(struct span pem, enum certificate_choice choice)
{
  return expiry_in(BIO_new_mem_buf(pem.p, (int)pem.n), choice);
}
