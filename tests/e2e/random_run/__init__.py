"""One life of twelve XRs on the real control plane, drawn from a seed, and nine promises judged.

What is done is data (`deeds`), people and machines do it (`people`, `thief`, `runner`), what came
of it is gathered (`witness`, `evidence`) as values (`history`), and pure functions judge those.
"""
