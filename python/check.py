"""Installs the wheel and the sdist in fresh environments, and runs the tests there.

The tests run in an empty directory, so that they see the installed package and not this checkout: the wheel on the
oldest and the newest Python at hand, the sdist on the newest, with pyarrow alone. `make test-python`
calls it.
"""

import argparse
import glob
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
OLDEST = (3, 11)
WHEEL_BYTES_MAX = 6_000_000
TEST_SECONDS_MAX = 180
# Of the extra `client`.
CLIENT = "aiohttp>=3.12,<4"
# The libraries that tests use or compare with. Without the second group, tests of these are skipped.
ALWAYS = ["pytest==9.2.0", "xxhash>=3.5,<4"]
LIBRARIES = [
    "pyarrow>=20",
    "polars>=1.30",
    "pandas>=2.3",
    "duckdb>=1.3",
    "numpy>=2",
    "datasketch==2.0.0",
    "psutil>=7,<8",
    CLIENT,
    "PyYAML>=6,<7",
    "trustme>=1.2,<2",
]


def run(*command, **options):
    subprocess.run([str(part) for part in command], check=True, **options)


def version_of(python):
    code = "import sys, venv, ensurepip; print(sys.implementation.name, sys.version_info[0], sys.version_info[1])"
    made = subprocess.run([python, "-c", code], capture_output=True, text=True, check=False)
    name, *version = made.stdout.split() or [""]
    return tuple(map(int, version)) if name == "cpython" else None


def pythons():
    """Returns the oldest and the newest CPython that the package supports, as {version: path}."""
    names = ["python3", *(f"python3.{minor}" for minor in range(OLDEST[1], 30))]
    found = [path for path in map(shutil.which, names) if path]
    home = os.environ.get("PYENV_ROOT", os.path.expanduser("~/.pyenv"))
    found += sorted(glob.glob(f"{home}/versions/*/bin/python"))
    known = {}
    for path in found:
        version = version_of(path)
        if version and version >= OLDEST:
            known.setdefault(version, path)
    if not known:
        sys.exit("python/check.py: install CPython 3.11 or newer, with venv")
    return {version: known[version] for version in (min(known), max(known))}


def only(folder, pattern):
    files = list(Path(folder).glob(pattern))
    if len(files) != 1:
        sys.exit(f"{folder}: expected one {pattern}, found {[file.name for file in files]}")
    return files[0]


def environment(folder, python):
    run(python, "-m", "venv", folder)
    return folder / "bin/python"


def install(python, *what, **options):
    run(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *what, **options)


def check(where, python, package, libraries, with_server):
    """Installs a package in a fresh environment, and runs the tests in an empty directory."""
    where.mkdir()
    inside = environment(where / "venv", python)
    # The package alone: it needs nothing.
    install(inside, "--no-index", package)
    install(inside, *ALWAYS, *libraries)
    shutil.copytree(HERE / "tests", where / "tests", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "crates/hapax-core/tests/vectors.json", where / "tests")
    shutil.copy(ROOT / "docs/python.md", where / "tests")
    shutil.copy(ROOT / "openapi.yaml", where / "tests")
    shutil.copy(ROOT / "docs/load.md", where / "tests")
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    if not with_server:
        clean.pop("HAPAX_BINARY", None)
    run(
        inside,
        "-B",
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "--rootdir",
        where,
        "--durations=6",
        # A test that hangs ends the run, and every thread says where it is.
        "-o",
        f"faulthandler_timeout={TEST_SECONDS_MAX}",
        "-o",
        "faulthandler_exit_on_timeout=true",
        "tests",
        cwd=where,
        env=clean,
    )


def lint(where, tools, wheel):
    """Checks the style, the types, and that the stubs have what the module has."""
    run(tools / "ruff", "check", "--quiet", HERE)
    run(tools / "ruff", "format", "--check", "--quiet", HERE)
    where.mkdir()
    inside = environment(where / "venv", tools / "python")
    install(inside, "--no-index", wheel)
    install(inside, "mypy==2.4.1", CLIENT)
    config = HERE / "pyproject.toml"
    # In this order, because mypy does not look at files of installed packages.
    run(inside, "-m", "mypy", "--config-file", config, "--cache-dir", os.devnull, "pyhapax", cwd=HERE)
    # Before Python 3.12 the methods of the buffer protocol have no names. The client has no stubs.
    allowed = where / "allowed"
    allowed.write_text("pyhapax\\..*\\.__(release_)?buffer__\npyhapax\\.client\\..*\n", encoding="utf-8")
    stubtest = [inside, "-m", "mypy.stubtest", "pyhapax", "--ignore-missing-stub"]
    run(*stubtest, "--allowlist", allowed, "--ignore-unused-allowlist", cwd=where)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--packages", type=Path, required=True, help="the directory of the wheel and the sdist")
    parser.add_argument(
        "--tools", type=Path, required=True, help="the bin directory of an environment with maturin and ruff"
    )
    options = parser.parse_args()
    packages, tools = options.packages.absolute(), options.tools.absolute()
    wheel, sdist = only(packages, "*.whl"), only(packages, "*.tar.gz")
    size = wheel.stat().st_size
    if size >= WHEEL_BYTES_MAX:
        sys.exit(f"{wheel.name} has {size} bytes; it must have fewer than {WHEEL_BYTES_MAX}")
    found = pythons()
    newest = found[max(found)]
    with tempfile.TemporaryDirectory(prefix="pyhapax-") as folder:
        where = Path(folder)
        lint(where / "lint", tools, wheel)
        # Built from the sdist alone, away from this checkout. The target directory has the compiled dependencies.
        run(tools / "python", "-m", "pip", "wheel", "--quiet", "--disable-pip-version-check", "--no-deps",
            "--no-build-isolation", "--wheel-dir", where / "of-sdist", sdist, cwd=where,
            env={**os.environ, "PATH": f"{tools}{os.pathsep}{os.environ['PATH']}",
                 "CARGO_TARGET_DIR": os.environ.get("CARGO_TARGET_DIR", str(ROOT / "target"))})  # fmt: skip
        again = only(where / "of-sdist", "*.whl")
        jobs = [("newest-of-sdist", newest, again, LIBRARIES[:1])]
        jobs += [(".".join(map(str, version)), python, wheel, LIBRARIES) for version, python in found.items()]
        for name, python, package, libraries in jobs:
            print(f"check: {package.name} on {name}", flush=True)
            check(where / name, python, package, libraries, with_server=python == found[min(found)])
    print(f"check: {wheel.name}, {size:,} bytes, on {', '.join('.'.join(map(str, v)) for v in found)}")


main()
