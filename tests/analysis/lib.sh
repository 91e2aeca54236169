# For the scripts of this folder, which source it from the repository root: TAP, and a tool over all sources.

folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
log=$folder/log
number=0 bad=0
cores=$(nproc 2>/dev/null || echo 1)

# result STATUS WHAT: status 0 is a success; for a failure $log says why.
result() {
	number=$((number + 1))
	if [ "$1" = 0 ]; then
		echo "ok $number - $2"
	else
		bad=$((bad + 1))
		echo "not ok $number - $2"
		sed 's/^/# /' "$log"
	fi
}

finish() {
	echo "1..$number"
	[ $bad = 0 ]
}

# skip WHY: the whole script is one skipped test.
skip() {
	echo "ok 1 # SKIP $1: \`make deps CHECK=1\` installs what make check needs"
	echo 1..1
	exit 0
}

needs() { command -v "$1" >/dev/null || skip "$1: not found"; }

# finds WHAT WORD COMMAND...: the tool must fail over what was planted for it, and say the word.
finds() {
	what=$1 word=$2
	shift 2
	if "$@" >"$log" 2>&1; then
		echo 'it found nothing' >>"$log"
		result 1 "finds $what"
	else
		grep -q -e "$word" "$log"
		result $? "finds $what"
	fi
}

# each_source: runs the script again for every one of the environment's SOURCES, as many at once as there are cores; the
# name of a source is then its argument. A test each; what is printed is told of those that fail.
each_source() {
	# shellcheck disable=SC2016,SC2086
	printf '%s\n' $SOURCES | xargs -P "$cores" -I '{}' sh -c '
		name=$2/$(echo "$3" | tr / -)
		"$1" "$3" >"$name.log" 2>&1
		echo $? >"$name.status"' - "$0" "$folder" '{}'
	for source in $SOURCES; do
		log=$folder/$(echo "$source" | tr / -).log
		result "$(cat "${log%.log}.status")" "$source"
	done
}
