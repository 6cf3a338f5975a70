"""Implements SageMaker's inference toolkit.

Finds the functions of a user's script, calls them for each request, and sends the results.
"""
