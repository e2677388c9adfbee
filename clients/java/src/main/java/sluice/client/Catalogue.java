// SPDX-License-Identifier: Apache-2.0
package sluice.client;

import java.util.Map;
import java.util.concurrent.CompletableFuture;

/** Writes items. Any thread may call. */
public final class Catalogue extends Writer {
  public Catalogue(Map<String, ?> kafka) {
    this(kafka, "sluice.catalogue");
  }

  /** @param kafka properties of Kafka's producer; at least bootstrap.servers */
  public Catalogue(Map<String, ?> kafka, String topic) {
    super(kafka, topic);
  }

  /**
   * Puts an item, or changes what it names. Returns the future of the positions that a query names in atLeast(); its
   * callbacks run in the producer's thread, and must not block. It waits while the producer is full, or does not know
   * the topic yet because no broker answers or there is none, for a minute at most (max.block.ms).
   */
  public CompletableFuture<Positions> put(String key, Item item) {
    return write(key, item.message());
  }

  public CompletableFuture<Positions> delete(String key) {
    return write(key, null);
  }
}
