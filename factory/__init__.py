"""Produces the contents of `isoviz/demo`: the rows of the demo tasks, the bundled models, their cards and the scores of simple
approaches. Only its tests import it. `python -m factory.rows`, `factory.pretrain_bert`, `factory.pretrain_bart`,
`factory.record_baselines` and `factory.cards` each write their part; the first and the last take seconds.
"""
