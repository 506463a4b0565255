"""a2a-sdk's client. By default it blocks until the answer; variant `polling` asks for an answer at once.

"It is the callers job to check if the response is completed and if not run a polling loop": so this one does, once a
second, without catching anything. The client has no retry.
"""

import asyncio
import importlib.metadata
import uuid
from collections.abc import Coroutine
from typing import Any

import program
from a2a.client import ClientConfig, ClientFactory
from a2a.client.client import ClientCallContext
from a2a.types.a2a_pb2 import (
    CancelTaskRequest,
    GetTaskRequest,
    Message,
    Part,
    Role,
    SendMessageRequest,
    Task,
    TaskState,
)
from google.protobuf import json_format

POLL_S = 1.0
GOES_ON = (TaskState.TASK_STATE_SUBMITTED, TaskState.TASK_STATE_WORKING)


class Failed(Exception):
    """The task goes on no more, and is not completed."""


class A2a:
    """Each job has an event loop of its own, which its thread runs."""

    def __init__(self, job: program.Job, variant: str) -> None:
        self._job = job
        self._polls = variant == "polling"
        self._loop = asyncio.new_event_loop()
        factory = ClientFactory(ClientConfig(polling=self._polls))
        self._client: Any = self._run(factory.create_from_url(job.url))

    def _run(self, work: Coroutine[Any, Any, Any]) -> Any:
        return self._loop.run_until_complete(work)

    def submit(self) -> Task:
        return self._run(self._send())

    async def _send(self) -> Task:
        message = Message(message_id=str(uuid.uuid4()), role=Role.ROLE_USER, parts=[Part(text="2026-10")])
        context = None if self._job.timeout_s is None else ClientCallContext(timeout=self._job.timeout_s)
        async for event in self._client.send_message(SendMessageRequest(message=message), context=context):
            return event.task
        raise AssertionError("an answer without an event")

    def keep(self, handle: Task) -> str | None:
        return handle.id

    def resume(self, kept: str) -> Task:
        return self._run(self._client.get_task(GetTaskRequest(id=kept)))

    def cancel(self, handle: Task) -> None:
        if not self._polls:
            raise program.NotOffered  # it is over when the id is known
        handle.CopyFrom(self._run(self._client.cancel_task(CancelTaskRequest(id=handle.id))))

    def result(self, handle: Task) -> Any:
        return self._run(self._until_over(handle))

    async def _until_over(self, task: Task) -> Any:
        while task.status.state in GOES_ON:
            await asyncio.sleep(POLL_S)
            task = await self._client.get_task(GetTaskRequest(id=task.id))
        if task.status.state != TaskState.TASK_STATE_COMPLETED:
            raise Failed(TaskState.Name(task.status.state))
        return [json_format.MessageToDict(artifact) for artifact in task.artifacts]


if __name__ == "__main__":
    program.main(A2a, importlib.metadata.version("a2a-sdk"))
