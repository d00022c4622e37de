"""Between the protobuf of the protocol and plain values; the one place that reads a request.

`function.fn` parses requests and writes responses through it.
"""
