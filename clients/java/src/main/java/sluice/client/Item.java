// SPDX-License-Identifier: Apache-2.0
package sluice.client;

import com.fasterxml.jackson.databind.node.ObjectNode;

/** An item, or what changes of it: parts and attributes that are not named stay. Each method returns the item. */
public final class Item {
  private final ObjectNode message = Json.object();

  /** The item's vector in a space. */
  public Item vector(String space, float... vector) {
    message.withObject("/parts").putObject(space).set("vector", Json.of(vector));
    return this;
  }

  /** The item's codes in a space of RecJPQ: one sub-item, 0 to 255, for each split. */
  public Item codes(String space, int... codes) {
    message.withObject("/parts").putObject(space).set("codes", Json.of(codes));
    return this;
  }

  /** A number, a text, a list of texts, a truth value, or an Instant for a time; null removes the attribute. */
  public Item attribute(String name, Object value) {
    message.withObject("/attributes").set(name, Json.of(value));
    return this;
  }

  byte[] message() {
    return Json.bytes(message);
  }
}
