"""The paper behind the shift and scaling transforms, which demonstrate properties from it."""

from __future__ import annotations

from isoviz.parameters import Paper

ISOSCORE_PAPER = Paper(
    short="Rudman et al. 2022",
    title="IsoScore: Measuring the Uniformity of Embedding Space Utilization",
    year=2022,
    bibtex="""\
@inproceedings{rudman2022isoscore,
  title={IsoScore: Measuring the Uniformity of Embedding Space Utilization},
  author={Rudman, William and Gillman, Nate and Rayne, Taylor and Eickhoff, Carsten},
  booktitle={Findings of the Association for Computational Linguistics: ACL 2022},
  pages={3325--3339},
  year={2022}
}
""",
)
