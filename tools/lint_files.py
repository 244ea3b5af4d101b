"""Checks files that no compiler reads: the Dockerfile, the compose file, workflows, CITATION.cff, the conda recipe.

Owns: the checker of each file. Threads: none (a developer's tool). Never: needs a network or a container engine; skips
a missing checker: it fails.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from rattler_build import PlatformConfig, RenderConfig, Stage0Recipe, VariantConfig

ROOT = Path(__file__).resolve().parent.parent
SCHEMAS = {
    "vendor.compose-spec": ["docker/compose.yaml"],
    "vendor.citation-file-format": ["CITATION.cff"],
    "vendor.dependabot": [".github/dependabot.yml"],
    "vendor.github-issue-forms": [".github/ISSUE_TEMPLATE/bug.yml", ".github/ISSUE_TEMPLATE/idea.yml",
                                  ".github/ISSUE_TEMPLATE/docs.yml"],
    "vendor.github-issue-config": [".github/ISSUE_TEMPLATE/config.yml"],
}

PLATFORMS = ("linux-64", "linux-aarch64", "osx-64", "osx-arm64")
PYTHONS = ["3.10.* *_cpython", "3.11.* *_cpython", "3.12.* *_cpython", "3.13.* *_cp313", "3.14.* *_cp314"]


def run(*command: str) -> int:
    environment = dict(os.environ, PATH=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    return subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode


def render_recipe() -> int:
    """Render the conda recipe for every platform and Python. It must state the version of pyproject.toml."""
    recipe = Stage0Recipe.from_file(str(ROOT / "recipe" / "recipe.yaml"))
    variants = VariantConfig({"python": PYTHONS, "cxx_compiler": ["gxx"], "c_stdlib": ["sysroot"],
                              "c_stdlib_version": ["2.17"]})
    stated = re.search(r'^version = "(.*)"$', (ROOT / "pyproject.toml").read_text(encoding="utf-8"), re.M)
    for platform in PLATFORMS:
        rendered = recipe.render(variants, RenderConfig(PlatformConfig(target_platform=platform)))
        versions = {str(variant.recipe.package.version) for variant in rendered}
        if len(rendered) != len(PYTHONS) or not stated or versions != {stated[1]}:
            print(f"recipe/recipe.yaml: {platform} renders {len(rendered)} variants of {sorted(versions)}: expected "
                  f"{len(PYTHONS)} of {stated and stated[1]}", file=sys.stderr)
            return 1
    return 0


def main() -> int:
    failed = run("hadolint", "docker/Dockerfile")
    workflows = [str(path.relative_to(ROOT)) for path in sorted((ROOT / ".github/workflows").glob("*.yml"))]
    for schema, files in {**SCHEMAS, "vendor.github-workflows": workflows}.items():
        failed |= run("check-jsonschema", "--builtin-schema", schema, *files)
    failed |= render_recipe()
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
