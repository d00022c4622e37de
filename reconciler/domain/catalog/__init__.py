"""A blueprint catalogue in the public plexsphere layout, judged and turned into manifests.

Belongs here: decoding, checks and the BlueprintVersion manifest, as pure functions from
bytes to findings. Not here: reading folders and writing files (`reconciler.commands`).
Only the command and tests import it.
Source: contracts §4.1 and §4.4.
"""
