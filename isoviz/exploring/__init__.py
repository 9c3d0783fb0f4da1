"""An encoder × task × split seen layer by layer: asked for by a page, computed in a process of its own, kept by content.

    request.py    what is asked for, and the key of its content
    jobs.py       start, look at, stop: one job per key, whoever asks
    worker.py     the process of one job
    measuring.py  what it computes
    progress.py   how far it is, in a file
    results.py    what it leaves behind, and the limit of all that is kept

Nothing here imports torch before a worker starts to compute.
"""
