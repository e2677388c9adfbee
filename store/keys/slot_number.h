/* SPDX-License-Identifier: Apache-2.0 */
/* A slot as bytes: the key of table `items`, and the value of table `keys`. Big-endian, so that LMDB keeps slots in
 * order. */
#ifndef STORE_SLOT_NUMBER_H
#define STORE_SLOT_NUMBER_H

#include <endian.h>
#include <stdint.h>
#include <string.h>

enum { SLOT_NUMBER_BYTES = 8 };

static inline void slot_number_encode(uint64_t slot, uint8_t out[SLOT_NUMBER_BYTES])
{
  uint64_t big_endian = htobe64(slot);

  memcpy(out, &big_endian, sizeof big_endian);
}

static inline uint64_t slot_number_decode(const uint8_t bytes[SLOT_NUMBER_BYTES])
{
  uint64_t big_endian;

  memcpy(&big_endian, bytes, sizeof big_endian);
  return be64toh(big_endian);
}

#endif
