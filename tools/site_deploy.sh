#!/usr/bin/env bash
# Owns: the commits of the site on the branch gh-pages: what `make docs` builds as VERSION (and ALIAS), the redirect at the
# root of the site, and the root's 404 page, which GitHub Pages shows for every wrong address.
# Arguments: the Python with mike, VERSION, ALIAS (may be empty), and optionally --push.
# The root follows `latest`; before the first release it follows the version that is deployed.
# Never: pushes without --push.
set -euo pipefail

python=$1
version=$2
alias=$3
push=${4:-}
branch=gh-pages
config=tools/mkdocs.yml
export NO_MKDOCS_2_WARNING=1
mike() { "$(dirname "$python")/mike" -q "$@"; }

[[ -n $version ]] || { echo "docs-deploy: give VERSION, such as make docs-deploy VERSION=dev" >&2; exit 2; }
[[ -z $push || $push == --push ]] || { echo "docs-deploy: unknown argument $push: only --push is known" >&2; exit 2; }

PATH="$(cd "$(dirname "$python")" && pwd):$PATH" mike deploy -F "$config" --update-aliases "$version" ${alias:+"$alias"}

default=latest
git cat-file -e "$branch:latest" 2>/dev/null || default=$version
if [[ $default == "$version" || $default == "$alias" ]]; then
  PATH="$(cd "$(dirname "$python")" && pwd):$PATH" mike set-default -F "$config" "$default"
  page=$(git rev-parse "$branch:$version/404.html")
  index=$(mktemp -u)
  export GIT_INDEX_FILE=$index
  trap 'rm -f "$index"' EXIT
  git read-tree "$branch"
  git update-index --add --cacheinfo "100644,$page,404.html"
  tree=$(git write-tree)
  unset GIT_INDEX_FILE
  if [[ $tree != "$(git rev-parse "$branch^{tree}")" ]]; then
    git update-ref "refs/heads/$branch" "$(git commit-tree "$tree" -p "$branch" -m "Page 404 of the root: the one of $version")"
  fi
fi
[[ -z $push ]] || git push origin "$branch"
