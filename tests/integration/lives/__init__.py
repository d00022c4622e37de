"""Whole lives before a real `broker serve`, a real API server and a real database."""
