"""Sinks of events: CloudEvents over HTTP, to NATS JetStream, or into the log.

Adapters behind `ports.store.outbox.EventSink`, and their meter.
"""
