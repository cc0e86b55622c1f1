#!/bin/bash
gcloud run jobs create corpus --image registry.example/jittok --tasks 100 --max-retries 3 --cpu 4 --memory 4Gi \
  --command jittok --args "corpus,run,gs://bucket/shards,--part,auto"
