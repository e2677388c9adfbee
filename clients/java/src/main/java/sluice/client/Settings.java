// SPDX-License-Identifier: Apache-2.0
package sluice.client;

import java.util.HashMap;
import java.util.Map;

/** Properties of Kafka's clients. */
final class Settings {
  private Settings() {}

  /** The defaults, and what replaces them or is added. */
  static Map<String, Object> with(Map<String, ?> more, Map<String, ?> defaults) {
    Map<String, Object> all = new HashMap<>(defaults);
    all.putAll(more);
    return all;
  }
}
