"""Reports: a study, an experiment or a selection of runs as self-contained files."""
