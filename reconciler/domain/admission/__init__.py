"""The rules by which a declaration is accepted or refused.

`app.admission` applies them before anything is stored.
"""
