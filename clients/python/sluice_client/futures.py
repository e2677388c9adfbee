# SPDX-License-Identifier: Apache-2.0
"""Ends futures, whatever their callbacks do."""

import logging
from concurrent.futures import Future
from typing import Any, Optional

LOG = logging.getLogger(__name__)


def end(future: "Future[Any]", result: Any = None, error: Optional[Exception] = None) -> None:
    """End a future with a result or an error.

    Future itself logs what callbacks raise, but lets SystemExit and its like pass: they would end the thread that ends
    all other futures.
    """
    try:
        if error is None:
            future.set_result(result)
        else:
            future.set_exception(error)
    except BaseException:
        LOG.exception("a callback of %r raised", future)
