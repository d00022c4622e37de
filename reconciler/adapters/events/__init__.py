"""Where events go: CloudEvents over HTTP, to NATS JetStream, or into the log.

Belongs here: adapters behind `ports.events.EventSink`, and their meter. Not here: in which order
and how often (`app.relay`). Imported by `wiring` and the event commands.
"""
