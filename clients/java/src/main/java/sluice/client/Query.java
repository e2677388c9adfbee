// SPDX-License-Identifier: Apache-2.0
package sluice.client;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.List;
import java.util.Objects;

/**
 * What to look for. Each method changes the query and returns it; submitting copies it. Id and deadline are the
 * client's. docs/protocol.md and proto/sluice.proto say what the fields mean.
 */
public final class Query {
  private final ObjectNode fields = Json.object();

  private Query(String space, int k) {
    fields.put("space", space).put("k", k);
  }

  /** A query for the k best items of a space, by a vector. Without one, set() what the space takes instead of it. */
  public static Query of(String space, int k, float... vector) {
    return vector.length > 0 ? new Query(space, k).set("vector", vector) : new Query(space, k);
  }

  /** A query for the k items most similar to an item, or to several, which count alike. */
  public static Query like(String space, int k, String key, String... more) {
    Query query = new Query(space, k);
    if (more.length == 0) {
      return query.set("like", Objects.requireNonNull(key));
    }
    ArrayNode likes = query.fields.putArray("likes");
    likes.addObject().put("key", Objects.requireNonNull(key));
    for (String other : more) {
      likes.addObject().put("key", Objects.requireNonNull(other));
    }
    return query;
  }

  /** Only items that the filter admits; $1 stands for the first parameter. */
  public Query filter(String text, Object... parameters) {
    fields.put("filter", text);
    ArrayNode list = fields.putArray("parameters");
    for (Object parameter : parameters) {
      list.add(Json.of(parameter));
    }
    return this;
  }

  /** Wait for a state of the catalogue that includes these writes. */
  public Query atLeast(Positions positions) {
    fields.set("at_least", Json.positions(positions));
    return this;
  }

  /** Without what a user has seen. */
  public Query excludeSeenBy(String user) {
    return set("exclude_seen_by", Objects.requireNonNull(user));
  }

  /** Wait for a state of what users have seen that includes these writes. */
  public Query atLeastSeen(Positions positions) {
    fields.set("at_least_seen", Json.positions(positions));
    return this;
  }

  /** Without these items. */
  public Query exclude(List<String> keys) {
    return set("exclude", Objects.requireNonNull(keys));
  }

  /** Other queries go first. */
  public Query background() {
    return set("background", true);
  }

  /** Return these attributes with each hit. */
  public Query attributes(String... names) {
    return set("attributes", names);
  }

  /** Set any other field: a number, a text, a list, a map, or a JsonNode. */
  public Query set(String field, Object value) {
    fields.set(field, Json.of(value));
    return this;
  }

  byte[] message(String id, long deadlineUnixMs) {
    return Json.bytes(fields.deepCopy().put("id", id).put("deadline_unix_ms", deadlineUnixMs));
  }
}
