#!/bin/sh
#SBATCH --job-name=ropewalk
#SBATCH --ntasks=1
#SBATCH --cpus-per-task=2
#SBATCH --mem=4G
#SBATCH --time=04:00:00
#SBATCH --signal=B:TERM@60
#SBATCH --requeue
#
# A study on a cluster with Slurm. From the repository's folder, after `make`:
#
#	sbatch --array=1-8 runs/presets/slurm.sh encodings
#
# The tasks of the array divide the models of one folder, which all nodes must see: whoever is free takes the next one;
# each waits for the others at the end and prints the tables into its own log. Where nodes share no folder give each its
# part, a folder for each, and join them when all have ended:
#
#	SHARDS=1 sbatch --array=1-8 runs/presets/slurm.sh encodings
#	build/ropewalk merge runs/out/encodings-part-* --out=runs/out/encodings
#
# Tasks of one job instead of an array, of which the first prints the tables:
#
#	sbatch --ntasks=8 runs/presets/slurm.sh encodings
#
# A minute before the end of its time Slurm sends SIGTERM: the step is ended and saved, and the same line goes on. So that
# all compute the same bits on whatever node they come to, BLAS is held to the kernels of one processor; build with
# ARCH=x86-64-v3 for the same reason.

study=${1:?name a study: sbatch runs/presets/slurm.sh STUDY [--option=value ...]}
shift
program=${ROPEWALK:-build/ropewalk}
name=${study##*/}
name=${name%.study}
threads=${SLURM_CPUS_PER_TASK:-2}
export OPENBLAS_CORETYPE="${OPENBLAS_CORETYPE:-Haswell}"

set -- study "$study" --threads="$threads" "$@"
if [ "${SHARDS:-}" ]; then
	set -- "$@" --shard=auto --out="runs/out/$name-part-${SLURM_ARRAY_TASK_ID:?SHARDS needs --array}"
fi
# A signal to the script is for the program.
if [ "${SLURM_NTASKS:-1}" -gt 1 ] && command -v srun >/dev/null; then
	exec srun --kill-on-bad-exit=0 --cpus-per-task="$threads" "$program" "$@"
fi
exec "$program" "$@"
