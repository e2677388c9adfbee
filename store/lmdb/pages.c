/* SPDX-License-Identifier: Apache-2.0 */
/* Walk the trees of pages as LMDB does, but look before each step. The layout is that of LMDB's data version 1 (mdb.c
 * of LMDB 0.9), in the machine's byte order. */
#include "store/lmdb/pages.h"

#include "base/bits.h"
#include "base/mem.h"
#include "base/progress.h"
#include "store/lmdb/env.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

enum { DATA_VERSION = 1, META_PAGES = 2, TREE_DEPTH_MAX = 32, TREES_FREE = 0, TREES = 2 };

enum page_kind { PAGE_BRANCH = 0x01, PAGE_LEAF = 0x02, PAGE_OVERFLOW = 0x04, PAGE_FIXED = 0x20, PAGE_KINDS = 0x2f };

enum node_kind { NODE_OVERFLOW = 0x01, NODE_TREE = 0x02, NODE_VALUES = 0x04 };

static const uint64_t no_page = UINT64_MAX;

struct page {
  uint64_t number;
  uint16_t key_bytes; /* of PAGE_FIXED */
  uint16_t kind;
  uint16_t lower; /* end of the offsets of nodes; in PAGE_FIXED there are none, but they are counted */
  uint16_t upper; /* begin of the nodes */
};

/* PAGE_OVERFLOW has the number of its pages in the place of lower and upper. */
static_assert(sizeof(struct page) == 16, "a page has a header of 16 bytes");

struct node {
  uint16_t low, high; /* size of the value; in a branch, the child's number with `kind` above */
  uint16_t kind;
  uint16_t key_bytes;
};

struct tree {
  uint32_t key_bytes;
  uint16_t flags, depth;
  uint64_t n_branches, n_leaves, n_overflows, n_entries;
  uint64_t root;
};

struct meta_page {
  struct page page;
  uint32_t magic, version;
  uint64_t address, map_bytes;
  struct tree trees[TREES]; /* the list of free pages, and the tables by name */
  uint64_t last_page, txn_id;
};

static_assert(sizeof(struct tree) == 48 && sizeof(struct meta_page) == 152, "the layout has no padding");

struct check {
  const char *path;
  const uint8_t *map;
  size_t file_bytes, page_bytes;
  uint64_t n_pages;
  uint64_t *used; /* a bit for each page */
};

static err_t fail(const struct check *c, uint64_t page, const char *reason)
{
  FAIL(ERR_STORE_CORRUPT, "store %s is damaged: page %" PRIu64 " of data.mdb %s: " ENV_REMEDY, c->path, page, reason);
}

/* ---- Pages ---- */

static err_t use_page(struct check *c, uint64_t number)
{
  if (number < META_PAGES || number >= c->n_pages)
    return fail(c, number, "is used, but there is no such page");
  if (bits_get(c->used, number))
    return fail(c, number, "is used twice");
  bits_set(c->used, number);
  return ERR_OK;
}

static err_t get_page(struct check *c, uint64_t number, const uint8_t **bytes, struct page *out)
{
  TRY(use_page(c, number));
  *bytes = c->map + number * c->page_bytes;
  memcpy(out, *bytes, sizeof *out);
  if (out->number != number)
    return fail(c, number, "was lost or overwritten");
  return ERR_OK;
}

static size_t n_nodes(const struct page *page)
{
  return (page->lower - sizeof *page) / sizeof(uint16_t);
}

/* Is the header right for a page, or a page within a value, of n bytes? */
static bool is_header_right(const struct page *page, size_t n)
{
  if (page->lower < sizeof *page || page->lower % 2 != 0 || n_nodes(page) == 0)
    return false;
  if (page->kind & PAGE_FIXED)
    return sizeof *page + n_nodes(page) * page->key_bytes <= n;
  return page->lower <= page->upper && page->upper <= n;
}

/* Get node i of a page of n bytes: its header, and the offset of its key. */
static bool get_node(const uint8_t *bytes, const struct page *page, size_t n, size_t i, struct node *out, size_t *key)
{
  uint16_t at;

  memcpy(&at, bytes + sizeof *page + i * sizeof at, sizeof at);
  if (at < page->upper || at + sizeof *out > n)
    return false;
  memcpy(out, bytes + at, sizeof *out);
  *key = at + sizeof *out;
  return *key + out->key_bytes <= n;
}

/* ---- Values ---- */

static uint32_t value_bytes(const struct node *node)
{
  return node->low | (uint32_t)node->high << 16;
}

/* Check a value that has pages of its own. `*value` is set to where it begins. */
static err_t check_overflow(struct check *c, uint64_t number, size_t n, const uint8_t **value)
{
  struct page page;
  uint32_t n_pages;

  TRY(get_page(c, number, value, &page));
  memcpy(&n_pages, &page.lower, sizeof n_pages);
  if ((page.kind & PAGE_KINDS) != PAGE_OVERFLOW || n_pages > c->n_pages - number ||
      sizeof page + n > n_pages * c->page_bytes)
    return fail(c, number, "does not have the value that it should have");
  for (uint32_t i = 1; i < n_pages; i++)
    TRY(use_page(c, number + i));
  *value += sizeof page;
  return ERR_OK;
}

/* Several values of a key that lie in a page within the value. */
static bool are_values_right(const uint8_t *bytes, size_t n)
{
  struct page page;
  struct node node;
  size_t key;

  if (n < sizeof page)
    return false;
  memcpy(&page, bytes, sizeof page);
  if (!(page.kind & PAGE_LEAF) || !is_header_right(&page, n))
    return false;
  for (size_t i = 0; !(page.kind & PAGE_FIXED) && i < n_nodes(&page); i++) {
    if (!get_node(bytes, &page, n, i, &node, &key))
      return false;
  }
  return true;
}

/* The list of the pages that a transaction has freed: their number, then they. */
static err_t check_freed(struct check *c, uint64_t page, const uint8_t *bytes, size_t n)
{
  uint64_t n_freed, freed;

  if (n < sizeof n_freed)
    return fail(c, page, "has no list of free pages");
  memcpy(&n_freed, bytes, sizeof n_freed);
  if (n_freed > n / sizeof freed - 1)
    return fail(c, page, "has a list of free pages that is longer than its value");
  for (uint64_t i = 1; i <= n_freed; i++) {
    memcpy(&freed, bytes + i * sizeof freed, sizeof freed);
    TRY(use_page(c, freed));
  }
  return ERR_OK;
}

/* ---- Trees ---- */

struct walk {
  struct check *check;
  bool is_of_free_pages;
};

static err_t check_tree(const struct walk *w, const struct tree *tree);

static err_t check_value(const struct walk *w, uint64_t number, const struct node *node, const uint8_t *value, size_t n)
{
  struct tree tree;

  if (w->is_of_free_pages)
    return check_freed(w->check, number, value, n);
  if (node->kind & NODE_TREE) {
    if (n != sizeof tree)
      return fail(w->check, number, "has a wrong root of a table");
    memcpy(&tree, value, sizeof tree);
    return check_tree(w, &tree);
  }
  if (node->kind & NODE_VALUES && !are_values_right(value, n))
    return fail(w->check, number, "has wrong values of a key");
  return ERR_OK;
}

static err_t check_leaf(const struct walk *w, uint64_t number, const uint8_t *bytes, const struct page *page)
{
  struct check *c = w->check;
  struct node node;
  size_t key;

  for (size_t i = 0; !(page->kind & PAGE_FIXED) && i < n_nodes(page); i++) {
    bool is_right = get_node(bytes, page, c->page_bytes, i, &node, &key);
    size_t n = is_right ? value_bytes(&node) : 0;
    size_t at = key + node.key_bytes;
    const uint8_t *value = bytes + at;
    uint64_t overflow = 0;
    size_t n_here = node.kind & NODE_OVERFLOW ? sizeof overflow : n;
    if (!is_right || at + n_here > c->page_bytes)
      return fail(c, number, "has a value outside of it");
    if (node.kind & NODE_OVERFLOW) {
      memcpy(&overflow, value, sizeof overflow);
      TRY(check_overflow(c, overflow, n, &value));
    }
    TRY(check_value(w, number, &node, value, n));
  }
  return ERR_OK;
}

static err_t check_page(const struct walk *w, uint64_t number, unsigned depth);

static err_t check_branch(const struct walk *w, uint64_t number, const uint8_t *bytes, const struct page *page,
                          unsigned depth)
{
  struct node node;
  size_t key;

  if (n_nodes(page) < 2 && !w->is_of_free_pages)
    return fail(w->check, number, "has one branch only");
  for (size_t i = 0; i < n_nodes(page); i++) {
    if (!get_node(bytes, page, w->check->page_bytes, i, &node, &key))
      return fail(w->check, number, "has a key outside of it");
    TRY(check_page(w, value_bytes(&node) | (uint64_t)node.kind << 32, depth - 1));
  }
  return ERR_OK;
}

/* Check a page and all below it. depth: levels from this one to the leaves. */
static err_t check_page(const struct walk *w, uint64_t number, unsigned depth)
{
  const uint8_t *bytes;
  struct page page;

  progress_note();
  TRY(get_page(w->check, number, &bytes, &page));
  unsigned kind = page.kind & PAGE_KINDS & ~(unsigned)PAGE_FIXED;
  if (kind != (depth > 1 ? PAGE_BRANCH : PAGE_LEAF) || !is_header_right(&page, w->check->page_bytes))
    return fail(w->check, number, "has a wrong header");
  return depth > 1 ? check_branch(w, number, bytes, &page, depth) : check_leaf(w, number, bytes, &page);
}

static err_t check_tree(const struct walk *w, const struct tree *tree)
{
  if (tree->root == no_page)
    return ERR_OK;
  if (tree->depth < 1 || tree->depth > TREE_DEPTH_MAX)
    return fail(w->check, tree->root, "is the root of a table of wrong depth");
  return check_page(w, tree->root, tree->depth);
}

/* ---- The file ---- */

/* The page of the newest transaction, as LMDB chooses it. */
static void get_meta(const struct check *c, struct meta_page *out)
{
  struct meta_page other;

  memcpy(out, c->map, sizeof *out);
  memcpy(&other, c->map + c->page_bytes, sizeof other);
  if (other.txn_id > out->txn_id)
    *out = other;
}

static err_t check_all(struct check *c)
{
  AUTO(mem_free) uint64_t *used = NULL;
  struct meta_page meta;

  get_meta(c, &meta);
  if (meta.version != DATA_VERSION)
    return ERR_OK; /* of a later LMDB, which has opened it */
  c->n_pages = meta.last_page + 1;
  if (c->n_pages > c->file_bytes / c->page_bytes)
    return fail(c, meta.last_page, "is missing");
  TRY(mem_array(bits_words(c->n_pages), sizeof *used, &used));
  c->used = used;
  for (size_t i = 0; i < TREES; i++) {
    struct walk w = { c, i == TREES_FREE };
    TRY(check_tree(&w, &meta.trees[i]));
  }
  return ERR_OK;
}

err_t pages_check(const char *path, int fd, size_t page_bytes)
{
  struct stat info;

  if (fstat(fd, &info) != 0)
    FAIL(ERR_STORE, "store %s: data.mdb cannot be read: %s", path, strerror(errno));
  struct check c = { .path = path, .file_bytes = (size_t)info.st_size, .page_bytes = page_bytes };
  if (c.file_bytes < META_PAGES * page_bytes)
    return ERR_OK; /* it is new */
  void *map = mmap(NULL, c.file_bytes, PROT_READ, MAP_SHARED, fd, 0);
  if (map == MAP_FAILED)
    FAIL(ERR_STORE, "store %s: data.mdb cannot be mapped: %s", path, strerror(errno));
  c.map = map;
  err_code_t err = check_all(&c);
  munmap(map, c.file_bytes);
  return err;
}
