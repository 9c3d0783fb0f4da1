"""An encoder × task × split seen layer by layer: asked for by a page, computed in a process of its own, kept by content.

    request.py    what is asked for, and the key of its content
    jobs.py       start, look at, stop: one job per key, whoever asks
    starting.py   its process, at once where a spare was expected to be needed
    spare.py      that spare
    worker.py     the process of one job
    job_folder.py what it finds and leaves in the job's folder
    measuring.py  what it computes
    shrinkage.py  IsoScore*, with Σ_S from training tokens
    progress.py   how far it is, in a file
    points.py     what each point of a cloud is
    outputs.py    I1, I2 and row lengths of its head or vocabulary
    results.py    what it leaves behind, and the limit of all that is kept
    encoders.py   models by name, those of finished runs among them

Looking closer at one cloud of a view:

    maps.py         in two or three dimensions
    selection.py    the points inside a line
    neighbours.py   the points nearest to one
    clustering.py   which dimensions move together
    desk.py         questions to a process that stays: own sentences, UMAP
    desk_worker.py  that process

Nothing here imports torch or umap before a worker starts to compute.
"""
