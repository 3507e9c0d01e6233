"""Trials of an app that talks to the scripted server with the real SDK, carried out by the real engine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import anthropic
from engine_lab import Lab, row_of
from messages_server import MessagesServer

from pytest_hillclimb.engine.outcome import Kind, Outcome

SDK_DEFAULT_RETRIES = 2


class ClaudeLab:
    """An engine, and what its trials left."""

    def __init__(self, lab: Lab, server: MessagesServer) -> None:
        self.lab = lab
        self.server = server

    def outcome(self) -> Outcome:
        """Run one trial to its end."""
        return self.lab.outcome()

    def scored(self) -> dict[str, Any]:
        """Run one trial, which must be scored, and return its row."""
        outcome = self.outcome()
        assert outcome.kind is Kind.SCORED, outcome.row
        return row_of(outcome)

    def failed(self) -> dict[str, Any]:
        """Run one trial, which must fail, and return its row."""
        outcome = self.outcome()
        assert outcome.kind is Kind.FAILED, outcome.row
        return row_of(outcome)


def async_client(server: MessagesServer | str, **options: Any) -> anthropic.AsyncAnthropic:
    """Return a client as a user makes it: the SDK's own retries are on."""
    url = server if isinstance(server, str) else server.url
    return anthropic.AsyncAnthropic(base_url=url, api_key="none", **options)


def sync_client(server: MessagesServer, **options: Any) -> anthropic.Anthropic:
    """Return a sync client as a user makes it."""
    return anthropic.Anthropic(base_url=server.url, api_key="none", **options)


def turns(transcript: Sequence[Any] | None) -> list[tuple[str, Any]]:
    """Return role and content of the turns of a transcript."""
    assert transcript is not None
    told = [turn if isinstance(turn, dict) else turn.model_dump() for turn in transcript]
    return [(turn["role"], turn["content"]) for turn in told]
