"""Makes what ships in `isoviz/demo`: the rows of the demo tasks, the bundled models, their cards and what simple approaches reach.

Nothing imports it but its tests. `python -m factory.rows`, `factory.pretrain_bert`, `factory.pretrain_bart`,
`factory.record_baselines` and `factory.cards` each write their part; the first and the last take seconds.
"""
