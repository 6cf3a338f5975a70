"""Implements SageMaker's inference toolkit:

finds the functions of a user's script, calls them for each request, and sends their results.
"""
