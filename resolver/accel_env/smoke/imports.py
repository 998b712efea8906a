"""Level `import`: everything can be imported, and computes what it should on the CPU."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterable
from typing import Any

from accel_env.smoke.installed import distributions, import_names, name_of, native_files, versions
from accel_env.smoke.verdict import Answer, Check, Context, FailedError, SkippedError, near, of_driver, some

_ALONE = 120.0  # seconds for one package
OTHERS = "import the others"
_REST = 300.0  # seconds for all packages without native code


def import_checks(expect: Any) -> list[Check]:
    """A check per package that has native code or that the plan picks, and one for all others."""
    alone: list[Check] = []
    rest: list[str] = []
    for distribution in distributions():
        name, modules = name_of(distribution), import_names(distribution)
        if modules and (name in expect.get("picks", ()) or native_files(distribution)):
            alone.append(_import_check(name, modules))
        else:
            rest += modules
    return [*alone, Check("import", OTHERS, _REST, _importer(rest))] if rest else alone


def import_check(name: str, expect: Any) -> Check | None:
    """The check of that name alone; None where there is none. Reading one package is quicker than reading all."""
    for distribution in distributions() if name != OTHERS else ():
        if name == f"import {name_of(distribution)}":
            return _import_check(name_of(distribution), import_names(distribution))
    return next((check for check in import_checks(expect) if check.name == name), None)


def _import_check(name: str, modules: list[str]) -> Check:
    return Check("import", f"import {name}", _ALONE, _importer(modules))


def _importer(modules: Iterable[str]) -> Callable[[Context], Answer]:
    names = list(modules)

    def run(context: Context) -> Answer:
        return import_all(names)

    return run


def import_all(names: list[str]) -> Answer:
    """Imports each; FailedError with what cannot be, SkippedError where only the driver's libraries are missing."""
    problems = {}
    driver = set()
    for name in names:
        print(f"importing {name}", flush=True)  # what a crash leaves behind
        problem = _problem(name)
        # Imports change a process for those after them (setuptools and distutils): a fault is one that a fresh process has too.
        if problem and (len(names) == 1 or _fails_alone(name)):
            library = of_driver(problem)
            if library:
                driver.add(library)
            else:
                problems[name] = problem
    if problems:
        lines = [f"{name}: {problem}" for name, problem in problems.items()]
        raise FailedError(f"{len(problems)} of {len(names)} modules cannot be imported: {some(lines, 3)}")
    if driver:
        raise SkippedError(f"needs the driver, which is not here: {', '.join(sorted(driver))}")
    return (names[0] if len(names) == 1 else f"{len(names)} modules") + " imported", {}


def _problem(name: str) -> str:
    """What an import raises, as `Class: text`; empty when it succeeds."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            importlib.import_module(name)
    except BaseException as problem:
        return f"{type(problem).__name__}: {problem}"
    return ""


def _fails_alone(name: str) -> bool:
    line = [sys.executable, "-W", "ignore", "-c", f"import {name}"]
    return subprocess.run(line, stdin=subprocess.DEVNULL, capture_output=True, check=False).returncode != 0


def load_torch() -> Any:
    """The module torch. SkippedError where it is not installed."""
    if "torch" not in versions():
        raise SkippedError("torch is not installed")
    return importlib.import_module("torch")


def relative(torch: Any, got: Any, want: Any) -> float:
    """The error of `got` against the float64 `want`, relative to its size."""
    there = got.detach().to("cpu", torch.float64)
    return float(torch.linalg.vector_norm(there - want) / torch.linalg.vector_norm(want).clamp_min(1e-30))


def torch_maths(context: Context) -> Answer:
    """Products, a solution and a gradient on the CPU against sums written out in Python."""
    torch = load_torch()
    torch.manual_seed(0)
    a, b = torch.randn(7, 5), torch.randn(5, 3)
    rows, columns = a.tolist(), b.t().tolist()
    want = torch.tensor([[sum(map(float.__mul__, row, column)) for column in columns] for row in rows], dtype=torch.float64)
    told = [near("matmul", relative(torch, a @ b, want), 1e-5)]
    square = torch.randn(6, 6, dtype=torch.float64) + 6 * torch.eye(6, dtype=torch.float64)
    x = torch.linalg.solve(square, torch.ones(6, dtype=torch.float64))
    told.append(near("solve", relative(torch, square @ x, torch.ones(6, dtype=torch.float64)), 1e-10))
    weight = torch.randn(5, requires_grad=True)
    (weight.sin() ** 2).sum().backward()
    told.append(near("gradient", relative(torch, weight.grad, torch.sin(2 * weight.detach().double())), 1e-5))
    return "; ".join(told), {"torch": str(torch.__version__)}


def numpy_bridge(context: Context) -> Answer:
    """torch and numpy hand arrays to each other: they were built for one numpy."""
    torch = load_torch()
    if "numpy" not in versions():
        raise SkippedError("numpy is not installed")
    numpy = importlib.import_module("numpy")
    there = torch.arange(6, dtype=torch.float32).reshape(2, 3)
    back = torch.from_numpy(there.numpy() + numpy.float32(1))
    if back.tolist() != [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]:
        raise FailedError(f"six numbers came back from numpy as {back.tolist()}")
    return f"torch {torch.__version__} and numpy {numpy.__version__} share arrays", {}


def transformers_forward(context: Context) -> Answer:
    """A tiny Llama with random weights: finite logits of the right shape, the same twice, and gradients."""
    torch = load_torch()
    if "transformers" not in versions():
        raise SkippedError("transformers is not installed")
    os.environ.update({"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "HF_HOME": tempfile.mkdtemp()})
    transformers = importlib.import_module("transformers")
    torch.manual_seed(0)
    shape = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4}
    model = transformers.LlamaForCausalLM(transformers.LlamaConfig(vocab_size=96, num_key_value_heads=2, **shape)).eval()
    tokens = torch.arange(12).reshape(2, 6)
    with torch.no_grad():
        first, second = model(tokens).logits, model(tokens).logits
    if tuple(first.shape) != (2, 6, 96) or not bool(torch.isfinite(first).all()):
        raise FailedError(f"logits of shape {tuple(first.shape)}, {int((~torch.isfinite(first)).sum())} of them not finite")
    if not torch.equal(first, second):
        raise FailedError("the same tokens gave two answers")
    loss = model(tokens, labels=tokens).loss
    loss.backward()
    lacking = [name for name, weight in model.named_parameters() if weight.grad is None]
    if lacking:
        raise FailedError(f"no gradient reached {some(lacking)}")
    facts = {"transformers": transformers.__version__}
    return f"a tiny Llama answers twice the same, loss {float(loss.detach()):.3f}, gradients everywhere", facts


def tokenizers_round_trip(context: Context) -> Answer:
    """A tokenizer learned here gives back what it was given."""
    if "tokenizers" not in versions():
        raise SkippedError("tokenizers is not installed")
    tokenizers = importlib.import_module("tokenizers")
    trainers, pre = importlib.import_module("tokenizers.trainers"), importlib.import_module("tokenizers.pre_tokenizers")
    decoders = importlib.import_module("tokenizers.decoders")
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE())
    tokenizer.pre_tokenizer, tokenizer.decoder = pre.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=300, initial_alphabet=pre.ByteLevel.alphabet(), show_progress=False)
    text = "smoke rises, smoke clears: naïve 烟"
    tokenizer.train_from_iterator([text] * 4, trainer)
    back = tokenizer.decode(tokenizer.encode(text).ids)
    if back != text:
        raise FailedError(f"{text!r} came back as {back!r}")
    return f"{len(text)} characters in {len(tokenizer.encode(text).ids)} tokens and back", {}
