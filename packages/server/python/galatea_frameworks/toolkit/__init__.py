"""What SageMaker's inference toolkit does for scripts: finds their functions, calls them for each request, answers with what they return."""
