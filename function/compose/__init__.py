"""The pure core both inputs share: facts in, what to compose out.

`facts` holds the values, `stage` the decision table, `record`, `substrate` and `verdicts`
render its halves, and `pipeline` joins them. Belongs here: everything decided from one
request. Not here: protobuf, what an input's own fields mean. Pure: no I/O, no clock, no
randomness, no logging. `function.declare` and `function.enrol` import it.
"""
