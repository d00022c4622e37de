"""Children end with their parent, and say why they did not start."""

import os
import signal
import socket
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from dev import process
from dev.process import Program
from dev.supervisor import Supervisor

pytestmark = pytest.mark.integration

DEADLINE_S = 10.0

IGNORES_TERM = (
    "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN);"
    "print('up', flush=True); time.sleep(600)"
)
SLEEPS = "import time; print('up', flush=True); time.sleep(600)"


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.setenv(name, "")
        monkeypatch.setenv(name.upper(), "")
        monkeypatch.delenv(name)
        monkeypatch.delenv(name.upper())
    return monkeypatch


def test_loopback_is_reached_without_a_proxy(environment: pytest.MonkeyPatch) -> None:
    environment.setenv("https_proxy", "http://proxy.example:3128")
    environment.setenv("NO_PROXY", "intra.example")

    process.reach_loopback_directly()
    process.reach_loopback_directly()

    assert os.environ["no_proxy"] == "intra.example,localhost,127.0.0.1"
    assert os.environ["NO_PROXY"] == os.environ["no_proxy"]


def test_without_a_proxy_the_environment_stays(environment: pytest.MonkeyPatch) -> None:
    process.reach_loopback_directly()

    assert "no_proxy" not in os.environ


def python(name: str, code: str) -> Program:
    return Program(name=name, argv=[sys.executable, "-c", code])


def is_up(child: process.Child) -> bool:
    return "up" in child.log.read_text(encoding="utf-8")


@pytest.fixture
def supervisor(tmp_path: Path) -> Iterator[Supervisor]:
    with Supervisor(tmp_path) as owner:
        yield owner


def start(supervisor: Supervisor, name: str, code: str) -> process.Child:
    child = supervisor.start(python(name, code))
    child.await_ready(lambda: is_up(child), timeout_s=DEADLINE_S)
    return child


def test_children_end_youngest_first(tmp_path: Path) -> None:
    order = tmp_path / "order"
    code = textwrap.dedent("""
        import pathlib, signal, sys, time
        def end(*_):
            with pathlib.Path({order!r}).open("a") as file:
                file.write({name!r})
            sys.exit(0)
        signal.signal(signal.SIGTERM, end)
        print("up", flush=True)
        time.sleep(600)
    """)

    with Supervisor(tmp_path) as supervisor:
        for name in "abc":
            start(supervisor, name, code.format(order=str(order), name=name))

    assert order.read_text(encoding="utf-8") == "cba"


def test_a_child_that_ignores_its_stop_signal_is_killed(
    supervisor: Supervisor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "STOP_TIMEOUT_S", 0.2)
    child = start(supervisor, "stubborn", IGNORES_TERM)

    child.stop()

    assert child.status == -signal.SIGKILL


def test_grandchildren_end_too(supervisor: Supervisor) -> None:
    code = (
        "import subprocess, sys, time;"
        "print(subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)']).pid);"
        "print('up', flush=True); time.sleep(600)"
    )
    child = start(supervisor, "family", code)
    grandchild = psutil.Process(int(child.log.read_text(encoding="utf-8").split()[0]))

    child.stop()

    psutil.wait_procs([grandchild], timeout=DEADLINE_S)
    assert not grandchild.is_running() or grandchild.status() == psutil.STATUS_ZOMBIE


def test_a_killed_parent_leaves_no_process(tmp_path: Path) -> None:
    code = textwrap.dedent(f"""
        import sys, threading, time
        from pathlib import Path
        from dev.process import Program
        from dev.supervisor import Supervisor
        supervisor = Supervisor(Path({str(tmp_path)!r}))
        def begin():
            argv = [sys.executable, "-c", {IGNORES_TERM!r}]
            child = supervisor.start(Program(name="orphan", argv=argv))
            print(child.pid, flush=True)
        # Started from a thread that ends: the child must stay until the process ends.
        thread = threading.Thread(target=begin)
        thread.start()
        thread.join()
        time.sleep(600)
    """)
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout is not None
        orphan = psutil.Process(int(parent.stdout.readline()))
        log = tmp_path / "logs" / "orphan.log"
        process.wait_until(lambda: "up" in log.read_text(encoding="utf-8"), timeout_s=DEADLINE_S)

        parent.kill()

    gone, _ = psutil.wait_procs([orphan], timeout=DEADLINE_S)
    assert gone == [orphan]


def test_a_child_that_ends_at_once_is_reported_with_its_last_words(supervisor: Supervisor) -> None:
    child = supervisor.start(python("broken", "raise SystemExit('no such thing')"))

    with pytest.raises(process.ProcessError, match="cannot start broken") as caught:
        child.await_ready(lambda: False, timeout_s=DEADLINE_S)

    assert "status 1" in str(caught.value)
    assert "no such thing" in str(caught.value)


def test_a_child_that_never_gets_ready_is_reported(supervisor: Supervisor) -> None:
    child = start(supervisor, "slow", SLEEPS)

    with pytest.raises(process.ProcessError, match="cannot start slow: not ready after"):
        child.await_ready(lambda: False, timeout_s=0.1)


def test_a_command_that_fails_is_reported(supervisor: Supervisor) -> None:
    with pytest.raises(process.ProcessError, match="cannot run command") as caught:
        supervisor.check(python("command", "raise SystemExit('nope')"), timeout_s=DEADLINE_S)

    assert "nope" in str(caught.value)


def test_a_command_that_hangs_is_killed(supervisor: Supervisor) -> None:
    with pytest.raises(process.ProcessError, match="still running after"):
        supervisor.run(python("hangs", SLEEPS), timeout_s=0.1)


def test_a_restarted_program_keeps_its_log(supervisor: Supervisor) -> None:
    for word in ("first", "second"):
        supervisor.check(python("again", f"print({word!r})"), timeout_s=DEADLINE_S)

    log = supervisor.logs / "again.log"
    assert log.read_text(encoding="utf-8") == "first\nsecond\n"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may become another user")
def test_a_program_runs_as_the_user_it_asks_for(supervisor: Supervisor) -> None:
    program = Program(
        name="whoami",
        argv=["/bin/sh", "-c", "id -u; id -g; id -G"],
        account=process.Account(uid=65534, gid=65533),
    )

    supervisor.check(program, timeout_s=DEADLINE_S)

    assert (supervisor.logs / "whoami.log").read_text().split() == ["65534", "65533", "65533"]


def test_chosen_ports_are_free_and_differ() -> None:
    ports = [process.free_port() for _ in range(20)]

    assert len(set(ports)) == len(ports)
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", ports[0]))


def test_a_chosen_port_is_not_given_to_another_process() -> None:
    code = (
        "from dev import process; process.PORTS = range({port}, {port} + 1);"
        "process.PORT_ATTEMPTS = 1; process.free_port()"
    )
    port = process.free_port()

    answer = subprocess.run(
        [sys.executable, "-c", code.format(port=port)], capture_output=True, text=True, check=False
    )

    assert "cannot choose port" in answer.stderr


def test_nobody_answers_on_a_port_without_listener() -> None:
    assert not process.answers(f"http://127.0.0.1:{process.free_port()}/healthz")
