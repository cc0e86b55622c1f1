#!/bin/bash
# sbatch --array=0-99 slurm.sh
#SBATCH --job-name=corpus
#SBATCH --cpus-per-task=8
#SBATCH --mem=8G
#SBATCH --time=04:00:00
#SBATCH --requeue
#SBATCH --signal=USR1@60
srun --cpus-per-task="$SLURM_CPUS_PER_TASK" \
  jittok corpus run /shared/shards --part auto --threads "$SLURM_CPUS_PER_TASK"
status=$?
if [ "$status" = 143 ]; then # its time is nearly over: the same job goes on later
  scontrol requeue "$SLURM_JOB_ID"
fi
exit "$status"
