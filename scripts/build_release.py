"""Build wheel, sdist, SBOM and checksums into `dist`.

`python -m scripts.build_release [--wheel-only] [--twice]`

The build happens in a copy of what git tracks, together with the page that `make page` built, the
sample documents, and the graph of the embedded model that `make setup` built.
File dates are the commit's, so that the same commit gives the same bytes; `--twice` builds again
and compares.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import io
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = Path("app/api/static/page")
BUNDLE = Path("app/bundle")
MODEL = BUNDLE / "minilm"
SAMPLES = Path("data/sample_docs")
MOST_MODEL_BYTES = 60_000_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--wheel-only", action="store_true", help="without sdist, SBOM and checksums"
    )
    parser.add_argument("--twice", action="store_true", help="build again and compare every byte")
    arguments = parser.parse_args()
    out = ROOT / "dist"
    out.mkdir(exist_ok=True)
    for old in [*out.glob("*.whl"), *out.glob("*.tar.gz"), out / "SHA256SUMS"]:
        old.unlink(missing_ok=True)
    kinds = ("wheel",) if arguments.wheel_only else ("sdist", "wheel")
    digests = build(out, kinds)
    if arguments.twice:
        with tempfile.TemporaryDirectory() as again:
            if build(Path(again), kinds) != digests:
                raise SystemExit("two builds of the same commit differ")
    if not arguments.wheel_only:
        sbom(out)
        digests = {
            path.name: digest_of(path)
            for path in sorted(out.iterdir())
            if path.name != "SHA256SUMS"
        }
        (out / "SHA256SUMS").write_text(
            "".join(f"{digest}  {name}\n" for name, digest in digests.items()), encoding="utf-8"
        )
    for name in digests:
        print(f"dist/{name}  {(out / name).stat().st_size / 1e6:.1f} MB")


def build(out: Path, kinds: tuple[str, ...]) -> dict[str, str]:
    """Build in a fresh copy and return the SHA-256 of each file by its name."""
    with tempfile.TemporaryDirectory() as directory:
        tree = Path(directory) / "documind"
        stage(tree)
        date = int(git("log", "-1", "--format=%ct"))
        environment = {**os.environ, "SOURCE_DATE_EPOCH": str(date), "PYTHONHASHSEED": "0"}
        made = []
        for kind in kinds:
            hook = f"from setuptools import build_meta as b; print(b.build_{kind}({str(out)!r}))"
            done = subprocess.run(  # noqa: S603  # our own interpreter
                [sys.executable, "-c", hook],
                cwd=tree,
                env=environment,
                capture_output=True,
                text=True,
                check=False,
            )
            if done.returncode:
                raise SystemExit(
                    f"the {kind} could not be built:\n{done.stdout[-2000:]}{done.stderr[-2000:]}"
                )
            made.append(out / done.stdout.strip().splitlines()[-1])
            if kind == "sdist":
                normalise(made[-1], date)
    return {path.name: digest_of(path) for path in made}


def stage(tree: Path) -> None:
    """Copy tracked files, page, samples and model into a new tree, all of mode 644.

    Raises:
        SystemExit: The page was not built, or the model is larger than a wheel may carry.
    """
    if not (ROOT / PAGE / "index.html").is_file():
        raise SystemExit("the page is not built; it needs Node 20: run make page")
    tracked = git("ls-files", "-z")
    for name in filter(None, tracked.split("\0")):
        if name.startswith(("app/", "scripts/", "data/")) or "/" not in name:
            copy(ROOT / name, tree / name)
    size = (ROOT / MODEL / "int8.graph").stat().st_size
    if size > MOST_MODEL_BYTES:
        raise SystemExit(f"the embedded model takes {size} bytes, over {MOST_MODEL_BYTES}")
    for source, target in ((PAGE, PAGE), (SAMPLES, BUNDLE / "samples"), (MODEL, MODEL)):
        for path in sorted((ROOT / source).rglob("*")):
            if path.is_file():
                copy(path, tree / target / path.relative_to(ROOT / source))


def copy(source: Path, target: Path) -> None:
    """Copy bytes; not dates and modes, which differ from machine to machine."""
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target)
    target.chmod(0o644)


def git(*arguments: str) -> str:
    """Return what git says of this checkout."""
    done = subprocess.run(  # noqa: S603
        ["git", *arguments],  # noqa: S607
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return done.stdout


def normalise(path: Path, date: int) -> None:
    """Rewrite a tar.gz with one date, one owner and sorted names."""
    packed = io.BytesIO()
    with (
        tarfile.open(path) as old,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as new,
    ):
        for member in sorted(old.getmembers(), key=lambda one: one.name):
            member.mtime, member.uid, member.gid = date, 0, 0
            member.uname = member.gname = ""
            member.pax_headers = {}
            new.addfile(member, old.extractfile(member) if member.isfile() else None)
    with path.open("wb") as file, gzip.GzipFile("", "wb", fileobj=file, mtime=date) as zipped:
        zipped.write(packed.getvalue())


def sbom(out: Path) -> None:
    """Write everything that a release consists of, as CycloneDX."""
    tool = Path(sys.executable).with_name("cyclonedx-py")
    command = [
        str(tool),
        "requirements",
        "locks/runtime.lock",
        "--output-reproducible",
        "--of",
        "JSON",
        "-o",
        str(out / "sbom.json"),
    ]
    subprocess.run(command, cwd=ROOT, check=True)  # noqa: S603


def digest_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


if __name__ == "__main__":
    main()
