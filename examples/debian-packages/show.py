#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The demo's helper: gets queries and values from the prepared files, and prints answers as tables.

    show.py query QUERIES.jsonl ID METHOD        print one query, with this method
    show.py value ITEMS.jsonl KEY [OTHER]        print an item's value; with OTHER, its vector is moved a third of the
                                                 way to that of OTHER
    show.py hits                                 print the keys of the hits of an answer on standard input
    show.py bootstrap                            print Kafka's address from the daemon's status on standard input
    show.py answers SUMMARIES.tsv [BEFORE]       print the answers on standard input, one per line, as tables; mark hits
                                                 that the answers in the file BEFORE do not have
"""

import base64
import json
import shutil
import struct
import sys

MARK, PLAIN, BOLD, DIM = "+", "\033[0m", "\033[1m", "\033[2m"


def styled(style, text):
    return f"{style}{text}{PLAIN}" if sys.stdout.isatty() else text


def records(path):
    with open(path, encoding="utf-8") as f:
        for line in f:
            yield json.loads(line)


def print_query(path, wanted, method):
    for query in records(path):
        if query["id"] == wanted:
            print(json.dumps({**query, "method": method, "id": f"{wanted}, {method}"}))
            return
    raise SystemExit(f"{path} has no query '{wanted}'")


def find_values(path, keys):
    found = {}
    with open(path, encoding="utf-8") as f:
        for line in f:
            if line.partition('",')[0].partition(':"')[2] in keys:
                record = json.loads(line)
                found[record["key"]] = record["value"]
    missing = set(keys) - set(found)
    if missing:
        raise SystemExit(f"{path} has no item {', '.join(sorted(missing))}")
    return found


def numbers(vector):
    data = base64.b64decode(vector["data"])
    return struct.unpack(f"<{len(data) // 2}e", data)


def print_value(path, key, other=None):
    found = find_values(path, {key, other or key})
    value = found[key]
    if other:
        here, there = (numbers(found[k]["parts"]["packages"]["vector"]) for k in (key, other))
        value["parts"]["packages"]["vector"] = [round(a + (b - a) / 3, 6) for a, b in zip(here, there)]
    print(json.dumps(value))


def receipt_text(answer):
    receipt = answer["receipt"]
    if receipt.get("exact"):
        return "exact"
    if "bound" in receipt:
        return f"approximate (others score {receipt['bound']:.2f} at most)"
    return "approximate"


def effort(answer):
    counts = answer["counts"]
    time_ms = answer["times"]["searched_us"] / 1000
    admitted = counts.get("admitted", counts["items"])
    return f"{admitted:,} items admitted, {counts['scored']:,} scored in {time_ms:.2f} ms, {receipt_text(answer)}"


def keys(answer):
    return [hit["key"] for hit in answer["hits"]]


def print_table(answer, summaries, before):
    width = max([len(k) for k in keys(answer)] + [20])
    room = max(20, shutil.get_terminal_size((120, 24)).columns - width - 24)
    for rank, hit in enumerate(answer["hits"], 1):
        mark = MARK if before is not None and hit["key"] not in before else " "
        summary = summaries.get(hit["key"], "")
        summary = summary if len(summary) <= room else summary[:room - 3] + "..."
        print(f"  {mark} {rank:2}  {styled(BOLD, hit['key'].ljust(width))} {hit['score']:8.4f}  {styled(DIM, summary)}")


def comparison(answer, first):
    mine, theirs = keys(answer), keys(first)
    if mine == theirs:
        return "the same hits"
    return f"{len(set(mine) & set(theirs))} of the same {len(theirs)} hits"


def print_answers(summaries_path, before_path=None):
    with open(summaries_path, encoding="utf-8") as f:
        summaries = dict(line.rstrip("\n").split("\t", 1) for line in f)
    earlier = {a["id"]: keys(a) for a in records(before_path)} if before_path else {}
    topic = first = None
    for answer in map(json.loads, sys.stdin):
        if "error" in answer:
            raise SystemExit(f"{answer['id']}: {answer['error']['code']}: {answer['error'].get('message', '')}")
        asked, _, method = answer["id"].rpartition(", ")
        if asked == topic:
            print(f"        {method:13} {effort(answer)}: {comparison(answer, first)}")
            continue
        topic, first = asked, answer
        before = earlier.get(answer["id"])
        print("\n  " + styled(BOLD, asked))
        print_table(answer, summaries, before)
        if before is not None and set(before) - set(keys(answer)):
            print(f"        gone: {', '.join(k for k in before if k not in keys(answer))}")
        print(f"        {method:13} {effort(answer)}")


def print_hits():
    print("\n".join(keys(json.load(sys.stdin))))


def print_bootstrap():
    print(json.load(sys.stdin)["kafka"]["bootstrap"])


def main():
    commands = {"query": print_query, "value": print_value, "hits": print_hits, "bootstrap": print_bootstrap,
                "answers": print_answers}
    if len(sys.argv) < 2 or sys.argv[1] not in commands:
        raise SystemExit(__doc__)
    commands[sys.argv[1]](*sys.argv[2:])


if __name__ == "__main__":
    main()
