#!/usr/bin/env bash
# Sets up what the checks need and runs every check, by name, stopping at the first red one.
#   ./validate.sh            everything
#   ./validate.sh --long     everything, with the long variants of the property tests
#   ./validate.sh NAME …     only these steps, e.g. ./validate.sh types tests
set -euo pipefail
cd "$(dirname "$0")"

wanted=()
for argument in "$@"; do
  case $argument in
    --long) export DOCENT_LONG=1 ;;
    *) wanted+=("$argument") ;;
  esac
done

step() { # step NAME COMMAND…: runs the command unless other steps were asked for
  local name=$1 started=$SECONDS
  shift
  if [ ${#wanted[@]} -gt 0 ] && [[ " ${wanted[*]} " != *" $name "* ]]; then return; fi
  printf '\n== %s\n' "$name"
  if ! "$@"; then
    printf '\n== %s FAILED after %s s\n' "$name" $((SECONDS - started)) >&2
    exit 1
  fi
  printf '== %s ok, %s s\n' "$name" $((SECONDS - started))
}

unit_and_integration() {
  rm -f .coverage .coverage.*
  .venv/bin/coverage run -m pytest tests/unit tests/integration &&
    .venv/bin/coverage combine -q && .venv/bin/coverage report --fail-under=90
}

demo_model() { # from here on the tests fail, and do not skip, where the demo model is missing
  scripts/setup --demo && export DOCENT_DEMO=1
}

# The environment of the person who runs this must not steer the tests.
for name in $(compgen -e | grep -E '^(LLM|EMBED|RETRIEVAL|WATCH|FETCH|AGENT|LOOP_GUARD|TURN)_' || true); do unset "$name"; done
unset DATABASE_URL DATA_DIR UPLOAD_MAX_MB QUESTION_MAX_CHARS AUTH_MODE ALLOWED_HOSTS TRUSTED_PROXIES HOST PORT LOG_LEVEL
export PYTHONDONTWRITEBYTECODE=1

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
for suite in tests/e2e/test_*.py; do
  step "$(basename "$suite" .py)" .venv/bin/pytest "$suite"
done
printf '\nAll checks passed in %s s.\n' "$SECONDS"
