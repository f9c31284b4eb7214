# SPDX-License-Identifier: Apache-2.0
"""Mistral's actions, made and run as by Mistral."""

from importlib import metadata
import inspect
import json
import types
from typing import Any

from mistral_lib import serialization
from mistral_lib.actions import context as contexts


def published(namespace: str) -> dict[str, Any]:
    """Return the actions of a namespace that Mistral knows, by their names."""
    return {
        entry.name: entry.load()
        for entry in metadata.entry_points(group='mistral.actions')
        if entry.name.startswith(f'{namespace}.')
    }


def arguments(function: Any) -> list[tuple[str, Any]]:
    """Return the names and defaults of what a function or action takes.

    What only a keyword can give is left out: Mistral does not give it.
    """
    return [
        (one.name, one.default)
        for one in inspect.signature(function).parameters.values()
        if one.name != 'self' and one.kind is not one.KEYWORD_ONLY
    ]


def run(action: Any, workflow_execution_id: str | None = None) -> Any:
    """Run an action where Mistral would: on another machine, as JSON goes."""
    serializer = serialization.get_polymorphic_serializer()
    sent = json.dumps(serializer.serialize(action))
    received = serializer.deserialize(json.loads(sent))
    return received.run(
        contexts.ActionContext(
            types.SimpleNamespace(),
            contexts.ExecutionContext(
                workflow_execution_id=workflow_execution_id,
                action_execution_id='action-1',
            ),
        )
    )
