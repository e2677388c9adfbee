// SPDX-License-Identifier: Apache-2.0
package sluice.client;

import java.util.Collections;
import java.util.Map;
import java.util.TreeMap;

/** Positions in a topic: how far something was written or read. They make a query wait for one's own writes. */
public final class Positions {
  private final TreeMap<Integer, Long> next = new TreeMap<>();

  private Positions() {}

  /** Of each partition the offset after the last one that is included. */
  public static Positions of(Map<Integer, Long> next) {
    Positions positions = new Positions();
    positions.next.putAll(next);
    return positions;
  }

  /** The positions that include all of the given ones. */
  public static Positions merged(Positions... all) {
    Positions merged = new Positions();
    for (Positions some : all) {
      some.next.forEach((partition, offset) -> merged.next.merge(partition, offset, Math::max));
    }
    return merged;
  }

  /** By partition. */
  public Map<Integer, Long> next() {
    return Collections.unmodifiableMap(next);
  }

  /** Do these include the others? */
  public boolean reach(Positions others) {
    return others.next.entrySet().stream().allMatch(e -> next.getOrDefault(e.getKey(), 0L) >= e.getValue());
  }

  @Override
  public boolean equals(Object other) {
    return other instanceof Positions && next.equals(((Positions) other).next);
  }

  @Override
  public int hashCode() {
    return next.hashCode();
  }

  @Override
  public String toString() {
    return next.toString();
  }
}
