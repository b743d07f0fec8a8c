"""A Python language host for `pulumi up` from the shell, where Pulumi's own is not installed.

A normal Pulumi installation brings `pulumi-language-python`; this one serves rehearsals and tests on machines that
build the engine from its Go module. The program runs in this interpreter and sees its packages.
"""

from __future__ import annotations

import os
import runpy
import shlex
import signal
import stat
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grpc  # type: ignore[import-untyped]
from pulumi.automation._server import LanguageServer
from pulumi.runtime.proto import language_pb2
from pulumi.runtime.proto.language_pb2_grpc import add_LanguageRuntimeServicer_to_server

LAUNCHER = "pulumi-language-python"
"""The name by which the engine looks for a language host on PATH."""

_LOOK_FOR_ENGINE_EVERY_S = 0.5


class LanguageHost(LanguageServer):
    """Runs the `__main__.py` of the project that the engine names."""

    def __init__(self, engine_address: str) -> None:
        super().__init__(lambda: None)
        self._engine_address = engine_address

    def Handshake(
        self, request: language_pb2.LanguageHandshakeRequest, context: grpc.ServicerContext
    ) -> language_pb2.LanguageHandshakeResponse:
        self._engine_address = request.engine_address
        return language_pb2.LanguageHandshakeResponse()

    def RuntimeOptionsPrompts(
        self, request: language_pb2.RuntimeOptionsRequest, context: grpc.ServicerContext
    ) -> language_pb2.RuntimeOptionsResponse:
        return language_pb2.RuntimeOptionsResponse()

    def Run(self, request: language_pb2.RunRequest, context: grpc.ServicerContext) -> language_pb2.RunResponse:
        # The Automation API's server finds the engine's address among the program's arguments.
        request.args[:] = [self._engine_address]
        program = Path(request.info.program_directory or request.pwd)

        def run() -> None:
            os.chdir(request.pwd)
            sys.path.insert(0, str(program))
            runpy.run_path(str(program / "__main__.py"), run_name="__main__")

        self.program = run
        response: language_pb2.RunResponse = super().Run(request, context)  # type: ignore[no-untyped-call]
        # The Automation API's server has told the engine of the error and gives it back as well, which the engine would
        # print again as "an unhandled error occurred". Pulumi's own host says like this that all has been said.
        return language_pb2.RunResponse(bail=True) if response.error else response


def write_launcher(folder: Path) -> Path:
    """Write an executable `pulumi-language-python` into `folder` that runs this host with this interpreter."""
    launcher = folder / LAUNCHER
    # By its path, not by `-m`: the engine starts it in the program's folder.
    command = shlex.join([sys.executable, str(Path(__file__).resolve())])
    launcher.write_text(f'#!/bin/sh\nexec {command} "$@"\n', encoding="utf-8")
    launcher.chmod(launcher.stat().st_mode | stat.S_IXUSR)
    return launcher


def main(arguments: list[str]) -> None:
    """Serve until a signal comes or the engine, which is the parent process, has gone."""
    engine = os.getppid()
    ended = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: ended.set())
    addresses = [argument for argument in arguments if not argument.startswith("-")]
    server = grpc.server(ThreadPoolExecutor(max_workers=4))
    add_LanguageRuntimeServicer_to_server(LanguageHost(addresses[-1] if addresses else ""), server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    sys.stdout.write(f"{port}\n")
    sys.stdout.flush()
    while not ended.wait(_LOOK_FOR_ENGINE_EVERY_S) and os.getppid() == engine:
        pass
    # A program in the middle of a request would keep the interpreter; nothing here is worth waiting for.
    os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1:])
