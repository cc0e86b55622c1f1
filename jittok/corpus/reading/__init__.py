"""Training sequences of finished corpora: any of them, in an order that needs no index, for any number of ranks.

One way: `tokens` are the ids of all shards as one array on disk, `packing` says which of them make a sequence, `order`
which sequence comes when, `sequences` lays them out, `loader` hands out batches.
"""
