"""Bad input of every kind, drawn at random: on the command line, in addresses, in files and in model folders.

Each module has a strategy and a check that raises `AssertionError` for an answer that is none. `test_bad_input.py` runs a few
hundred of them, `benchmarks/fuzz.py` thousands.
"""
