"""The search for the ends of pieces: `kernel` moves every chain as far as the counts of ids that it was given allow."""
