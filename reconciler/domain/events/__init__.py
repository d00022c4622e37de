"""What is told to the outside: every event's type and payload, its envelope, its delivery.

Belongs here: pure values and tables of the relay. Not here: when an event happens, which is
the context's whose event it is. Imported by the relay, its adapters and the event commands.
"""
