"""The stand-in agent: one self-contained file that does what published plexd's ``join`` does.

``plexd.py`` uses the standard library alone and imports nothing of this repository;
machines of the demo cloud download it. Tests import it to check its parts; nothing else
does.
"""
