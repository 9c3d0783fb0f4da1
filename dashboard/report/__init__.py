"""Reports: a study, an experiment or a selection of runs as files that need neither this app nor a network."""
