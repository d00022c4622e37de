"""What the function answers, case by case, as files a reviewer reads.

Each folder holds `request.yaml` and `response.yaml`. A changed response is reviewed like
code: run `python -m tests.golden.regenerate` and look at the difference.
"""
