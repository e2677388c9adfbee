/* SPDX-License-Identifier: Apache-2.0 */
/* Read and parse a YAML file, with limits that keep libyaml fast on hostile input. */
#include "daemon/config/yaml_tree.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "base/auto_close.h"
#include "base/mem.h"
#include "base/regular_file.h"

enum { READ_BYTES = 8192, FILE_BYTES_MAX = 1 << 20, OPEN_BRACKETS_MAX = 1000 };

struct yaml_tree {
  yaml_document_t document;
  bool has_document;
};

/* What is parsed. */
struct source {
  const char *path;
  struct span text;
};

static err_t open_regular(const char *path, FILE **out)
{
  struct stat status;
  int fd;

  TRY(regular_file_open(path, &status, &fd));
  *out = fdopen(fd, "r");
  if (!*out)
    close(fd);
  return ERR_OK;
}

static err_t open_file(const char *path, bool may_wait, FILE **out)
{
  if (!may_wait)
    TRY(open_regular(path, out));
  else
    *out = fopen(path, "re");
  if (!*out)
    FAIL(ERR_CONFIG, "%s cannot be opened: %s: give the configuration's path as --config FILE", path, strerror(errno));
  return ERR_OK;
}

static err_t read_file(const char *path, bool may_wait, uint8_t **bytes, size_t *n)
{
  AUTO(mem_free) uint8_t *buffer = NULL;
  AUTO(auto_close_file) FILE *file = NULL;
  size_t capacity = 0;
  size_t n_read = 0;

  TRY(open_file(path, may_wait, &file));
  do {
    TRY(mem_grow(n_read + READ_BYTES, 1, &capacity, &buffer));
    n_read += fread(buffer + n_read, 1, READ_BYTES, file);
  } while (!feof(file) && !ferror(file) && n_read <= FILE_BYTES_MAX);
  if (ferror(file))
    FAIL(ERR_CONFIG, "%s cannot be read: %s", path, strerror(errno));
  if (n_read > FILE_BYTES_MAX)
    FAIL(ERR_CONFIG, "%s is larger than %d bytes", path, FILE_BYTES_MAX);
  *bytes = buffer;
  *n = n_read;
  buffer = NULL;
  return ERR_OK;
}

/* libyaml takes quadratic time for nested brackets. Brackets within quotes count too: no real file has that many. */
static err_t verify_brackets(const char *path, const uint8_t *bytes, size_t n)
{
  int n_open = 0;
  int line = 1;

  for (size_t i = 0; i < n; i++) {
    n_open += bytes[i] == '[' || bytes[i] == '{';
    n_open -= (bytes[i] == ']' || bytes[i] == '}') && n_open > 0;
    line += bytes[i] == '\n';
    if (n_open > OPEN_BRACKETS_MAX)
      FAIL(ERR_CONFIG, "%s:%d: more than %d open brackets", path, line, OPEN_BRACKETS_MAX);
  }
  return ERR_OK;
}

/* What libyaml's words mean to the one who wrote the file. */
static const char *hint_at(const char *problem)
{
  return problem && strstr(problem, "cannot start any token")
             ? " (a tab? Indent with blanks. Text that begins with %, @ or ` needs quotes)"
             : "";
}

/* Return the line of a byte. libyaml names only the byte if a character is at fault. */
static int line_at(struct span text, size_t offset)
{
  int line = 1;

  for (size_t i = 0; i < offset && i < text.n; i++)
    line += text.p[i] == '\n';
  return line;
}

static err_t fail_parse(const struct source *source, const yaml_parser_t *parser)
{
  const char *path = source->path;
  bool is_in_text =
      parser->error == YAML_SCANNER_ERROR || parser->error == YAML_PARSER_ERROR || parser->error == YAML_COMPOSER_ERROR;

  if (parser->error == YAML_MEMORY_ERROR)
    FAIL(ERR_MEMORY, "no memory to read %s", path);
  if (!is_in_text)
    FAIL(ERR_CONFIG, "%s:%d: this is not YAML: %s at byte %zu", path, line_at(source->text, parser->problem_offset),
         parser->problem ? parser->problem : "bad text", parser->problem_offset);
  FAIL(ERR_CONFIG, "%s:%zu: this is not YAML: %s%s%s%s", path, parser->problem_mark.line + 1,
       parser->context ? parser->context : "", parser->context ? ", " : "",
       parser->problem ? parser->problem : "bad text", hint_at(parser->problem));
}

/* Reject a second document: its settings would be ignored silently. */
static err_t verify_end(const struct source *source, yaml_parser_t *parser)
{
  yaml_document_t next;

  if (!yaml_parser_load(parser, &next))
    return fail_parse(source, parser);
  const yaml_node_t *root = yaml_document_get_root_node(&next);
  int line = root ? yaml_tree_line(root) : 0;
  yaml_document_delete(&next);
  if (line)
    FAIL(ERR_CONFIG, "%s:%d: a second YAML document begins here: a configuration must be one document", source->path,
         line);
  return ERR_OK;
}

static err_t load(const struct source *source, yaml_parser_t *parser, struct yaml_tree *tree)
{
  if (!yaml_parser_load(parser, &tree->document))
    return fail_parse(source, parser);
  tree->has_document = true;
  /* An empty document is the end of the stream: nothing can be loaded after it. */
  return yaml_document_get_root_node(&tree->document) ? verify_end(source, parser) : ERR_OK;
}

err_t yaml_tree_open(const char *path, bool may_wait, struct yaml_tree **out)
{
  AUTO(mem_free) uint8_t *bytes = NULL;
  AUTO(yaml_tree_close) struct yaml_tree *tree = NULL;
  yaml_parser_t parser;
  size_t n = 0;

  TRY(read_file(path, may_wait, &bytes, &n));
  TRY(verify_brackets(path, bytes, n));
  TRY(mem_array(1, sizeof *tree, &tree));
  if (!yaml_parser_initialize(&parser))
    FAIL(ERR_MEMORY, "no memory to read %s", path);
  yaml_parser_set_input_string(&parser, bytes, n);
  err_code_t result = load(&(struct source){ path, span_of(bytes, n) }, &parser, tree);
  yaml_parser_delete(&parser);
  TRY(result);
  *out = tree;
  tree = NULL;
  return ERR_OK;
}

void yaml_tree_close(struct yaml_tree **tree)
{
  if (!*tree)
    return;
  if ((*tree)->has_document)
    yaml_document_delete(&(*tree)->document);
  mem_free(tree);
}

const yaml_node_t *yaml_tree_root(struct yaml_tree *tree)
{
  return yaml_document_get_root_node(&tree->document);
}

int yaml_tree_line(const yaml_node_t *node)
{
  return (int)node->start_mark.line + 1;
}

enum yaml_kind yaml_tree_kind(const yaml_node_t *node)
{
  if (!node || node->type == YAML_NO_NODE)
    return YAML_KIND_NOTHING;
  if (node->type == YAML_MAPPING_NODE)
    return YAML_KIND_MAP;
  if (node->type == YAML_SEQUENCE_NODE)
    return YAML_KIND_LIST;
  struct span text = yaml_tree_text(node);
  bool is_plain = node->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
  if (is_plain && (text.n == 0 || span_equal(text, span_of_str("~")) || span_equal(text, span_of_str("null"))))
    return YAML_KIND_NOTHING;
  return YAML_KIND_TEXT;
}

struct span yaml_tree_text(const yaml_node_t *node)
{
  return span_of(node->data.scalar.value, node->data.scalar.length);
}

size_t yaml_tree_n_items(const yaml_node_t *list)
{
  return (size_t)(list->data.sequence.items.top - list->data.sequence.items.start);
}

const yaml_node_t *yaml_tree_item(struct yaml_tree *tree, const yaml_node_t *list, size_t i)
{
  return yaml_document_get_node(&tree->document, list->data.sequence.items.start[i]);
}

size_t yaml_tree_n_pairs(const yaml_node_t *map)
{
  return (size_t)(map->data.mapping.pairs.top - map->data.mapping.pairs.start);
}

void yaml_tree_pair(struct yaml_tree *tree, const yaml_node_t *map, size_t i, const yaml_node_t **key,
                    const yaml_node_t **value)
{
  const yaml_node_pair_t *pair = map->data.mapping.pairs.start + i;

  *key = yaml_document_get_node(&tree->document, pair->key);
  *value = yaml_document_get_node(&tree->document, pair->value);
}
