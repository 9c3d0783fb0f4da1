"""Background jobs: queue, start, watch, stop and retry them, and store their results.

    kinds.py      kinds of jobs, declared in the modules that use them
    queue.py      jobs by the key of their content: start, look up, stop, retry
    scheduling.py the order of jobs, and their processes
    serving.py    a process that works on jobs of one kind
    results.py    job results on disk, and the size limit
    progress.py   a job's progress, in a file
    service.py    the app's thread that schedules jobs
    spares.py     a process that has already imported what the next job needs
    processes.py  starting processes, checking them, ending them with all their children
    worker.py     the entry point of every process: `python -m isoviz.jobs.worker`

Runs (`isoviz.runs`) have their queue in the SQL store, but share processes, spares and entry point. This package does not know what
jobs compute: other packages register their kinds.

Why not a library: `loky`, `pebble` and `concurrent.futures` connect workers to their parent by pipes, so workers cannot survive a
restart of the app. `huey` and similar libraries need a separate consumer process and cannot stop a running task. None writes each
job's output to a separate file. `multiprocessing.forkserver` is one per process, with the environment of its start, so it cannot
give each device slot its own; its children import the app's `__main__`, which is a page in a Streamlit server; and ending it, when no
run is expected, takes its private functions.
"""
