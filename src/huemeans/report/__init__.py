"""The page that shows a release: one file, drawn from the release alone, with nothing from the network."""
