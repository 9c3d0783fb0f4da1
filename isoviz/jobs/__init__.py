"""Background jobs: queue, start, watch, stop and retry them, and store their results.

    kinds.py      a kind of job, declared once in the room it belongs to
    queue.py      jobs by the key of their content: ask, look, stop, retry
    scheduling.py which of them starts next, and in which process
    serving.py    a process that works on jobs of one kind, one after the other
    results.py    job results on disk, and the size limit
    progress.py   how far a job is, in a file
    service.py    the app's thread that keeps the queue moving
    spares.py     a process that has imported what the next job needs
    processes.py  starting a process, telling whether it lives, ending all that it started
    worker.py     the entry point of every process: `python -m isoviz.jobs.worker`

Runs (`isoviz.runs`) are a kind whose queue is the SQL store; they share processes, spares and entry point. Nothing here knows
what a job computes: rooms above register their kinds.

Why not a library: `loky`, `pebble` and `concurrent.futures` tie a worker to its parent by pipes, so that none survives a
restart of the app and is found again. `huey` and its like want a consumer to be run beside the app and cannot end a task that
has begun. None sends each job's output to a separate file.
"""
