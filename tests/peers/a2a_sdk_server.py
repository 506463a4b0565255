"""An agent of the reference SDK (a2a-sdk): started as `a2a_sdk_server.py FOLDER`, it prints its port.

Skill `report` works until FOLDER/release is there and makes one artifact; `ask` asks a question and repeats the answer.
FOLDER/effects gets a line for each run that came to its end.
"""

import asyncio
import socket
import sys
from pathlib import Path

import uvicorn
from a2a.helpers import new_text_message, new_text_part
from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.events.event_queue_v2 import EventQueue
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes
from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
from a2a.types.a2a_pb2 import AgentCapabilities, AgentCard, AgentInterface, AgentSkill, Task, TaskState, TaskStatus
from starlette.applications import Starlette


class Executor(AgentExecutor):
    def __init__(self, folder: Path) -> None:
        self._folder = folder

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        task = context.current_task
        if task is None:
            task = Task(
                id=context.task_id,
                context_id=context.context_id,
                status=TaskStatus(state=TaskState.TASK_STATE_SUBMITTED),
                history=[context.message],
            )
            await event_queue.enqueue_event(task)
        updater = TaskUpdater(event_queue, task.id, task.context_id)
        await updater.start_work()
        if dict(context.message.metadata).get("dev.counterfoil/skill") == "ask":
            await updater.requires_input(new_text_message("Which paper?"))
            return
        if not context.get_user_input().startswith("A"):
            while not (self._folder / "release").exists():  # noqa: ASYNC110  another process makes it
                await asyncio.sleep(0.05)  # a file is all that the test has to say
        await updater.add_artifact([new_text_part(f"made of {context.get_user_input()}")], name="report")
        self._note(f"done {context.get_user_input()}")
        await updater.complete()

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        assert context.current_task is not None
        self._note("cancelled")
        await TaskUpdater(event_queue, context.current_task.id, context.current_task.context_id).cancel()

    def _note(self, line: str) -> None:
        with (self._folder / "effects").open("a") as effects:
            effects.write(line + "\n")


def main(folder: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        url = f"http://127.0.0.1:{port}/agent"
        card = AgentCard(
            name="Reports",
            description="Makes reports.",
            version="1.0.0",
            supported_interfaces=[AgentInterface(url=url, protocol_binding="JSONRPC", protocol_version="1.0")],
            capabilities=AgentCapabilities(streaming=False, push_notifications=False),
            default_input_modes=["text/plain"],
            default_output_modes=["text/plain"],
            skills=[AgentSkill(id=name, name=name, description=name, tags=["x"]) for name in ("report", "ask")],
        )
        handler = DefaultRequestHandler(Executor(folder), InMemoryTaskStore(), card)
        app = Starlette(routes=[*create_agent_card_routes(card), *create_jsonrpc_routes(handler, "/agent")])
        server = uvicorn.Server(uvicorn.Config(app, log_level="warning", access_log=True))
        print(port, flush=True)
        server.run(sockets=[listener])


if __name__ == "__main__":
    main(Path(sys.argv[1]))
