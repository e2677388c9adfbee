/* SPDX-License-Identifier: Apache-2.0 */
/* The table of events with an id, by name. A new id comes from `systemd-id128 new`. */
#include "daemon/journal/journal_events.h"

#include <stdlib.h>
#include <string.h>

static const struct journal_event events[] = {
  { "backend", "56b65d09b9e14350b9fd07a0063cccd7", "The backend of searches is chosen" },
  { "backend_failed", "11b046cb193c490eb34e852db581843b", "The GPU failed, and the processor takes over" },
  { "backend_fallback", "cdae65297e5045748eea1283871b559e", "This machine's GPU is not used" },
  { "canary_not_written", "feae2d2d07cc45fba88542b8002653b0", "A canary cannot be written" },
  { "catalogue", "835c5137b13a4518b759311b9b19342c", "The catalogue is in another phase" },
  { "catalogue_damage_over", "9f531078bc5b46ad8dfde7316bb7620a", "A damaged partition can be read again" },
  { "catalogue_damaged", "a00df6aad43d4dd1b9e468cbfa88d47c", "The broker cannot read a part of the catalogue topic" },
  { "catalogue_discontinuity", "e864fb475d1443d8a14d0b97a09505ee", "The catalogue topic does not continue the store" },
  { "catalogue_full", "e33cc28c7050413ea0190c943b772505", "The catalogue is full" },
  { "catalogue_held_back", "2afe6e21f68f41d6a484c2522a67b9c3", "An open transaction holds back catalogue records" },
  { "catalogue_held_back_over", "2c37c5016c73458b9cae97cad82aeee2", "An open transaction has ended" },
  { "catalogue_rebuilt", "c062206ad0db488b9e664d8c402cbc76", "A rebuilt catalogue is served" },
  { "catalogue_waiting", "061bc34d93ec4c84aa56107f764c1e80", "The catalogue topic cannot be read" },
  { "clock_stepped", "c58ce767f008488badea435012333cf2", "The wall clock was stepped" },
  { "credentials_not_changed", "a991f2a4e3054968b53033fed29e8719", "A Kafka client did not take up new credentials" },
  { "dead_letter", "f1238d868548453f838a26ed8750dd14", "A record cannot be used" },
  { "dead_letters_lost", "3c568ed85d7b4d31828095e01a3ba90c", "Dead letters are dropped" },
  { "dead_letters_resumed", "bb1645c36e9f4a139207cff9310b11c7", "Dead letters are delivered again" },
  { "dead_letters_waiting", "504569699c534977bdf564dd2b58b83d", "Dead letters wait for a broker" },
  { "delivery_resumed", "f21b514edaad4efdb5b3f6abeb365594", "Messages are delivered again" },
  { "delivery_waiting", "a16d86745c254910ae3e1baa031382eb", "Messages wait for a broker" },
  { "embedded_broker_gap", "f3f34856f0f94b4283658f9520553f30",
    "The embedded broker dropped records before they were read" },
  { "fatal", "9d7a02733fe84d4488b37ec8d6ed2257", "The daemon ends because of an error" },
  { "kafka_client", "7aa074a7d11e44d383d595dddc79644e", "A Kafka client reports a fault" },
  { "kafka_client_left", "2f941581367d4913be844bb3991ac32a", "A Kafka client cannot be closed" },
  { "kafka_client_not_renewed", "56abf1d3718b414e87b49ed70921e543", "A Kafka client did not take up new certificates" },
  { "kafka_client_renewed", "895e708448ad4972ba48d092beb30ce4", "A Kafka client has taken up new certificates" },
  { "kafka_error", "a1abeb94b969426c9855a540f84919c6", "A Kafka client reports an error" },
  { "kafka_refused", "ce45c38cc38e4dc692f69c8c431634bf", "A broker refuses the daemon" },
  { "model_changed", "4d79ba90ff5046b48d8b78a1fb12d3fb", "The record of a loaded model names another one" },
  { "model_failed", "ecf77dc3061145b3896e431f10f013e0", "A generation of a model cannot be used" },
  { "model_record_ignored", "f613b04aa5fb4358b7d89c324768b3f2", "A stored control record is ignored" },
  { "model_record_refused", "640665ccf8c04c3daa9486f10139e9b4", "A control record makes no sense" },
  { "model_switched", "ef0158af05324713a867aaaceb33901d", "Another generation of a model answers" },
  { "models_discontinuity", "2902216d25fa4cc6a96c6340da724909", "The control topic does not continue what was stored" },
  { "models_topic_waiting", "39b6e7de0bcd411a9329e825562eda3d", "The control topic is not read" },
  { "positions_not_committed", "2060581f445748d2a95e85cc48d5d525",
    "The positions of the catalogue were not committed to Kafka" },
  { "queries_held", "50e158abff36404fba45d70e5e781ac7", "No more queries are taken for now" },
  { "query_commit", "c2f1b4473eff447c8ec08ae81280252c", "The offsets of queries were not committed" },
  { "query_consumer", "aed43abadf794728ad12053fa628241d", "The query consumer reports an error" },
  { "query_denied", "218cc57376844758915820623ce1b588", "Queries may not be read" },
  { "query_group_differs", "209f9c078ca14233b0c7dd9bd6899f8e", "Another program is in the query group" },
  { "query_member_not_kept", "d6f12a030dd04eb9abfd3831e0881c76", "The id in the query group was not written" },
  { "query_topic_away", "06d18173427f4cb99e22a6d1906aef97", "The query topic is away" },
  { "query_topic_back", "af866422794249308177c3c211b3f046", "The query topic is back" },
  { "readiness", "87786058569f4341b59fdb7fef760ced", "Readiness has changed" },
  { "rebuild_accepted", "931147e8531043d78f3e93fcd31bc6be", "The file that accepted a rebuild cannot be removed" },
  { "rebuild_given_up", "381bf547623a4c75a527bb25956a7d8b", "A rebuild is given up" },
  { "rebuild_waits", "04433071be844b579c364351f270bf86", "A rebuilt catalogue waits for a person" },
  { "reload_refused", "a7d2e414ce984e859021b96ddd6271f5", "A reload was refused" },
  { "reloaded", "2e3c858481984d4fbafb59dfc659a3d4", "The configuration was reloaded" },
  { "reply_not_sent", "cd3a886a3f004fb2ae0c8bb3299eb78e", "A reply was refused by the brokers" },
  { "reply_not_written", "32a8787eb8244a6e88c9e554d3f00efb", "An answer cannot be encoded" },
  { "search_failed", "e5e40b2e24aa4766b57f6e2f87e0af8c", "A search failed" },
  { "secret_readable", "07b911872d2c416ba52ae2b36084b133", "A file with a secret is readable for everybody" },
  { "seen_caught_up", "a3351bd6b8d445e4b0bb6ed999afe60d", "The seen topic has been read" },
  { "seen_discontinuity", "957c80b350b74e7abd2cc693b877d778", "The seen topic does not continue what was stored" },
  { "seen_failed", "002e181561644144be39c5cd4f3b1cee", "What a user has seen cannot be read" },
  { "seen_waiting", "77d160d08b124f678acf89a967fe89c8", "The seen topic is not read" },
  { "started", "d7bd470ca334408eb6a3fbe3f283267d", "The daemon has started" },
  { "stop_gave_up", "7d41c0bb34c74535a2a0a88c285d77d5", "A part of the daemon hangs while it stops" },
  { "stopped", "be74fb92fc144751bb1c29dd429b19a9", "The daemon has stopped" },
  { "stopping", "f68cc5eaa122440a89273a69a3673956", "The daemon stops" },
  { "store_disk_full", "e1dec8a2d2f74912bbdaa0af3cbab7e6", "The store's disk is full" },
  { "store_loaded", "cadd51798ddb4cb28f635ebd79cb348e", "The store is loaded" },
  { "store_not_synced", "6b7dd5ffe57943869425a7338207312b", "The newest transaction of the store may not be on disk" },
  { "store_reopened", "6fef909a395746b199aa626368298835", "The store was opened again after a failed write" },
  { "stored_part_unusable", "c2ef614fa59c4b09a49e5d5edcc2b99e", "A stored item does not fit the model" },
  { "thread_failed", "a322574dc94442408fefbe5d67d3305a", "A thread failed, and the daemon ends" },
  { "thread_goes_on", "783bdb3cb8a6490f89ed04ac902c0cf8", "A thread makes progress again" },
  { "thread_still", "54364c99fcd449de8bf8562bde2630ac", "A thread makes no progress" },
  { "topic_consumer", "d93ed04b1ad445f0843fe54eac690c9e", "A consumer reports an error" },
  { "undeliverable", "34eebfd5be454c6d80664c65059667b5", "A message was given up" },
  { "undelivered", "74a2f84e55e945ca95499e9a61615d41", "Some replies were not delivered before the daemon stopped" },
  { "unknown_attribute", "fecbe4af2805463c9661eb1013c66efa", "Items have an attribute that is not configured" },
  { "unknown_space", "26d058cc5028437fbacca1f48ee1d0bb", "Items have parts of a space that is not configured" },
};

static int compare(const void *name, const void *event)
{
  return strcmp(name, ((const struct journal_event *)event)->name);
}

const struct journal_event *journal_events_find(const char *name)
{
  return bsearch(name, events, sizeof events / sizeof events[0], sizeof events[0], compare);
}
