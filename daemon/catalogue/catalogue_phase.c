/* SPDX-License-Identifier: Apache-2.0 */
/* Names of the phases: in words for people, and as one word for metrics. */
#include "daemon/catalogue/catalogue_phase.h"

const char *catalogue_phase_name(enum catalogue_phase phase)
{
  static const char *const names[] = {
    [CATALOGUE_LOADING] = "loading the store",
    [CATALOGUE_CONNECTING] = "waiting for Kafka",
    [CATALOGUE_TOPIC_AWAY] = "waiting for the catalogue topic",
    [CATALOGUE_DENIED] = "not allowed to read the catalogue topic",
    [CATALOGUE_CATCHING_UP] = "catching up",
    [CATALOGUE_REBUILDING] = "rebuilding from the log",
    [CATALOGUE_AWAITING] = "waiting for sluicectl rebuild accept",
    [CATALOGUE_FULL] = "full: catalogue.max_items is reached",
    [CATALOGUE_DISK_FULL] = "paused: the store's disk is full",
    [CATALOGUE_DAMAGED] = "paused: the broker's log is damaged",
    [CATALOGUE_SCHEMA_AWAY] = "waiting for the schema registry",
    [CATALOGUE_LIVE] = "live",
  };

  return names[phase];
}

const char *catalogue_phase_word(enum catalogue_phase phase)
{
  static const char *const words[] = {
    [CATALOGUE_LOADING] = "loading",         [CATALOGUE_CONNECTING] = "connecting",
    [CATALOGUE_TOPIC_AWAY] = "topic_away",   [CATALOGUE_DENIED] = "denied",
    [CATALOGUE_CATCHING_UP] = "catching_up", [CATALOGUE_REBUILDING] = "rebuilding",
    [CATALOGUE_AWAITING] = "awaiting",       [CATALOGUE_FULL] = "full",
    [CATALOGUE_DISK_FULL] = "disk_full",     [CATALOGUE_DAMAGED] = "damaged",
    [CATALOGUE_SCHEMA_AWAY] = "schema_away", [CATALOGUE_LIVE] = "live",
  };

  return words[phase];
}
