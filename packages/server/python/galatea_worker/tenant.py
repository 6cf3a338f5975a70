"""Confines a tenant's process before any code of the tenant runs.

If a step fails, the process ends. The server creates the plan (`confinement-plan.ts`) from the `facts` about this machine, so that it only
contains supported measures.
"""

from __future__ import annotations

import json
import os
import resource
import socket
import struct
import sys
import sysconfig

from . import landlock, own_paths, view
from .system_calls import call

# Mark of a process that belongs to no family. It is greater than the mark of every family (_FAMILY_MARK in zygote.py).
NO_FAMILY = 10**12 + 2**32

_PR_SET_DUMPABLE = 4
_PR_CAPBSET_DROP = 24
_PR_SET_NO_NEW_PRIVS = 38
_CAPABILITY_VERSION_3 = 0x20080522

_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/etc", "/sys", "/nix/store")
DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty")
# GPU devices of other vendors. NVIDIA's devices are in the plan of a worker that may use them.
_ACCELERATORS = ("/dev/dri", "/dev/kfd")


def environment_paths() -> list[str]:
    """Returns the paths from which this interpreter imports modules, as written and with links resolved."""
    found = [sys.prefix, sys.base_prefix, sys.exec_prefix, *sys.path, os.path.dirname(sys.executable)]
    found += [sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib")]
    found = [each for each in found if each and os.path.exists(each)]
    return sorted({*map(os.path.abspath, found), *map(os.path.realpath, found)} - {"/", "/usr"})


def _resolver() -> list[str]:
    """Returns the file to which the link /etc/resolv.conf leads, if it is outside of /etc, as on many systems."""
    real = os.path.realpath("/etc/resolv.conf")
    return [] if real.startswith("/etc/") else [real]


def _is_mapped(users: tuple[int, int]) -> bool:
    """Returns whether this user namespace maps the whole range of user ids."""
    first, count = users
    with open("/proc/self/uid_map") as uid_map:
        rows = [[int(each) for each in line.split()] for line in uid_map]
    return any(start <= first and first + count <= start + length for start, _, length in rows)


def _may_change_users() -> bool:
    """Returns whether this process has CAP_SETUID, CAP_SETGID and CAP_SETPCAP."""
    with open("/proc/self/status") as status:
        effective = next(int(line.split()[1], 16) for line in status if line.startswith("CapEff:"))
    return all(effective >> capability & 1 for capability in (6, 7, 8))


def facts(root: str, users: tuple[int, int] | None) -> dict[str, object]:
    """Returns the properties of this machine that confinement plans depend on.

    `root` is an empty directory; `users` is a range of user ids or None.
    """
    try:
        abi = landlock.version()
    except OSError:
        abi = 0
    is_root = os.geteuid() == 0 and _may_change_users()
    return {
        "landlock": abi,
        "isRoot": is_root,
        "usersMapped": is_root and users is not None and _is_mapped(users),
        "views": is_root and view.is_possible(root),
        "ownPaths": not is_root and own_paths.is_possible(root),
        "environmentPaths": environment_paths(),
    }


_listener = None


def own_listener() -> socket.socket | None:
    """Returns the listener of this process's local port, which other tenants cannot connect to.

    Returns None if the plan does not request one."""
    return _listener


def _listen() -> int:
    """Opens the listener and returns its port."""
    global _listener
    _listener = socket.create_server(("127.0.0.1", 0))
    return _listener.getsockname()[1]


class Tenancy:
    """The state that all tenants of this interpreter share. It is determined once, before the zygote forks."""

    def __init__(self, cgroups: list[str]) -> None:
        """Moves this process into the control groups, which its child processes inherit."""
        _join(cgroups)
        self._devices = [*DEVICES, *filter(os.path.exists, _ACCELERATORS)]
        self._read = [*_SYSTEM, *_resolver(), *environment_paths()]
        with open("/proc/sys/kernel/cap_last_cap") as last:
            self._capabilities = int(last.read()) + 1

    def enter(self, plan: dict) -> None:
        """Applies a confinement plan in the order of its steps. Raises OSError."""
        _join(plan["cgroups"])
        read = [*self._read, *plan["read"]]
        devices = [*self._devices, *filter(os.path.exists, plan["devices"])]
        if plan["view"] is not None:
            view.enter(plan["view"], read, [*plan["write"], *devices], plan["scratchBytes"], plan["links"])
        if plan["linksRoot"] is not None:
            own_paths.enter(plan["linksRoot"], plan["links"])
            self._drop(None, [])
        _limit(plan["limits"])
        if plan["dropsCapabilities"]:
            self._drop(plan["user"], plan["groups"])
        call("prctl", _PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
        if plan["landlock"] > 0:
            tcp = plan["tcp"]
            if plan["opensPort"]:
                port = _listen()
                tcp = None if tcp is None else [*tcp, port]
            rules = {
                "read": [*read, "/proc"],
                "write": [plan["scratch"], *plan["write"]],
                "devices": devices,
                "tcp": tcp,
            }
            landlock.tenant(plan["landlock"], rules).enter()
        _settle(plan["scratch"])

    def _drop(self, user: int | None, groups: list[int]) -> None:
        """Drops all capabilities permanently. If a user is given, changes to it with these supplementary groups."""
        for capability in range(self._capabilities):
            call("prctl", _PR_CAPBSET_DROP, capability, 0, 0, 0)
        if user is not None:
            os.setgroups(groups)
            os.setresgid(user, user, user)
            os.setresuid(user, user, user)
            # Without this setting, the process's files in /proc would belong to root.
            call("prctl", _PR_SET_DUMPABLE, 1, 0, 0, 0)
        header = struct.pack("=Ii", _CAPABILITY_VERSION_3, 0)
        call("capset", header, bytes(24))


def _join(cgroups: list[str]) -> None:
    for path in cgroups:
        with open(path, "w") as processes:
            processes.write("0")


def _limit(limits: dict[str, int]) -> None:
    """Sets resource limits by name. A lower existing limit is kept."""
    for name, value in limits.items():
        which = getattr(resource, name)
        hard = resource.getrlimit(which)[1]
        value = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(which, (value, value))


def _settle(scratch: str) -> None:
    """Sets the environment variables for directories in which programs write."""
    os.chdir(scratch)
    os.environ["HOME"] = os.environ["TMPDIR"] = scratch
    # Set for programs that query the name of their user.
    os.environ["USER"] = os.environ["LOGNAME"] = "tenant"
    for name in ("XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR"):
        os.environ.pop(name, None)
    if "tempfile" in sys.modules:
        sys.modules["tempfile"].tempdir = None


def main() -> None:
    """Runs a tenant's own program, `tenant.py PLAN COMMAND...`. The plan is applied before the program's first instruction."""
    plan = json.loads(sys.argv[1])
    # This mark means that the program belongs to no family, so that the server can find processes which it leaves running. The marks of the
    # program's workers are marks of families, which are lower.
    resource.setrlimit(resource.RLIMIT_RTTIME, (NO_FAMILY, NO_FAMILY))
    Tenancy([]).enter(plan)
    os.execv(sys.argv[2], sys.argv[2:])
