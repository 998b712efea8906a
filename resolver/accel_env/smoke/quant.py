"""bitsandbytes: rounding to 8 and 4 bits and an 8-bit optimizer, on any device; the CPU's part is of level `import`."""

from __future__ import annotations

import importlib
import warnings
from typing import Any

from accel_env.smoke.imports import load_torch, relative
from accel_env.smoke.installed import versions
from accel_env.smoke.verdict import Answer, Context, FailedError, SkippedError, near

# What is lost is the rounding itself: normal numbers in blocks of 64, relative to their size.
EIGHT_BITS, FOUR_BITS, LINEAR = 0.02, 0.14, 0.2


def load_bitsandbytes() -> Any:
    """The module bitsandbytes. SkippedError where it is not installed."""
    if "bitsandbytes" not in versions():
        raise SkippedError("bitsandbytes is not installed")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return importlib.import_module("bitsandbytes")


def eight_bits(torch: Any, device: str) -> Answer:
    """Blocks of numbers to 8 bits and back, and a layer with 8-bit weights."""
    functional = load_bitsandbytes().functional
    torch.manual_seed(0)
    plain = torch.randn(256, 128)
    packed, state = functional.quantize_blockwise(plain.to(device), blocksize=64)
    back = functional.dequantize_blockwise(packed, state)
    if packed.element_size() != 1:
        raise FailedError(f"8-bit numbers take {packed.element_size()} bytes each")
    told = near("8-bit blocks", relative(torch, back, plain.double()), EIGHT_BITS)
    return told, {}


def four_bits(torch: Any, device: str) -> Answer:
    """Numbers to NF4 and back, and a layer with 4-bit weights against the plain one."""
    module = load_bitsandbytes()
    torch.manual_seed(0)
    plain = torch.randn(128, 256)
    packed, state = module.functional.quantize_4bit(plain.to(device), blocksize=64, quant_type="nf4")
    back = module.functional.dequantize_4bit(packed, state)
    told = [near("4-bit blocks", relative(torch, back, plain.double()), FOUR_BITS)]
    if packed.numel() * packed.element_size() * 2 != plain.numel():
        raise FailedError(f"{plain.numel()} numbers in 4 bits take {packed.numel() * packed.element_size()} bytes")
    layer = module.nn.Linear4bit(256, 128, bias=False, compute_dtype=torch.float32, quant_type="nf4")
    layer.weight = module.nn.Params4bit(plain, requires_grad=False, quant_type="nf4")
    layer = layer.to(device)
    x = torch.randn(4, 256)
    told.append(near("4-bit layer", relative(torch, layer(x.to(device)), x.double() @ plain.double().t()), LINEAR))
    return "; ".join(told), {}


def optimizer_step(torch: Any, device: str) -> Answer:
    """Adam with 8-bit state beside torch's own: the same way down."""
    module = load_bitsandbytes()
    torch.manual_seed(0)
    start = torch.randn(64, 128)
    ends = {}
    for name, factory in (("8-bit", module.optim.Adam8bit), ("plain", torch.optim.Adam)):
        weight = torch.nn.Parameter(start.clone().to(device))
        # 64 x 128 numbers: smaller ones keep 32-bit state.
        optimizer = factory([weight], lr=0.05)
        for _ in range(10):
            optimizer.zero_grad()
            (weight**2).sum().backward()
            optimizer.step()
        ends[name] = weight.detach()
    if float((ends["8-bit"] ** 2).sum()) >= float((start**2).sum()):
        raise FailedError("ten steps of Adam with 8-bit state went up, not down")
    return near("Adam8bit against Adam", relative(torch, ends["8-bit"], ends["plain"].to("cpu", torch.float64)), 0.05), {}


def bitsandbytes_cpu(context: Context) -> Answer:
    """8-bit and 4-bit rounding on the CPU."""
    module, torch = load_bitsandbytes(), load_torch()
    told = [eight_bits(torch, "cpu")[0], four_bits(torch, "cpu")[0]]
    return "; ".join(told), {"bitsandbytes": module.__version__}
