/* SPDX-License-Identifier: Apache-2.0 */
/* Walk the trees of pages as LMDB does, but look before each step. The layout is that of LMDB's data version 1 (mdb.c
 * of LMDB 0.9), in the machine's byte order. None of our tables has several values of a key (MDB_DUPSORT). */
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
#include <unistd.h>

enum { DATA_VERSION = 1, META_PAGES = 2, TREE_DEPTH_MAX = 32 };

/* PAGE_KINDS has the kinds that no page here is of, too: the first two pages, and values of one size. */
enum page_kind { PAGE_BRANCH = 0x01, PAGE_LEAF = 0x02, PAGE_OVERFLOW = 0x04, PAGE_KINDS = 0x2f };

enum node_kind { NODE_OVERFLOW = 0x01, NODE_TREE = 0x02 };

static const uint64_t no_page = UINT64_MAX;

struct page {
  uint64_t number;
  uint16_t unused;
  uint16_t kind;
  uint16_t lower; /* end of the offsets of nodes */
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
  struct tree free_pages, tables; /* lists */
  uint64_t last_page, txn_id;
};

static_assert(sizeof(struct tree) == 48 && sizeof(struct meta_page) == 152, "the layout has no padding");

struct check {
  const char *path;
  const uint8_t *map;
  size_t file_bytes, page_bytes;
  uint64_t n_pages;
  uint64_t *used; /* a bit for each page */
  bool reads_values;
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

static bool is_header_right(const struct check *c, const struct page *page)
{
  return page->lower >= sizeof *page && page->lower % 2 == 0 && n_nodes(page) > 0 && page->lower <= page->upper &&
         page->upper <= c->page_bytes;
}

/* Get node i of a page: its header, and the offset of its value. */
static bool get_node(const struct check *c, const uint8_t *bytes, const struct page *page, size_t i, struct node *out,
                     size_t *value)
{
  uint16_t at;

  memcpy(&at, bytes + sizeof *page + i * sizeof at, sizeof at);
  if (at < page->upper || at + sizeof *out > c->page_bytes)
    return false;
  memcpy(out, bytes + at, sizeof *out);
  *value = at + sizeof *out + out->key_bytes;
  return *value <= c->page_bytes;
}

/* ---- Values ---- */

static uint32_t value_bytes(const struct node *node)
{
  return node->low | (uint32_t)node->high << 16;
}

/* Check a value of n bytes that has pages of its own. `*value` is set to where it begins. */
static err_t check_overflow(struct check *c, uint64_t number, size_t n, const uint8_t **value)
{
  struct page page = { .kind = PAGE_OVERFLOW };
  uint32_t n_pages = (uint32_t)((sizeof page + n + c->page_bytes - 1) / c->page_bytes);

  if (c->reads_values) {
    TRY(get_page(c, number, value, &page));
    memcpy(&n_pages, &page.lower, sizeof n_pages);
  } else {
    TRY(use_page(c, number));
    *value = c->map + number * c->page_bytes;
  }
  if ((page.kind & PAGE_KINDS) != PAGE_OVERFLOW || n_pages > c->n_pages - number ||
      sizeof page + n > n_pages * c->page_bytes)
    return fail(c, number, "does not have the value that it should have");
  for (uint32_t i = 1; i < n_pages; i++)
    TRY(use_page(c, number + i));
  *value += sizeof page;
  return ERR_OK;
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

enum walk_of { WALK_FREE_PAGES, WALK_TABLES, WALK_ROWS };

struct walk {
  struct check *check;
  enum walk_of of;
};

static err_t check_tree(const struct walk *w, const struct tree *tree);

/* Check the value of a row of the list of tables. */
static err_t check_table(const struct walk *w, uint64_t number, const struct node *node, const uint8_t *value, size_t n)
{
  struct walk rows = { w->check, WALK_ROWS };
  struct tree tree;

  if (!(node->kind & NODE_TREE) || n != sizeof tree)
    return fail(w->check, number, "has a wrong root of a table");
  memcpy(&tree, value, sizeof tree);
  return check_tree(&rows, &tree);
}

static err_t check_value(const struct walk *w, uint64_t number, const struct node *node, const uint8_t *value, size_t n)
{
  if (w->of == WALK_FREE_PAGES)
    return check_freed(w->check, number, value, n);
  if (w->of == WALK_TABLES)
    return check_table(w, number, node, value, n);
  return ERR_OK;
}

static err_t check_node(const struct walk *w, uint64_t number, const uint8_t *bytes, const struct node *node, size_t at)
{
  unsigned kinds = w->of == WALK_TABLES ? NODE_OVERFLOW | NODE_TREE : NODE_OVERFLOW;
  size_t n = value_bytes(node);
  const uint8_t *value = bytes + at;
  uint64_t overflow;

  if ((node->kind | kinds) != kinds)
    return fail(w->check, number, "has a value of no kind that is used");
  if (at + (node->kind & NODE_OVERFLOW ? sizeof overflow : n) > w->check->page_bytes)
    return fail(w->check, number, "has a value outside of it");
  if (node->kind & NODE_OVERFLOW) {
    memcpy(&overflow, value, sizeof overflow);
    TRY(check_overflow(w->check, overflow, n, &value));
  }
  return check_value(w, number, node, value, n);
}

static err_t check_leaf(const struct walk *w, uint64_t number, const uint8_t *bytes, const struct page *page)
{
  struct node node;
  size_t at;

  for (size_t i = 0; i < n_nodes(page); i++) {
    if (!get_node(w->check, bytes, page, i, &node, &at))
      return fail(w->check, number, "has a key outside of it");
    TRY(check_node(w, number, bytes, &node, at));
  }
  return ERR_OK;
}

static err_t check_page(const struct walk *w, uint64_t number, unsigned depth);

static err_t check_branch(const struct walk *w, uint64_t number, const uint8_t *bytes, const struct page *page,
                          unsigned depth)
{
  struct node node;
  size_t at;

  if (n_nodes(page) < 2 && w->of != WALK_FREE_PAGES)
    return fail(w->check, number, "has one branch only");
  for (size_t i = 0; i < n_nodes(page); i++) {
    if (!get_node(w->check, bytes, page, i, &node, &at))
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
  if ((page.kind & PAGE_KINDS) != (depth > 1 ? PAGE_BRANCH : PAGE_LEAF) || !is_header_right(w->check, &page))
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

/* Let the system read the file from begin to end, unless memory is too small to keep it: the tables are about to be
 * read, in another order. */
static void prefetch(const struct check *c)
{
  size_t bytes = c->n_pages * c->page_bytes;
  size_t free_bytes = (size_t)sysconf(_SC_AVPHYS_PAGES) * (size_t)sysconf(_SC_PAGESIZE);

  if (bytes < free_bytes / 2)
    (void)madvise((void *)(uintptr_t)c->map, bytes, MADV_WILLNEED);
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
  prefetch(c);
  TRY(check_tree(&(struct walk){ c, WALK_FREE_PAGES }, &meta.free_pages));
  return check_tree(&(struct walk){ c, WALK_TABLES }, &meta.tables);
}

err_t pages_check(const char *path, int fd, size_t page_bytes, bool reads_values)
{
  struct stat info;

  if (fstat(fd, &info) != 0)
    FAIL(ERR_STORE, "store %s: data.mdb cannot be read: %s", path, strerror(errno));
  struct check c = {
    .path = path,
    .file_bytes = (size_t)info.st_size,
    .page_bytes = page_bytes,
    .reads_values = reads_values,
  };
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
