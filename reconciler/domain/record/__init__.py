"""The ProvisioningRecord: parsing one, and rendering its status and conditions.

`app` parses each record once and writes the status that is rendered here.
"""
