"""Rules for every test: no network beyond this machine unless marked, opt-in markers, and no silent skip under CI."""
from __future__ import annotations

import ipaddress
import os
import signal
import socket
import threading
from collections.abc import Callable, Generator

import pytest

OPT_IN = ("network", "docker", "gpu")

# Node id (or its beginning) -> why this test may skip under CI. A skip that is not here fails there.
SKIPS_ALLOWED_UNDER_CI: dict[str, str] = {}

# Nothing listens on the discard port of the loopback: a child process that asks the outside is refused at once.
NOWHERE = "http://127.0.0.1:9"
PROXIES = ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")


def pytest_addoption(parser: pytest.Parser) -> None:
    """One switch per opt-in marker, and the one that rewrites expected files."""
    for marker in OPT_IN:
        parser.addoption(f"--{marker}", action="store_true", help=f"run the tests that need {marker} too")
    parser.addoption("--update-snapshots", action="store_true", help="write what commands print as the new expectation")


def pytest_configure(config: pytest.Config) -> None:
    """No test, and no program that one starts, sees this user's own matrix and overlay, or the day on which it runs."""
    # Who starts the tests in the background of a script has interrupts ignored, here and in every child.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN and threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ["ACCEL_ENV_DATA"] = os.path.join(os.sep, "nonexistent", "accel-env")
    os.environ["ACCEL_ENV_TODAY"] = "2026-12-01"
    os.environ.pop("ACCEL_ENV_OVERLAY", None)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect what was not opted into; a deselected test is counted and is no skip."""
    left_out = [
        item for item in items if any(item.get_closest_marker(m) and not config.getoption(f"--{m}") for m in OPT_IN)
    ]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Under CI a skip is a failure: a check that did not run must be seen."""
    report = yield
    if report.skipped and not hasattr(report, "wasxfail"):
        _fail_skip(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """The same for a module that skips itself while it is collected."""
    report = yield
    if report.outcome == "skipped":
        _fail_skip(report)
    return report


def _fail_skip(report: pytest.TestReport | pytest.CollectReport) -> None:
    if os.environ.get("CI") != "true" or report.nodeid.startswith(tuple(SKIPS_ALLOWED_UNDER_CI)):
        return
    reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr
    report.outcome = "failed"
    report.longrepr = f"{report.nodeid} was skipped under CI ({reason}); allow it in tests/conftest.py with a reason"


def _local(address: object) -> bool:
    if not isinstance(address, tuple):
        return True  # a path: AF_UNIX
    host = str(address[0])
    try:
        return ipaddress.ip_address(host.partition("%")[0]).is_loopback
    except ValueError:
        return host in ("", "localhost")


def _guarded(name: str) -> Callable[..., object]:
    original = getattr(socket.socket, name)

    def guarded(self: socket.socket, *args: object) -> object:
        # sendto(data[, flags], address): the address comes last.
        if args and not _local(args[-1]):
            raise OSError(f"a test without the network marker called {name}({args[-1]!r})")
        return original(self, *args)

    return guarded


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Keep sockets on this machine while a test runs, and child processes too, by a proxy that refuses."""
    if item.get_closest_marker("network"):
        return (yield)
    # A hook and not a fixture: hypothesis objects to function-scoped fixtures, and setup is to be covered as well.
    with pytest.MonkeyPatch.context() as patch:
        for name in ("connect", "connect_ex", "sendto"):
            patch.setattr(socket.socket, name, _guarded(name))
        for variable in PROXIES:
            patch.setenv(variable, NOWHERE)
        for variable in ("no_proxy", "NO_PROXY"):
            patch.setenv(variable, "127.0.0.1,localhost,::1")
        return (yield)
