#!/bin/bash
# on the login node: plans a corpus, submits its parts, and finishes it when all are done
set -e
jittok corpus plan /shared/data --vocab /shared/tokenizer.json --out /shared/shards --parts 100
job=$(sbatch --parsable --array=0-99 slurm.sh)
sbatch --dependency=afterok:"$job" --wrap "jittok corpus finish /shared/shards"
