#!/bin/sh
# The password is long enough to be one that was made for us.
[ "${#password}" -ge 16 ] || exit 1
printf '%s' "$greeting" > "$heat_outputs_path.said"
