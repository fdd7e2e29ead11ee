"""Python alone, by Monty's interpreter: the extra `monty`."""
