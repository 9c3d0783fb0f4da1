#!/bin/bash
# Trains the queued runs of a PostgreSQL store on a SLURM cluster: each array task takes one run after another.
# sbatch --array=0-15 docs/slurm.sh
#SBATCH --job-name=isoviz
#SBATCH --array=0-7
#SBATCH --ntasks=1
#SBATCH --cpus-per-task=4
#SBATCH --gpus-per-task=1
#SBATCH --mem=16G
#SBATCH --time=04:00:00
#SBATCH --signal=TERM@180
#SBATCH --output=isoviz-%A_%a.log
set -euo pipefail

# postgresql://USER@HOST/DATABASE?sslmode=verify-full&sslrootcert=FILE; the password is in $PGPASSFILE (docs/scale.md)
: "${ISOVIZ_STORE:?set it to the store that the runs are queued in}"
# checkpoints and models; on a folder that all nodes see, a run goes on where another task left it
: "${ISOVIZ_HOME:?set it to a folder that all nodes see}"

# three minutes before the time is up, TERM makes a task save its run and put it back into the queue
exec srun "${ISOVIZ_PYTHON:-python}" -m isoviz worker --idle "${ISOVIZ_IDLE:-60}"
