"""Runs and observes the function: gRPC server, metrics, probes.

What an operator sees and what a stop does. Only `function.main` and the bench import it; it
knows gRPC and Prometheus, so nothing pure may. Source: issue "Operating it"; reference,
crossplane §6.2, §6.5 and §7.
"""
