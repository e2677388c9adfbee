# SPDX-License-Identifier: Apache-2.0
"""Printing the rows of a benchmark: JSON objects, or a table with or without Markdown."""

import json


class ResultRows:
    """Prints each row as soon as it is there. `options` has `json` and `markdown`."""

    def __init__(self, columns, options):
        self.columns, self.options, self.is_empty = columns, options, True

    def show(self, row):
        if self.options.json:
            print(json.dumps(row), flush=True)
            return
        if self.is_empty:
            self._print(self.columns)
            if self.options.markdown:
                print("|" + "---|" * len(self.columns), flush=True)
        self.is_empty = False
        self._print([str(row[column]) for column in self.columns])

    def _print(self, cells):
        edge, gap = ("| ", " | ") if self.options.markdown else ("", "  ")
        print(edge + gap.join(cells) + edge.rstrip(), flush=True)
