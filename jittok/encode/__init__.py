"""Text to ids: one text, many texts on threads, one long document; the workspace that each thread encodes with."""
