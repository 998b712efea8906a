"""Writes `matrix/` (a small one) and `sites/` (trimmed copies of what the sites answer) anew; run by hand after a change here."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

HERE = Path(__file__).parent
CHECKED = 'grade: vendor, checked: "2026-11-30"'


def sha(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def put(path: str, text: str) -> None:
    target = HERE / path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(text)


MATRIX = {
    "matrix.yaml": 'schema: accel-env/matrix/1\nversion: "2026.11.30"\n',
    "python.yaml": f"""\
schema: accel-env/python/1
facts:
  order: {{text: an order, source: this test, {CHECKED}}}
pythons:
- {{version: "3.12", status: bugfix, fact: order}}
- {{version: "3.13", status: bugfix, fact: order}}
- {{version: "3.14", status: bugfix, fact: order}}
- {{version: "3.14t", status: bugfix, fact: order}}
- {{version: "3.11", status: security, fact: order}}
""",
    "profiles.yaml": "schema: accel-env/profiles/1\nprofiles: {}\n",
    "conflicts.yaml": "schema: accel-env/conflicts/1\nconflicts: []\n",
    "indexes.yaml": f"""\
schema: accel-env/indexes/1
facts:
  site: {{text: where it is, source: this test, {CHECKED}}}
indexes:
  pytorch: {{url: "https://download.pytorch.org/whl", kind: simple, fact: site}}
  radeon: {{url: "https://repo.radeon.com/rocm/manylinux", kind: flat, fact: site}}
  flash-attn: {{url: "https://github.com/Dao-AILab/flash-attention/releases/download/{{tag}}/{{file}}", kind: asset, fact: site}}
  flash-attn-mjun0812: {{url: "https://github.com/mjun0812/x/releases/download/{{tag}}/{{file}}", kind: asset, fact: site}}
""",
    "devices/nvidia.yaml": f"""\
schema: accel-env/devices/1
vendor: nvidia
pci_vendor: "10de"
facts:
  row: {{text: a card, source: this test, {CHECKED}}}
devices:
- {{name: Tesla T4, arch: sm_75, pci: ["1eb8"], fact: row}}
""",
    "stacks/cuda.yaml": f"""\
schema: accel-env/stack/1
stack: cuda
vendor: nvidia
facts:
  floors: {{text: floors, source: this test, {CHECKED}}}
releases:
- {{version: "13.0", driver: {{linux: {{minor: "580"}}, fact: floors}}, fact: floors}}
- {{version: "12.6", driver: {{linux: {{minor: "525.60.13"}}, fact: floors}}, fact: floors}}
""",
    "stacks/rocm.yaml": f"""\
schema: accel-env/stack/1
stack: rocm
vendor: amd
# what a person wrote
facts:
  rows: {{text: releases, source: this test, {CHECKED}}}
releases:
- {{version: "7.2", driver: {{allows: [">=30.10,<31"], fact: rows}}, targets: [gfx942, gfx90a, gfx1100], fact: rows}}
- version: "6.3"   # the last good one for gfx906
  driver: {{allows: ["==6.3.*"], fact: rows}}
  targets: [gfx942, gfx90a, gfx908, gfx1100, gfx1030]
  fact: rows
""",
    "torch/2.14.1.yaml": f"""\
schema: accel-env/package/1
package: torch
module: torch
summary: tensors
facts:
  meta: {{text: a release, source: this test, {CHECKED}}}
releases:
- version: "2.14.1"
  date: "2026-09-30"
  requires_python: ">=3.11"
  requires: [filelock]
  fact: meta
  builds:
  - {{build: cu130, index: pypi, platforms: [linux_x86_64], stack: cuda-13.0, tags: [cp312, cp313],
     needs: {{arch: {{code: [sm_75, sm_90], fact: meta}}, libc: {{glibc: "2.28", fact: meta}}}}, fact: meta}}
  - {{build: cu126, index: "pytorch:cu126", platforms: [linux_x86_64], stack: cuda-12.6, tags: [cp312, cp313],
     needs: {{arch: {{code: [sm_70, sm_75], fact: meta}}, libc: {{glibc: "2.28", fact: meta}}}}, fact: meta}}
  - {{build: rocm7.2, index: "pytorch:rocm7.2", platforms: [linux_x86_64], stack: rocm-7.2, tags: [cp312],
     needs: {{published: {{unknown: true, fact: meta}}, arch: {{code: [gfx942], fact: meta}}}}, fact: meta}}
  - {{build: rocm7.2, variant: amd, index: "radeon:rocm-rel-7.2", platforms: [linux_x86_64], stack: rocm-7.2, tags: [cp312],
     rank: 1, needs: {{arch: {{code: [gfx942], fact: meta}}}}, fact: meta}}
""",
    "packages/numpy.yaml": f"""\
# A hand-written word that must stay.
schema: accel-env/package/1
package: numpy
module: numpy
summary: arrays
facts:
  metadata: {{text: "a release, and its wheels", source: PyPI metadata of numpy 2.5.4, {CHECKED}}}
# between the facts and the releases
releases:
- version: "2.5.4"
  date: "2026-10-20"
  requires_python: ">=3.12"
  fact: metadata
  builds:
  - {{build: any, index: pypi, platforms: [linux_x86_64], tags: [cp312, cp313],
     needs: {{libc: {{glibc: "2.27", fact: metadata}}}}, fact: metadata}}
# the older series
- version: "2.4.6"
  date: "2026-05-18"
  requires_python: ">=3.11"
  fact: metadata
  builds:
  - {{build: any, index: pypi, platforms: [linux_x86_64], tags: [cp311, cp312], fact: metadata}}
""",
    "packages/flash-attn.yaml": f"""\
schema: accel-env/package/1
package: flash-attn
module: flash_attn
summary: attention kernels
facts:
  meta: {{text: wheels, source: this test, {CHECKED}}}
releases:
- version: "2.8.3"
  date: "2025-08-15"
  requires: [torch]
  fact: meta
  builds:
  - {{build: cu12torch2.8cxx11abiTRUE, index: flash-attn, tag: v2.8.3, platforms: [linux_x86_64], stack: cuda, tags: [cp312],
     needs: {{arch: {{code: [sm_80, sm_90], fact: meta}}}}, fact: meta}}
""",
    "images.yaml": f"""\
schema: accel-env/images/1
# which images there are
facts:
  py: {{text: "python:3.12-slim-bookworm of 2026-08-25", source: docker-library, {CHECKED}}}
  cuda: {{text: pinned by people, source: public files, grade: community, checked: "2026-11-30", doubt: index or not}}
images:
# Python on Debian
- ref: "python:3.12-slim-bookworm"
  digest: "sha256:{"1" * 64}"
  digests:
    linux_x86_64: "sha256:{"2" * 64}"
  python: "3.12"
  libc: "2.36"
  libstdcxx: "3.4.30"
  os: debian-12
  default: true
  fact: py
# NVIDIA
- {{ref: "nvidia/cuda:12.6.3-devel-ubuntu24.04", digest: "sha256:CUDA", libc: "2.39", libstdcxx: "3.4.33", os: ubuntu-24.04,
   stack: cuda-12.6, fact: cuda}}
- {{ref: "nvidia/cuda:12.6.1-devel-ubuntu24.04", libc: "2.39", os: ubuntu-24.04, stack: cuda-12.6, fact: cuda}}
""",
}

METADATA = "Metadata-Version: 2.4\nName: {}\nVersion: {}\nRequires-Python: >=3.12\n{}\n"


def wheel(name: str, version: str, tags: str, day: str, requires: tuple[str, ...] = (), **more: object) -> dict[str, object]:
    """A row of a PEP 691 page; its metadata file lies beside it."""
    file = f"{name}-{version}-{tags}.whl"
    text = METADATA.format(name, version, "\n".join(f"Requires-Dist: {one}" for one in requires))
    put(f"sites/files/{file}.metadata", text)
    return {
        "filename": file,
        "url": f"https://files/{file}",
        "hashes": {"sha256": sha(file)},
        "size": len(file),
        "requires-python": ">=3.12",
        "core-metadata": {"sha256": sha(text)},
        "upload-time": f"{day}T10:00:00Z",
        "yanked": False,
        **more,
    }


def page(name: str, *files: dict[str, object]) -> None:
    rows = {"meta": {"api-version": "1.1"}, "name": name, "files": list(files)}
    put(f"sites/pypi/simple/{name}/index.json", json.dumps(rows, indent=1) + "\n")


def pypi() -> dict[str, object]:
    """PyPI: numpy 2.5.5 and a late 2.4.7 are new, torch 2.15.0 is new and carries code that nobody has read."""
    many, mac = "manylinux_2_27_x86_64.manylinux_2_28_x86_64", "macosx_14_0_arm64"
    page(
        "numpy",
        *(wheel("numpy", "2.4.6", f"cp31{n}-cp31{n}-{many}", "2026-05-18") for n in (1, 2)),
        *(wheel("numpy", "2.5.4", f"cp31{n}-cp31{n}-{many}", "2026-10-20") for n in (2, 3)),
        wheel("numpy", "2.3.9", f"cp312-cp312-{many}", "2026-01-02"),
        wheel("numpy", "2.4.7", f"cp312-cp312-{many}", "2026-11-02"),
        wheel("numpy", "2.6.0rc1", f"cp312-cp312-{many}", "2026-11-20"),
        *(wheel("numpy", "2.5.5", f"cp31{n}-cp31{n}-{many}", "2026-11-15") for n in (2, 3)),
        wheel("numpy", "2.5.5", f"cp314-cp314t-{many}", "2026-11-15"),
        wheel("numpy", "2.5.5", f"cp314-cp314-{mac}", "2026-11-15"),
        wheel("numpy", "2.5.5", "cp312-cp312-musllinux_1_2_x86_64", "2026-11-15"),
        wheel("numpy", "2.5.5", "pp311-pypy311_pp73-manylinux_2_27_x86_64", "2026-11-15"),
        wheel("numpy", "2.5.6", f"cp312-cp312-{many}", "2026-11-16", yanked="broken"),
        {
            "filename": "numpy-2.5.5.tar.gz",
            "url": "https://files/numpy-2.5.5.tar.gz",
            "hashes": {"sha256": sha("s")},
            "upload-time": "2026-11-15T10:00:00Z",
            "yanked": False,
        },
    )
    known = wheel("torch", "2.14.1", "cp312-cp312-manylinux_2_28_x86_64", "2026-09-30", ("filelock",))
    needs = ("filelock", 'nvidia-cudnn-cu13==9.24.0.43; platform_system == "Linux"', 'optree>=0.13.0; extra == "optree"')
    page(
        "torch",
        known,
        wheel("torch", "2.14.1", "cp313-cp313-manylinux_2_28_x86_64", "2026-09-30", ("filelock",)),
        wheel("torch", "2.15.0", "cp312-cp312-manylinux_2_28_x86_64", "2026-10-28", needs),
        wheel("torch", "2.15.0", "cp312-cp312-win_amd64", "2026-10-28", ("filelock",)),
    )
    return {
        str(known["filename"]): {
            "grade": "vendor",
            "seen": 1,
            "sha256": sha(str(known["filename"])),
            "sources": ["PyPI simple index"],
        }
    }


def indexes() -> dict[str, object]:
    """download.pytorch.org as HTML (one file without hash), AMD's flat folder."""

    def link(file: str, hashed: bool = True) -> str:
        end = f"#sha256={sha(file)}" if hashed else ""
        return f'<a href="/whl/cu126/{file.replace("+", "%2B")}{end}" data-requires-python="&gt;=3.11">{file}</a><br/>'

    names = [f"torch-2.14.1+cu126-cp31{n}-cp31{n}-manylinux_2_28_x86_64.whl" for n in (2, 3)]
    more = [
        "torch-2.14.0+cu126-cp312-cp312-manylinux_2_28_x86_64.whl",
        "torch-2.15.0.dev20261001+cu126-cp312-cp312-manylinux_2_28_x86_64.whl",
        "torch-1.13.1+cu117-cp310-cp310-linux_x86_64.whl",
        "torch-2.14.1+cu126.with.pypi.cudnn-cp312-cp312-linux_x86_64.whl",
    ]
    links = [link(names[0]), link(names[1], False), *map(link, more)]
    put(
        "sites/download.pytorch.org/whl/cu126/torch/index.html",
        "<!DOCTYPE html>\n<html><body>\n" + "\n".join(links) + "\n</body></html>\n",
    )
    amd = "torch-2.14.1%2Brocm7.2.0.lw.git1-cp312-cp312-linux_x86_64.whl"
    put(
        "sites/repo.radeon.com/rocm/manylinux/rocm-rel-7.2/index.html",
        f'<html><a href="../">up</a><a href="{amd}">{amd}</a></html>\n',
    )
    return {names[0]: {"grade": "community", "seen": 2, "sha256": sha(names[0]), "sources": ["a/b:uv.lock@1", "c/d:uv.lock@2"]}}


def assets() -> dict[str, object]:
    """GitHub's API: one known asset, one new, one that GitHub has no digest of, one under two tags."""

    def row(name: str, hashed: bool = True) -> dict[str, object]:
        return {
            "name": name,
            "size": len(name),
            "digest": f"sha256:{sha(name)}" if hashed else None,
            "browser_download_url": f"https://github.com/x/{name}",
        }

    known = "flash_attn-2.8.3+cu12torch2.8cxx11abiTRUE-cp312-cp312-linux_x86_64.whl"
    new = "flash_attn-2.8.4+cu13torch2.14cxx11abiTRUE-cp312-cp312-linux_x86_64.whl"
    releases = [
        {
            "tag_name": "v2.8.4",
            "draft": False,
            "prerelease": False,
            "assets": [row(new), row("flash_attn_3-3.0.0-py3-none-any.whl"), {**row(known), "digest": "sha256:" + "9" * 64}],
        },
        {"tag_name": "v2.8.5.rc1", "draft": False, "prerelease": True, "assets": [row(new.replace("2.8.4", "2.8.5rc1"))]},
        {
            "tag_name": "v2.8.3",
            "draft": False,
            "prerelease": False,
            "assets": [row(known), row(known.replace("cp312", "cp313"), False)],
        },
    ]
    put(
        "sites/api.github.com/repos/Dao-AILab/flash-attention/releases@per_page=100&page=1", json.dumps(releases, indent=1) + "\n"
    )
    put("sites/api.github.com/repos/mjun0812/flash-attention-prebuild-wheels/releases@per_page=100&page=1", "[]\n")
    return {known: {"grade": "community", "seen": 1, "sha256": sha(known), "sources": ["scripts"], "tag": "v2.8.3"}}


def image(repository: str, tag: str, env: tuple[str, ...] = ()) -> str:
    """An index with one platform and an attestation; gives its digest."""
    base = f"sites/registry-1.docker.io/v2/{repository}"

    def blob(value: object, kind: str) -> str:
        text = json.dumps(value)
        put(f"{base}/{kind}/sha256:{sha(text)}", text)
        return f"sha256:{sha(text)}"

    config = blob({"created": "2026-11-20T01:02:03Z", "config": {"Env": ["PATH=/bin", *env], "Tag": tag}}, "blobs")
    manifest = blob({"schemaVersion": 2, "config": {"digest": config}, "layers": []}, "manifests")
    rows = [
        {"digest": manifest, "platform": {"os": "linux", "architecture": "amd64"}},
        {"digest": "sha256:" + "a" * 64, "platform": {"os": "unknown", "architecture": "unknown"}},
    ]
    text = json.dumps({"schemaVersion": 2, "manifests": rows})
    put(f"{base}/manifests/{tag}", text)
    return f"sha256:{sha(text)}"


def images() -> str:
    """Registries: a rebuilt python:3.12, a known CUDA image, an unpinned one, and new tags of both."""
    image("library/python", "3.12-slim-bookworm", ("PYTHON_VERSION=3.12.15",))
    image("library/python", "3.13-slim-bookworm", ("PYTHON_VERSION=3.13.11",))
    cuda = image("nvidia/cuda", "12.6.3-devel-ubuntu24.04")
    image("nvidia/cuda", "12.6.1-devel-ubuntu24.04")
    image("nvidia/cuda", "13.0.2-devel-ubuntu24.04")
    tags = {
        "library/python": ["3.12-slim-bookworm", "3.13-slim-bookworm", "3.11-slim-bookworm", "latest"],
        "nvidia/cuda": [
            "12.6.3-devel-ubuntu24.04",
            "12.6.1-devel-ubuntu24.04",
            "13.0.2-devel-ubuntu24.04",
            "13.0.2-base-ubuntu24.04",
        ],
    }
    for name, listed in tags.items():
        put(f"sites/registry-1.docker.io/v2/{name}/tags/list@n=1000", json.dumps({"name": name, "tags": listed}))
    return cuda


def tables() -> None:
    """Trimmed tables in the form of their sources."""
    raw = "sites/raw.githubusercontent.com"
    put(
        f"{raw}/pytorch/test-infra/main/tools/scripts/generate_binary_build_matrix.py",
        """\
PYTHON_ARCHES_DICT = {"nightly": ["3.12"], "test": ["3.12"], "release": ["3.12", "3.13", "3.14", "3.14t"]}
CUDA_ARCHES_DICT = {"nightly": ["13.0"], "test": ["12.6", "13.0"], "release": ["12.6", "13.0"]}
ROCM_ARCHES_DICT = {"nightly": ["7.2"], "test": ["7.2"], "release": ["6.3", "7.2"]}
CURRENT_CANDIDATE_VERSION = "2.15.0"
CURRENT_STABLE_VERSION = "2.14.1"
CURRENT_VERSION = CURRENT_STABLE_VERSION
raise SystemExit("this is data and must never run")
""",
    )
    put(
        f"{raw}/pytorch/pytorch/main/RELEASE.md",
        """\
# Releasing

| other | table |
| --- | --- |
| 1 | 2 |

## Release Compatibility Matrix

| PyTorch version | Python | C++ | Stable CUDA | Experimental CUDA | Stable ROCm |
| --- | --- | --- | --- | --- | --- |
| 2.15 | >=3.11 | C++20 | CUDA 13.0 (CUDNN 9.24.0.43) | -- | ROCm 7.2 |
| 2.14 | >=3.11, <=(3.14, 3.14t experimental) | C++20 | CUDA 12.6 (CUDNN 9.10.2.21), CUDA 13.0 (CUDNN 9.24.0.43) | -- | ROCm 7.2 |
| 2.13 | >=3.10, <=3.14 | C++20 | CUDA 12.6 (CUDNN 9.10.2.21) | CUDA 13.0 | ROCm 7.2 |

after
""",
    )
    put(
        f"{raw}/ROCm/ROCm/develop/docs/compatibility/compatibility-matrix-historical-6.0.csv",
        """\
ROCm Version,7.14.0,7.2.1,7.2.0,6.3.1,6.3.0
      :ref:`Operating systems & kernels <OS>`,Ubuntu 24.04.3,"Ubuntu 24.04.3, 22.04",Ubuntu 24.04.3,Ubuntu 24.04.2,Ubuntu 24.04.2
      ,.. _gpu-support:,,,,
      :doc:`GPU / LLVM target <reference/system-requirements>`,gfx1100,gfx1100,gfx1100,gfx1100,gfx1100
      ,gfx942 [#mi300]_,gfx942,gfx942,gfx942,gfx942
      ,,,,,
      :doc:`PyTorch <pytorch>`,"2.12, 2.11",2.9,2.9,2.4,2.4
      KMD & USER SPACE [#kfd]_,.. _kfd:,,,,
      KMD versions,"31.10, 30.30.x","30.30.x, 30.20.x","30.30.x, 30.20.x","6.3.x, 6.2.x","6.3.x, 6.2.x"
""",
    )


def artifacts(name: str, index: str, rows: dict[str, object]) -> None:
    body = ",\n".join(f"  {json.dumps(key)}: {json.dumps(row, sort_keys=True)}" for key, row in sorted(rows.items()))
    put(
        f"matrix/artifacts/{name}.json",
        f'{{"schema": "accel-env/artifacts/1", "index": "{index}",\n "source": "this test",\n "files": {{\n{body}\n }}}}\n',
    )


if __name__ == "__main__":
    artifacts("pypi", "pypi", pypi())
    artifacts("pytorch-cu126", "pytorch:cu126", indexes())
    artifacts("flash-attn", "flash-attn", assets())
    cuda_digest = images()
    tables()
    for file, text in MATRIX.items():
        put(f"matrix/{file}", text.replace("sha256:CUDA", cuda_digest))
