/* SPDX-License-Identifier: Apache-2.0 */
/* SHA-256 by libcrypto, whose errors become ours here. */
#include "base/sha256.h"

#include <openssl/err.h>
#include <openssl/evp.h>

enum { READ_BYTES = 1 << 16 };

static void close_context(EVP_MD_CTX **context)
{
  EVP_MD_CTX_free(*context);
}

static err_t open_context(EVP_MD_CTX **out)
{
  *out = EVP_MD_CTX_new();
  if (!*out)
    FAIL(ERR_MEMORY, "no memory for a SHA-256 digest");
  return ERR_OK;
}

/* libcrypto's functions return 1 on success. */
static err_t check(int result)
{
  if (result != 1)
    FAIL(ERR_SYSTEM, "libcrypto makes no SHA-256 digest: %s", ERR_reason_error_string(ERR_get_error()));
  return ERR_OK;
}

static err_t finish(EVP_MD_CTX *context, char hex[SHA256_HEX_BYTES])
{
  uint8_t digest[SHA256_BYTES];

  TRY(check(EVP_DigestFinal_ex(context, digest, NULL)));
  for (size_t i = 0; i < SHA256_BYTES; i++)
    snprintf(hex + 2 * i, 3, "%02x", digest[i]);
  return ERR_OK;
}

err_t sha256_hex(struct span bytes, char hex[SHA256_HEX_BYTES])
{
  AUTO(close_context) EVP_MD_CTX *context = NULL;

  TRY(open_context(&context));
  TRY(check(EVP_DigestInit_ex(context, EVP_sha256(), NULL)));
  TRY(check(EVP_DigestUpdate(context, bytes.p, bytes.n)));
  return finish(context, hex);
}

err_t sha256_file(FILE *in, char hex[SHA256_HEX_BYTES])
{
  AUTO(close_context) EVP_MD_CTX *context = NULL;
  uint8_t bytes[READ_BYTES];
  size_t n;

  TRY(open_context(&context));
  TRY(check(EVP_DigestInit_ex(context, EVP_sha256(), NULL)));
  while ((n = fread(bytes, 1, sizeof bytes, in)) > 0)
    TRY(check(EVP_DigestUpdate(context, bytes, n)));
  if (ferror(in))
    FAIL(ERR_SYSTEM, "the file cannot be read to its end");
  return finish(context, hex);
}
