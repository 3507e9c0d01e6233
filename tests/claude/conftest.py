"""What the tests of the Claude client share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from messages_server import MessagesServer


@pytest.fixture
def messages_server() -> Iterator[MessagesServer]:
    """A scripted Messages API; set ``script``, or call ``play``."""
    with MessagesServer() as server:
        yield server
