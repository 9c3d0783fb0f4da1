"""Background jobs: queue, start, watch, stop and retry them, and store their results.

    kinds.py      kinds of jobs, declared in the modules that use them
    queue.py      jobs by the key of their content: start, look up, stop, retry; their order and processes
    results.py    job results on disk, and the size limit
    service.py    the app's thread for jobs
    guarded.py    calls in other processes, with limits on time and memory
    answering.py  what a process does that answers calls: jobs, and calls with limits
    prepared.py   a worker that has already imported what the next job needs
    processes.py  starting processes, checking them, ending them with all their children
    worker.py     the entry point of every process: `python -m isoviz.jobs.worker`

Runs (`isoviz.runs`) have their queue in the SQL store, but share processes, prepared workers and entry point. This package does not
know what jobs compute: other packages register their kinds.

Why not a library: `loky`, `pebble` and `concurrent.futures` cannot stop a running task without ending the tasks beside it, know no
pools and priorities, and write all output to one place. `huey` and similar libraries need a separate consumer process.
`multiprocessing.forkserver` is one per process, with the environment of its start, so it cannot
give each device slot its own; its children import the app's `__main__`, which is a page in a Streamlit server; and ending it, when no
run is expected, takes its private functions.
"""
