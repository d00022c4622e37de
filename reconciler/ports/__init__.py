"""What the application layer needs from the world, in its own vocabulary.

Belongs here: Protocols and the plain values they trade. Not here: any technology's name
or driver. Adapters implement them without inheriting; tests run one contract suite on the
fake and on the real adapter.
"""
