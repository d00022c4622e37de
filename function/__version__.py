"""The one version of both packages; pyproject reads it from here."""

__version__ = "0.1.0"
