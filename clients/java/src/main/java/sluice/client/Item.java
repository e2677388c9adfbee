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

  /**
   * A ready-made part of a Mixture-of-Logits space: the component embeddings, one after the other, and the output of
   * the model's gate for the item.
   */
  public Item components(String space, float[] components, float[] itemGate) {
    ObjectNode part = message.withObject("/parts").putObject(space);
    part.set("components", Json.of(components));
    part.set("item_gate", Json.of(itemGate));
    return this;
  }

  /** The item's codes in a space of RecJPQ: one sub-item, 0 to 255, for each split. */
  public Item codes(String space, int... codes) {
    for (int code : codes) {
      if (code < 0 || code > 255) {
        throw new IllegalArgumentException("code " + code + " is not from 0 to 255");
      }
    }
    message.withObject("/parts").putObject(space).set("codes", Json.of(codes));
    return this;
  }

  /** A number, a text, a list of texts, a truth value, or an Instant for a time; null removes the attribute. */
  public Item attribute(String name, Object value) {
    message.withObject("/attributes").set(name, Json.of(value));
    return this;
  }

  byte[] message() {
    if (message.isEmpty()) {
      throw new IllegalArgumentException("the item has neither parts nor attributes");
    }
    return Json.bytes(message);
  }
}
