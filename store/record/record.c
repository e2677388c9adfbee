/* SPDX-License-Identifier: Apache-2.0 */
/* Encoding, verifying and decoding records. */
#include "store/record/record.h"

#include "base/log.h"
#include "store/lmdb/seal.h"
#include "store/record/record_attributes.h"

#include <assert.h>

enum {
  RECORD_BYTES_MAX = 1 << 30,
  /* bits of the header's key_size */
  KEY_BYTES = 0x0fff,
  IS_TOMBSTONE = 0x8000,
  HAS_ASIDE = 0x4000,
  HAS_ATTRIBUTES = 0x2000,
};

struct header {
  uint64_t seal;
  uint64_t log_number;
  int64_t offset;
  int64_t timestamp_ms;
  int32_t partition;
  uint16_t key_size; /* size of the key, and flags */
  uint16_t n_parts;
};

struct part_header {
  uint32_t n_vector;
  uint32_t n_components;
  uint32_t n_item_gate;
  uint32_t n_codes;
  uint32_t space_bytes;
};

static_assert(sizeof(struct header) == 40, "the header has no padding: all bytes under the checksum are set");
static_assert(sizeof(struct part_header) == 20, "a part header has no padding");
static_assert((int)ITEM_KEY_MAX <= (int)KEY_BYTES, "the key size leaves room for the flags");
static_assert((sizeof(struct header) | sizeof(struct part_header)) % sizeof(float) == 0, "numbers are aligned");
static_assert(offsetof(struct header, seal) == 0 && sizeof(uint64_t) == SEAL_BYTES, "the seal comes first");

static size_t key_bytes(const struct header *header)
{
  return header->key_size & KEY_BYTES;
}

/* Return the size of the header and the part headers, or of a tombstone's header and time. */
static size_t fixed_bytes(const struct header *header)
{
  return sizeof *header +
         (header->key_size & IS_TOMBSTONE ? sizeof(int64_t) : header->n_parts * sizeof(struct part_header));
}

/* Return the bytes of a part's numbers, codes and space name. The sum over all parts of a record fits 64 bits. */
static uint64_t payload_bytes(const struct part_header *p)
{
  uint64_t n_numbers = (uint64_t)p->n_vector + p->n_components + p->n_item_gate;

  return n_numbers * sizeof(float) + p->n_codes + p->space_bytes;
}

static bool is_part_size_ok(const struct part *p)
{
  return p->vector.n <= RECORD_BYTES_MAX && p->components.n <= RECORD_BYTES_MAX && p->item_gate.n <= RECORD_BYTES_MAX &&
         p->codes.n <= RECORD_BYTES_MAX && p->space.n <= SPACE_NAME_MAX;
}

static struct part_header header_of_part(const struct part *p)
{
  return (struct part_header){
    .n_vector = (uint32_t)p->vector.n,
    .n_components = (uint32_t)p->components.n,
    .n_item_gate = (uint32_t)p->item_gate.n,
    .n_codes = (uint32_t)p->codes.n,
    .space_bytes = (uint32_t)p->space.n,
  };
}

err_t record_verify_key(struct span key)
{
  if (key.n < 1 || key.n > ITEM_KEY_MAX)
    FAIL(ERR_ITEM, "a key has 1 to %d bytes, this one has %zu", ITEM_KEY_MAX, key.n);
  return ERR_OK;
}

/* Return the bytes of a record with a section of attributes of `attribute_bytes`. */
static err_t measure(const struct item_change *item, size_t attribute_bytes, uint64_t *bytes)
{
  uint64_t sum = sizeof(struct header) + item->key.n + item->n_parts * sizeof(struct part_header) + attribute_bytes;

  TRY(record_verify_key(item->key));
  if (item->n_parts > UINT16_MAX)
    FAIL(ERR_ITEM, "item %s has %zu parts", log_quote(item->key), item->n_parts);
  for (size_t i = 0; i < item->n_parts; i++) {
    if (!is_part_size_ok(&item->parts[i]))
      FAIL(ERR_ITEM, "part %s of item %s is too large", log_quote(item->parts[i].space), log_quote(item->key));
    struct part_header p = header_of_part(&item->parts[i]);
    sum += payload_bytes(&p);
  }
  if (sum > RECORD_BYTES_MAX)
    FAIL(ERR_ITEM, "item %s takes %llu bytes, more than the limit of %d", log_quote(item->key), (unsigned long long)sum,
         RECORD_BYTES_MAX);
  *bytes = sum;
  return ERR_OK;
}

static uint8_t *append(uint8_t *to, const void *from, size_t n)
{
  if (n)
    memcpy(to, from, n);
  return to + n;
}

static uint8_t *append_numbers(uint8_t *to, const struct part *p)
{
  to = append(to, p->vector.v, p->vector.n * sizeof(float));
  to = append(to, p->components.v, p->components.n * sizeof(float));
  return append(to, p->item_gate.v, p->item_gate.n * sizeof(float));
}

err_t record_encode(const struct item_change *item, uint64_t log_number, const struct attribute_ids *ids,
                    struct region *region, struct span *out)
{
  size_t attribute_bytes = record_attributes_bytes(item, ids);
  uint64_t bytes = 0;
  uint8_t *record;
  struct header header = {
    .log_number = log_number,
    .offset = item->offset,
    .timestamp_ms = item->timestamp_ms,
    .partition = item->partition,
    .key_size = (uint16_t)(item->key.n | (attribute_bytes ? HAS_ATTRIBUTES : 0)),
    .n_parts = (uint16_t)item->n_parts,
  };

  TRY(measure(item, attribute_bytes, &bytes));
  TRY(region_array(region, bytes, 1, &record));
  uint8_t *to = append(record, &header, sizeof header);
  for (size_t i = 0; i < item->n_parts; i++) {
    struct part_header p = header_of_part(&item->parts[i]);
    to = append(to, &p, sizeof p);
  }
  for (size_t i = 0; i < item->n_parts; i++)
    to = append_numbers(to, &item->parts[i]);
  to = append(to, item->key.p, item->key.n);
  for (size_t i = 0; i < item->n_parts; i++) {
    to = append(to, item->parts[i].space.p, item->parts[i].space.n);
    to = append(to, item->parts[i].codes.p, item->parts[i].codes.n);
  }
  to = record_attributes_put(item, ids, to);
  assert(to == record + bytes);
  seal_put(record, bytes);
  *out = span_of(record, bytes);
  return ERR_OK;
}

err_t record_encode_tombstone(const struct item_change *item, uint64_t log_number, int64_t applied_unix_ms,
                              struct region *region, struct span *out)
{
  struct header header = {
    .log_number = log_number,
    .offset = item->offset,
    .timestamp_ms = item->timestamp_ms,
    .partition = item->partition,
    .key_size = (uint16_t)(item->key.n | IS_TOMBSTONE),
  };
  size_t bytes = fixed_bytes(&header) + item->key.n;
  uint8_t *record;

  TRY(record_verify_key(item->key));
  TRY(region_array(region, bytes, 1, &record));
  uint8_t *to = append(record, &header, sizeof header);
  to = append(to, &applied_unix_ms, sizeof applied_unix_ms);
  append(to, item->key.p, item->key.n);
  seal_put(record, bytes);
  *out = span_of(record, bytes);
  return ERR_OK;
}

err_t record_copy(struct span record, bool has_aside, struct region *region, struct span *out)
{
  struct header header;
  uint8_t *copy;

  TRY(region_array(region, record.n, 1, &copy));
  memcpy(copy, record.p, record.n);
  *out = span_of(copy, record.n);
  memcpy(&header, copy, sizeof header);
  if (has_aside == ((header.key_size & HAS_ASIDE) != 0))
    return ERR_OK;
  header.key_size ^= HAS_ASIDE;
  memcpy(copy, &header, sizeof header);
  seal_put(copy, record.n);
  return ERR_OK;
}

/* Copy a part header out of a record, whose bytes may be unaligned. */
static struct part_header part_header_at(struct span record, size_t i)
{
  struct part_header p;

  memcpy(&p, record.p + sizeof(struct header) + i * sizeof p, sizeof p);
  return p;
}

/* Where the sections of a record lie that have no size of their own. */
struct sections {
  size_t number_bytes;
  struct span attributes;
};

/* Verify what follows the sections that the headers name, which end at `sum`. */
static err_t verify_end(struct span record, const struct header *header, uint64_t sum, struct span *attributes)
{
  bool has_attributes = header->key_size & HAS_ATTRIBUTES;

  if (has_attributes ? sum >= record.n : sum != record.n)
    FAIL(ERR_STORE_CORRUPT, "its headers name %llu bytes, but it has %zu", (unsigned long long)sum, record.n);
  *attributes = span_of(record.p + sum, record.n - sum);
  return has_attributes ? record_attributes_verify(*attributes) : ERR_OK;
}

/* Verify that the sizes in the headers add up to the size of the record, and find its sections. */
static err_t verify_sizes(struct span record, const struct header *header, struct sections *out)
{
  uint64_t sum = fixed_bytes(header) + key_bytes(header);
  uint64_t not_numbers = sum;

  if (key_bytes(header) < 1 || key_bytes(header) > ITEM_KEY_MAX)
    FAIL(ERR_STORE_CORRUPT, "it names a key of %zu bytes", key_bytes(header));
  if (header->key_size & IS_TOMBSTONE && (header->n_parts || header->key_size & HAS_ATTRIBUTES))
    FAIL(ERR_STORE_CORRUPT, "it is a tombstone with parts or attributes");
  if (record.n < sum)
    FAIL(ERR_STORE_CORRUPT, "it is cut short at %zu bytes", record.n);
  for (size_t i = 0; i < header->n_parts; i++) {
    struct part_header p = part_header_at(record, i);
    if (p.space_bytes > SPACE_NAME_MAX)
      FAIL(ERR_STORE_CORRUPT, "it names a space of %u bytes", p.space_bytes);
    sum += payload_bytes(&p);
    not_numbers += (uint64_t)p.n_codes + p.space_bytes;
  }
  out->number_bytes = sum - not_numbers;
  return verify_end(record, header, sum, &out->attributes);
}

static err_t read_header(struct span record, struct header *header, struct sections *sections)
{
  if (record.n < sizeof *header)
    FAIL(ERR_STORE_CORRUPT, "it is cut short at %zu bytes", record.n);
  if (!seal_is_whole(record))
    FAIL(ERR_STORE_CORRUPT, "its checksum does not match");
  memcpy(header, record.p, sizeof *header);
  return verify_sizes(record, header, sections);
}

/* Return the offset of the bytes, which follow the headers and numbers. */
static size_t bytes_at(const struct header *header, size_t number_bytes)
{
  return fixed_bytes(header) + number_bytes;
}

err_t record_read_head(struct span record, struct record_head *out)
{
  struct header header;
  struct sections sections;

  TRY(read_header(record, &header, &sections));
  *out = (struct record_head){
    .log_number = header.log_number,
    .offset = header.offset,
    .timestamp_ms = header.timestamp_ms,
    .partition = header.partition,
    .is_tombstone = (header.key_size & IS_TOMBSTONE) != 0,
    .has_aside = (header.key_size & HAS_ASIDE) != 0,
    .key = span_of(record.p + bytes_at(&header, sections.number_bytes), key_bytes(&header)),
  };
  if (out->is_tombstone)
    memcpy(&out->applied_unix_ms, record.p + sizeof header, sizeof out->applied_unix_ms);
  return ERR_OK;
}

static struct span take_bytes(const uint8_t **from, size_t n)
{
  struct span taken = { n ? *from : NULL, n };

  *from += n;
  return taken;
}

static struct floats take_floats(const uint8_t **from, size_t n)
{
  struct floats taken = { n ? (const float *)(const void *)*from : NULL, n };

  *from += n * sizeof(float);
  return taken;
}

err_t record_decode(struct span record, const struct attribute_ids *ids, struct region *region, struct item_change *out)
{
  struct header header;
  struct sections sections;
  struct span copy;
  struct part *parts;

  TRY(read_header(record, &header, &sections));
  if (header.key_size & IS_TOMBSTONE)
    FAIL(ERR_STORE_CORRUPT, "it is a tombstone");
  TRY(region_copy(region, record, &copy));
  TRY(region_array(region, header.n_parts, sizeof *parts, &parts));

  const uint8_t *numbers = copy.p + fixed_bytes(&header);
  const uint8_t *bytes = copy.p + bytes_at(&header, sections.number_bytes);
  *out = (struct item_change){
    .key = take_bytes(&bytes, key_bytes(&header)),
    .is_whole = true,
    .parts = parts,
    .n_parts = header.n_parts,
    .partition = header.partition,
    .offset = header.offset,
    .timestamp_ms = header.timestamp_ms,
  };
  for (size_t i = 0; i < header.n_parts; i++) {
    struct part_header p = part_header_at(copy, i);
    parts[i].vector = take_floats(&numbers, p.n_vector);
    parts[i].components = take_floats(&numbers, p.n_components);
    parts[i].item_gate = take_floats(&numbers, p.n_item_gate);
    parts[i].space = take_bytes(&bytes, p.space_bytes);
    parts[i].codes = take_bytes(&bytes, p.n_codes);
  }
  return record_attributes_take(span_of(bytes, sections.attributes.n), ids, region, out);
}
