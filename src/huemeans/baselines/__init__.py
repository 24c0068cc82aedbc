"""Other people's ways to private clusters, for comparison: their noise is not drawn exactly."""
