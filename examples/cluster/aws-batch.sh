#!/bin/bash
aws batch submit-job --job-name corpus --job-queue queue --job-definition jittok --array-properties size=100 \
  --retry-strategy attempts=3 \
  --container-overrides '{"command": ["jittok", "corpus", "run", "s3://bucket/shards", "--part", "auto"]}'
