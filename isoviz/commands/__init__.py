"""The command line, one module per verb; `isoviz.__main__` parses and dispatches."""
