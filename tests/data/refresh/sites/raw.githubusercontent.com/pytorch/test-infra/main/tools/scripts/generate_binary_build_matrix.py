PYTHON_ARCHES_DICT = {"nightly": ["3.12"], "test": ["3.12"], "release": ["3.12", "3.13", "3.14", "3.14t"]}
CUDA_ARCHES_DICT = {"nightly": ["13.0"], "test": ["12.6", "13.0"], "release": ["12.6", "13.0"]}
ROCM_ARCHES_DICT = {"nightly": ["7.2"], "test": ["7.2"], "release": ["6.3", "7.2"]}
CURRENT_CANDIDATE_VERSION = "2.15.0"
CURRENT_STABLE_VERSION = "2.14.1"
CURRENT_VERSION = CURRENT_STABLE_VERSION
raise SystemExit("this is data and must never run")
