"""Level `device`: the accelerator computes what the CPU computes in double precision. `cpu` exercises the same code there."""

from __future__ import annotations

import copy
import importlib
import os
import platform
import shutil
from typing import Any

from accel_env.smoke.imports import load_torch, relative
from accel_env.smoke.verdict import Answer, Context, FailedError, SkippedError, near

KINDS = ("cuda", "xpu", "hpu")
_DRIVERS = ("/proc/driver/nvidia/version", *(f"/sys/module/{name}/version" for name in ("amdgpu", "xe", "habanalabs")))
_MIB = 1 << 20
# Relative errors: of sums over 256 products in the type, and of a softmax over them.
TOLERANCE = {"float32": 1e-5, "float16": 2e-3, "bfloat16": 1e-2}
ATTENTION = {"float32": 1e-5, "float16": 3e-3, "bfloat16": 2e-2}


def part(torch: Any, kind: str) -> Any:
    """torch.cuda, torch.xpu or torch.hpu; None where this torch has none."""
    if kind == "hpu":
        try:
            importlib.import_module("habana_frameworks.torch.core")
        except ImportError:
            return None
    return getattr(torch, kind, None)


def device_of(context: Context) -> tuple[Any, str]:
    """(torch, device): the one asked for, else the first that this torch sees. FailedError where there is none."""
    torch = load_torch()
    if context.device == "cpu":
        return torch, "cpu"
    kinds = (context.device,) if context.device else KINDS
    for kind in kinds:
        module = part(torch, kind)
        if module is not None and module.is_available():
            return torch, kind
    raise FailedError(f"torch {torch.__version__} sees no device ({' or '.join(kinds)}){_why(torch, kinds)}")


def _why(torch: Any, kinds: tuple[str, ...]) -> str:
    """What torch says when it is made to look."""
    for kind in kinds:
        module = part(torch, kind)
        if module is not None and hasattr(module, "init"):
            try:
                module.init()
            except Exception as problem:
                return f": {problem}"
    return ""


def count_of(torch: Any, device: str) -> int:
    """How many of the devices there are."""
    return 1 if device == "cpu" else int(part(torch, device).device_count())


def driver(context: Context) -> Answer:
    """The driver is seen, and the device is the plan's."""
    torch, device = device_of(context)
    facts: dict[str, Any] = {"device": device, "count": count_of(torch, device), "torch": str(torch.__version__)}
    if device == "cpu":
        return "the CPU, as asked; no driver is looked at", {**facts, "name": platform.processor() or platform.machine()}
    properties = part(torch, device).get_device_properties(0)
    facts["name"] = str(getattr(properties, "name", part(torch, device).get_device_name(0)))
    facts["arch"] = arch_of(torch, device, properties)
    facts["memory_mib"] = int(getattr(properties, "total_memory", 0)) // _MIB
    facts["driver"] = str(getattr(properties, "driver_version", "")) or _driver_text()
    wanted = [str(arch) for arch in context.expect.get("devices", ())]
    if facts["arch"] and wanted and facts["arch"] not in wanted:
        raise FailedError(f"the device is {facts['name']} ({facts['arch']}), the plan is for {', '.join(dict.fromkeys(wanted))}")
    return f"{facts['count']} x {facts['name']} ({facts['arch'] or device}), driver {facts['driver'] or 'unknown'}", facts


def arch_of(torch: Any, device: str, properties: Any) -> str:
    """The architecture as the matrix spells it; empty where torch does not tell."""
    if device != "cuda":
        return ""
    gfx = str(getattr(properties, "gcnArchName", "")).partition(":")[0]
    if getattr(torch.version, "hip", None):
        return gfx
    return f"sm_{properties.major}{properties.minor}"


def _driver_text() -> str:
    for path in _DRIVERS:
        try:
            with open(path, encoding="utf-8", errors="replace") as stream:
                line = stream.readline().strip()
        except OSError:
            continue
        numbers = [word for word in line.split() if word[:1].isdigit() and "." in word]
        return numbers[0] if numbers else line
    return ""


def tensor(context: Context) -> Answer:
    """Numbers go to the device, are changed there, and come back exact, from every device."""
    torch, device = device_of(context)
    count = count_of(torch, device)
    for number in range(count):
        place = device if device == "cpu" else f"{device}:{number}"
        back = (torch.arange(1000, dtype=torch.int64).to(place) * 2 + 1).to("cpu")
        if back.tolist() != list(range(1, 2001, 2)):
            raise FailedError(f"a thousand numbers came back from {place} changed")
    return f"a thousand numbers went to {count} device(s) and came back", {}


def half_of(torch: Any, device: str) -> Any:
    """The 16-bit type for this device: bfloat16 where it computes in it."""
    if device == "cuda" and not getattr(torch.version, "hip", None) and torch.cuda.get_device_capability() < (8, 0):
        return torch.float16
    return torch.bfloat16


def product(context: Context, dtype_name: str) -> Answer:
    """A product of matrices in one type against float64 on the CPU."""
    torch, device = device_of(context)
    dtype = half_of(torch, device) if dtype_name == "half" else getattr(torch, dtype_name)
    name = str(dtype).partition(".")[2]
    if device == "cuda":
        torch.backends.cuda.matmul.allow_tf32 = False
    torch.manual_seed(0)
    a, b = torch.randn(256, 256).to(dtype), torch.randn(256, 256).to(dtype)
    error = relative(torch, a.to(device) @ b.to(device), a.double() @ b.double())
    return near(f"matmul in {name}", error, TOLERANCE[name]), {"dtype": name}


def matmul_single(context: Context) -> Answer:
    """A product in float32."""
    return product(context, "float32")


def matmul_half(context: Context) -> Answer:
    """A product in bfloat16, in float16 where the device has no bfloat16."""
    return product(context, "half")


def backward(context: Context) -> Answer:
    """Gradients of a small network against the same network in float64 on the CPU."""
    torch, device = device_of(context)
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.GELU(), torch.nn.LayerNorm(64), torch.nn.Linear(64, 8))
    x = torch.randn(16, 32)
    grads: list[Any] = []
    for place, dtype in ((device, torch.float32), ("cpu", torch.float64)):
        network = copy.deepcopy(model).to(place, dtype)
        network(x.to(place, dtype)).square().mean().backward()
        grads.append([weight.grad.detach().to("cpu", torch.float64) for weight in network.parameters()])
    worst = max(relative(torch, got, grads[1][place]) for place, got in enumerate(grads[0]))
    return near("worst gradient", worst, 1e-3), {}


def compiler_for(device: str) -> str:
    """The compiler that code made at run time is built with; empty where there is none."""
    names = (os.environ.get("CXX"), "g++", "clang++") if device == "cpu" else (os.environ.get("CC"), "gcc", "cc", "clang")
    return next((name for name in names if name and shutil.which(name)), "")


def compiled(context: Context) -> Answer:
    """torch.compile gives what eager gives. SkippedError without the C compiler that it needs."""
    os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")  # one small function: workers would only take time to start
    torch, device = device_of(context)
    compiler = compiler_for(device)
    if not compiler:
        what = f"a {'C++' if device == 'cpu' else 'C'} compiler, and there is none"
        if context.expect.get("compiles"):
            raise FailedError(f"what the plan picks needs {what}")
        raise SkippedError(f"torch.compile needs {what}")

    def run(x: Any) -> Any:
        return torch.nn.functional.silu(x * 2 + 1).sum(dim=-1)

    torch.manual_seed(0)
    x = torch.randn(64, 128)
    got = torch.compile(run)(x.to(device))
    return near("torch.compile against eager", relative(torch, got, run(x.double())), 1e-5), {}


def memory(context: Context) -> Answer:
    """A quarter GiB is given, holds what is written to it, and is given back."""
    torch, device = device_of(context)
    module = part(torch, device) if device != "cpu" else None
    block = torch.full((64 * _MIB,), 3, dtype=torch.int32, device=device)
    total = int(block.sum(dtype=torch.int64))
    held = int(module.memory_allocated()) // _MIB if module is not None and hasattr(module, "memory_allocated") else 256
    del block
    if total != 3 * 64 * _MIB:
        raise FailedError(f"256 MiB of threes sum up to {total}, not to {3 * 64 * _MIB}")
    facts: dict[str, Any] = {"allocated_mib": held}
    if module is not None and hasattr(module, "mem_get_info"):
        free, whole = module.mem_get_info()
        facts.update(free_mib=int(free) // _MIB, total_mib=int(whole) // _MIB)
    return f"256 MiB written and read{', ' + str(facts['free_mib']) + ' MiB free' if 'free_mib' in facts else ''}", facts
