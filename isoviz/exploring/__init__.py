"""Views of an encoder × task × split, layer by layer: requested by a page, computed in the background, cached by content.

    request.py      the request, and the key of its content
    user_sets.py    the user's texts and vectors instead of a task
    vector_view.py  the view of a user's vectors
    jobs.py         background jobs: views, sentences, UMAP
    measuring.py    the content of a view
    similarity.py   similarity of two layers or models: debiased CKA, shared neighbours
    layers.py       what changes over the layers: the valley of prompt entropy, the neighbours that stay
    shrinkage.py    IsoScore*, with Σ_S from training tokens
    points.py       tables that describe a cloud's points; the nearest points
    outputs.py      I1, I2 and row lengths of the head or vocabulary
    results.py      reading a finished view
    maps.py         a cloud in two or three dimensions: layouts, the points inside a line
    encoders.py     models by name, including those of finished runs

Nothing here imports torch or umap before a worker starts to compute.
"""
