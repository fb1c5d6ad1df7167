#!/usr/bin/env bash
# Sets up what the checks need and runs every check, by name, stopping at the first red one.
#   ./validate.sh            everything
#   ./validate.sh --long     everything, with the long variants of the property tests
#   ./validate.sh NAME …     only these steps, e.g. ./validate.sh types tests, or e2e, or one suite: test_library
#   DOCENT_JOBS=1            in the environment: one test at a time instead of as many as there are cores
set -euo pipefail
cd "$(dirname "$0")"

wanted=()
for argument in "$@"; do
  case $argument in
    --long) export DOCENT_LONG=1 ;;
    *) wanted+=("$argument") ;;
  esac
done

is_wanted() { # is_wanted NAME: whether all steps were asked for, or this one
  [ ${#wanted[@]} -eq 0 ] || [[ " ${wanted[*]} " == *" $1 "* ]]
}

step() { # step NAME COMMAND…: runs the command unless other steps were asked for
  local name=$1 started=$SECONDS
  shift
  is_wanted "$name" || return 0
  printf '\n== %s\n' "$name"
  if ! "$@"; then
    printf '\n== %s FAILED after %s s\n' "$name" $((SECONDS - started)) >&2
    exit 1
  fi
  printf '== %s ok, %s s\n' "$name" $((SECONDS - started))
}

at_once() { # how many tests run side by side: DOCENT_JOBS, or as many as there are cores, at most eight
  echo "${DOCENT_JOBS:-$(.venv/bin/python -c '
import os
print(min(8, len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()))')}"
}

unit_and_integration() { # by files, since the tests of a file may share a server; the heavy files come first
  rm -f .coverage .coverage.*
  .venv/bin/pytest -n "$(at_once)" --dist loadfile --no-loadscope-reorder --cov --cov-report= tests/integration tests/unit &&
    .venv/bin/coverage report --fail-under=90
}

browser_suites() { # each alone in its own process: while a browser runs, its event loop does too
  .venv/bin/python scripts/browser_suites.py --jobs "$(at_once)" "$@"
}

demo_model() { # from here on the tests fail, and do not skip, where the demo model is missing
  scripts/setup --demo && export DOCENT_DEMO=1
}

# The environment of the person who runs this must not steer the tests.
for name in $(compgen -e | grep -E '^(LLM|EMBED|RETRIEVAL|WATCH|FETCH|AGENT|LOOP_GUARD|TURN)_' || true); do unset "$name"; done
unset PYTHONDONTWRITEBYTECODE # what pytest makes of a test file is kept for the next process and the next run
unset DATABASE_URL DATA_DIR UPLOAD_MAX_MB QUESTION_MAX_CHARS AUTH_MODE ALLOWED_HOSTS TRUSTED_PROXIES HOST PORT LOG_LEVEL

step setup scripts/setup --dev
step format .venv/bin/ruff format --check .
step lint .venv/bin/ruff check .
step types .venv/bin/pyright
step imports .venv/bin/lint-imports
step sizes .venv/bin/python scripts/check_sizes.py
step frontend .venv/bin/python scripts/check_frontend.py
step repository .venv/bin/python scripts/check_repository.py
step licences .venv/bin/python scripts/third_party.py --check
step migrations .venv/bin/python scripts/check_migrations.py
step demo demo_model
step tests unit_and_integration
suites=()
for suite in tests/e2e/test_*.py; do
  if is_wanted e2e || is_wanted "$(basename "$suite" .py)"; then suites+=("$suite"); fi
done
wanted=() # `suites` holds what was asked for
if [ ${#suites[@]} -gt 0 ]; then step e2e browser_suites "${suites[@]}"; fi
printf '\nAll checks passed in %s s.\n' "$SECONDS"
