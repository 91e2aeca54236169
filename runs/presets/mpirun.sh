#!/bin/sh
# A study by several processes that Open MPI's mpirun starts, on this machine or on those of a host file, which must see
# the same folder. From the repository's folder, after `make`:
#
#	runs/presets/mpirun.sh 4 encodings
#	MPIRUN='mpirun --hostfile hosts' THREADS=4 runs/presets/mpirun.sh 16 encodings --out=/shared/encodings
#
# They exchange no messages: each takes the next model that nobody has, and rank 0 prints the tables at the end. On one
# machine `ropewalk study encodings --jobs=4` does the same without mpirun. THREADS: of each process (1), on cores of its
# own unless MPIRUN says otherwise. So that different machines compute the same bits BLAS is held to the kernels of one
# processor.

processes=${1:?how many processes? runs/presets/mpirun.sh N STUDY [--option=value ...]}
study=${2:?name a study: runs/presets/mpirun.sh N STUDY [--option=value ...]}
shift 2
threads=${THREADS:-1}
program=${ROPEWALK:-build/ropewalk}
export OPENBLAS_CORETYPE="${OPENBLAS_CORETYPE:-Haswell}"
# mpirun gives each process a terminal of its own: a file is to get plain text.
[ -t 1 ] || export NO_COLOR=1

# MPIRUN is a command with its options.
# shellcheck disable=SC2086
exec ${MPIRUN:-mpirun --map-by slot:PE=$threads --bind-to core} -n "$processes" -x OPENBLAS_CORETYPE \
	"$program" study "$study" --threads="$threads" "$@"
