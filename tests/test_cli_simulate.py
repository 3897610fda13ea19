"""``ocpool simulate`` as a process: its address, its lines, its exit codes."""

import asyncio
import os
import signal
import sys

import orjson
import pytest

from tests.fakes.simulated import chat


class Running:
    """The command, started, with its address read."""

    def __init__(self, process: asyncio.subprocess.Process, first: str) -> None:
        self.process = process
        self.first = first

    @classmethod
    async def start(cls, *options: str) -> "Running":
        command = [sys.executable, "-m", "proxy.cli.main", "simulate", *options]
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(*command, stdout=pipe, stderr=pipe, env=os.environ)
        return cls(process, (await process.stdout.readline()).decode())

    async def post(self, port: int) -> bytes:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(chat(max_tokens=1, fields=(("connection", "close"),)))
        body = await reader.read(-1)
        writer.close()
        return body


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_it_prints_its_address_and_each_request_and_stops_at_a_signal(number):
    """Exit code 0, and no id in its lines."""
    running = await Running.start("--time-scale", "600")
    assert running.first.startswith("http://127.0.0.1:")
    port = int(running.first.split()[0].rpartition(":")[2])
    assert b"chat.completion" in await running.post(port)
    line = (await running.process.stdout.readline()).decode()
    assert "POST /zen/go/v1/chat/completions deepseek-v4.1-flash" in line
    assert " 200 " in line
    assert "s-1" not in line
    running.process.send_signal(number)
    assert await running.process.wait() == 0


async def test_json_lines_and_a_taken_port():
    """Programs get JSON; a second one on the port says so with code 3."""
    running = await Running.start("--json", "--scenario", "balanced", "--seed", "7", "--time-scale", "600")
    address = orjson.loads(running.first)
    assert (address["scenario"], address["seed"], address["timeScale"]) == ("balanced", 7, 600)
    port = int(address["address"].rpartition(":")[2])
    await running.post(port)
    line = orjson.loads(await running.process.stdout.readline())
    assert line["endpoint"].startswith("worker-")
    second = await Running.start("--port", str(port))
    assert second.first == ""
    assert await second.process.wait() == 3
    assert b"cannot listen" in await second.process.stderr.read()
    running.process.terminate()
    assert await running.process.wait() == 0


@pytest.mark.parametrize("wrong", [("--scenario", "rainy"), ("--time-scale", "601"), ("--port", "70000")])
async def test_bad_options_are_refused(wrong):
    """Code 2, and the reason."""
    running = await Running.start(*wrong)
    assert await running.process.wait() == 2
    assert b"Invalid value" in await running.process.stderr.read()
