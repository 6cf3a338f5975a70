"""Implements SageMaker's inference toolkit for scripts: finds their functions, calls them for each request, responds with their results."""
