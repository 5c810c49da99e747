"""The four kinds as pydantic models, the single source of the schemas in `crds/`."""
