// SPDX-License-Identifier: Apache-2.0
package sluice.client;

import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;

/** Writes what users have seen, for queries with excludeSeenBy(). Any thread may call. */
public final class SeenItems extends Writer {
  private static final int MAX_ITEMS = 10_000; // of one record

  public SeenItems(Map<String, ?> kafka) {
    this(kafka, "sluice.seen");
  }

  /** @param kafka properties of Kafka's producer; at least bootstrap.servers */
  public SeenItems(Map<String, ?> kafka, String topic) {
    super(kafka, topic);
  }

  /**
   * Records that the user has now seen these items, in this order; at most 10,000 in a call. Waits as Catalogue.put()
   * does.
   */
  public CompletableFuture<Positions> add(String user, List<String> items) {
    if (items.isEmpty() || items.size() > MAX_ITEMS) {
      throw new IllegalArgumentException(items.size() + " items; a record has 1 to " + MAX_ITEMS);
    }
    ObjectNode message = Json.object();
    message.set("items", Json.of(items));
    return write(user, Json.bytes(message));
  }

  public CompletableFuture<Positions> forget(String user) {
    return write(user, null);
  }
}
