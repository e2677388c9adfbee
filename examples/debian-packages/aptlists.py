# SPDX-License-Identifier: Apache-2.0
"""Reads apt's package lists: one record per package name, with the fields that the example uses."""

import glob
import os
import re
import subprocess

LISTS = os.environ.get("APT_LISTS") or "/var/lib/apt/lists"
CAT_FILE = "/usr/lib/apt/apt-helper"
KEPT = {
    "Source", "Section", "Maintainer", "Homepage", "Description", "Tag", "Provides",
    "Size", "Priority", "Depends", "Pre-Depends", "Recommends", "Suggests", "Enhances",
}


def list_files():
    """Paths of the Packages lists, those with the newest records (security, updates) last, and of translations."""
    packages = [p for p in glob.glob(LISTS + "/*_Packages*")]
    packages.sort(key=lambda p: ("-security" in p, "-updates" in p, p))
    return packages, sorted(glob.glob(LISTS + "/*_Translation-en*"))


def lines_of(path):
    """Lines of a list, in whatever compression apt stores it."""
    process = subprocess.Popen([CAT_FILE, "cat-file", path], stdout=subprocess.PIPE, text=True, errors="replace",
                               bufsize=1 << 20)
    with process:
        yield from process.stdout
    if process.returncode:
        raise SystemExit(f"{CAT_FILE} cat-file {path} failed")


def stanzas(path, kept):
    """Yield the records of a deb822 file as dictionaries. Continuation lines are joined with a newline."""
    record, field = {}, None
    for line in lines_of(path):
        if line == "\n":
            if record:
                yield record
            record, field = {}, None
        elif line[0] in " \t":
            if field:
                record[field] += "\n" + line.strip()
        else:
            name, _, value = line.partition(":")
            field = name if name in kept else None
            if field:
                record[field] = value.strip()
    if record:
        yield record


def read_packages():
    """All packages by name. Fields of a newer list win; fields that it lacks (often Tag) are kept."""
    packages, translations = list_files()
    if not packages:
        raise SystemExit(f"no package lists in {LISTS}: run apt-get update")
    merged = {}
    for path in packages:
        for record in stanzas(path, KEPT | {"Package"}):
            merged.setdefault(record.pop("Package"), {}).update(record)
    for path in translations:
        for record in stanzas(path, {"Package", "Description-en"}):
            if record.get("Package") in merged and "Description-en" in record:
                merged[record["Package"]]["Long"] = record["Description-en"]
    return dict(sorted(merged.items()))


def newest_list_time():
    """When the newest list was fetched. Its mtime would be the archive's, which may be older than our outputs."""
    packages, translations = list_files()
    return max((os.stat(p).st_ctime for p in packages + translations), default=0.0)


def alternatives(field):
    """A dependency field as lists of alternative names: 'a (>= 1), b | c' is [['a'], ['b', 'c']]."""
    groups = []
    for clause in re.sub(r"\([^)]*\)|\[[^]]*\]|<[^>]*>", "", field or "").split(","):
        names = [n.strip().partition(":")[0] for n in clause.split("|")]
        names = [n for n in names if n]
        if names:
            groups.append(names)
    return groups


def attributes(record):
    """What filters compare: the section without its archive area, the size of the archive in bytes, the priority."""
    values = {"section": record.get("Section", "").rpartition("/")[2], "size": int(record.get("Size", 0)),
              "priority": record.get("Priority", "")}
    return {name: value for name, value in values.items() if value}


def summary(record):
    return record.get("Description", record.get("Long", "")).partition("\n")[0]
