"""Level `device`: what fast kernels compute: Triton, attention, bitsandbytes, and the exchange between devices."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import tempfile
from typing import Any

from accel_env.smoke.device import ATTENTION, compiler_for, count_of, device_of, half_of
from accel_env.smoke.imports import relative
from accel_env.smoke.installed import versions
from accel_env.smoke.quant import eight_bits, four_bits, load_bitsandbytes, optimizer_step
from accel_env.smoke.verdict import Answer, Context, FailedError, SkippedError, near

# Triton reads a kernel from its file; workers of a group are processes of their own.
KERNEL = """
import triton
import triton.language as tl


@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at, mask=at < n) + tl.load(y + at, mask=at < n), mask=at < n)
"""
WORKER = """
import sys
import torch
import torch.distributed as dist

rank, world, device, path = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4]
if device == "hpu":
    import habana_frameworks.torch.core
    import habana_frameworks.torch.distributed.hccl
place = device if device in ("cpu", "hpu") else f"{device}:{rank}"
backend = {"cuda": "nccl", "xpu": "xccl", "hpu": "hccl"}.get(device, "gloo")
dist.init_process_group(backend, init_method=f"file://{path}", rank=rank, world_size=world)
x = torch.full((1024,), float(rank + 1), device=place)
dist.all_reduce(x)
found = sorted(set(x.cpu().tolist()))
assert found == [world * (world + 1) / 2], f"rank {rank} holds {found[:4]}"
dist.destroy_process_group()
"""


def triton_kernel(context: Context) -> Answer:
    """A kernel of our own, compiled here and run on the device."""
    torch, device = device_of(context)
    if device not in ("cuda", "xpu"):
        raise SkippedError(f"no Triton for {device}")
    if not versions().keys() & {"triton", "triton-rocm", "pytorch-triton-rocm", "triton-xpu", "pytorch-triton-xpu"}:
        raise SkippedError("triton is not installed")
    if not compiler_for(device):
        raise SkippedError("Triton builds its launcher with a C compiler, and there is none")
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "smoke_kernel.py")
        with open(path, "w", encoding="utf-8") as stream:
            stream.write(KERNEL)
        spec = importlib.util.spec_from_file_location("smoke_kernel", path)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        torch.manual_seed(0)
        x, y = torch.randn(5000), torch.randn(5000)
        out = torch.empty(5000, device=device)
        module.add[(5,)](x.to(device), y.to(device), out, 5000, BLOCK=1024)
        return near("sum by a Triton kernel", relative(torch, out, x.double() + y.double()), 1e-6), {}


def exact_attention(torch: Any, q: Any, k: Any, v: Any, causal: bool) -> Any:
    """Attention written out in float64 on the CPU; heads before positions."""
    q, k, v = (one.detach().to("cpu", torch.float64) for one in (q, k, v))
    scores = q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5
    if causal:
        scores = scores.masked_fill(torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1), float("-inf"))
    return scores.softmax(-1) @ v


def sdpa(context: Context) -> Answer:
    """scaled_dot_product_attention against the formula, plain and causal, in 32 and 16 bits."""
    torch, device = device_of(context)
    torch.manual_seed(0)
    told = []
    for dtype in (torch.float32, half_of(torch, device)):
        q, k, v = (torch.randn(2, 4, 128, 64).to(dtype) for _ in range(3))
        name = str(dtype).partition(".")[2]
        for causal in (False, True):
            got = torch.nn.functional.scaled_dot_product_attention(q.to(device), k.to(device), v.to(device), is_causal=causal)
            error = relative(torch, got, exact_attention(torch, q, k, v, causal))
            told.append(near(f"{name}{' causal' if causal else ''}", error, ATTENTION[name]))
    return "; ".join(told), {}


def flash_attention(context: Context) -> Answer:
    """flash_attn_func against the formula, plain and causal."""
    torch, device = device_of(context)
    if "flash-attn" not in versions():
        raise SkippedError("flash-attn is not installed")
    if device != "cuda":
        raise SkippedError(f"flash-attn does not run on {device}")
    function = importlib.import_module("flash_attn").flash_attn_func
    torch.manual_seed(0)
    dtype = half_of(torch, device)
    q, k, v = (torch.randn(2, 128, 4, 64, device=device).to(dtype) for _ in range(3))
    turned = [one.transpose(1, 2) for one in (q, k, v)]
    told = []
    for causal in (False, True):
        want = exact_attention(torch, turned[0], turned[1], turned[2], causal).transpose(1, 2)
        error = relative(torch, function(q, k, v, causal=causal), want)
        told.append(near("causal" if causal else "plain", error, ATTENTION[str(dtype).partition(".")[2]]))
    return "; ".join(told), {}


def quant_eight(context: Context) -> Answer:
    """bitsandbytes in 8 bits."""
    load_bitsandbytes()
    return eight_bits(*device_of(context))


def quant_four(context: Context) -> Answer:
    """bitsandbytes in 4 bits."""
    load_bitsandbytes()
    return four_bits(*device_of(context))


def quant_optimizer(context: Context) -> Answer:
    """A step of an 8-bit optimizer."""
    load_bitsandbytes()
    torch, device = device_of(context)
    try:
        return optimizer_step(torch, device)
    except (NotImplementedError, RuntimeError) as problem:
        if device == "cpu":
            raise SkippedError(f"no 8-bit optimizer on the CPU: {problem}") from None
        raise


def all_reduce(context: Context) -> Answer:
    """All devices add up their ranks; on the CPU two processes do."""
    torch, device = device_of(context)
    world = 2 if device == "cpu" else count_of(torch, device)
    if world < 2:
        raise SkippedError("one device alone")
    environment = {**os.environ, **({"GLOO_SOCKET_IFNAME": "lo"} if device == "cpu" else {})}
    with tempfile.TemporaryDirectory() as folder:
        meeting = os.path.join(folder, "meeting")
        words = [[sys.executable, "-c", WORKER, str(rank), str(world), device, meeting] for rank in range(world)]
        # In files, so that no worker waits for a full pipe while another waits for it.
        logs = [open(os.path.join(folder, f"log{rank}"), "w+", encoding="utf-8") for rank in range(world)]  # noqa: SIM115
        workers = [
            subprocess.Popen(line, env=environment, stdout=logs[rank], stderr=logs[rank]) for rank, line in enumerate(words)
        ]
        codes = [worker.wait() for worker in workers]
        last = []
        for log in logs:
            log.seek(0)
            last.append((log.read().strip().splitlines() or [""])[-1])
            log.close()
    wrong = [f"rank {rank}: {last[rank] or f'status {code}'}" for rank, code in enumerate(codes) if code]
    if wrong:
        raise FailedError(f"{len(wrong)} of {world} ranks failed: {'; '.join(wrong[:2])}")
    return f"{world} ranks added up", {"ranks": world}
