"""What every bundle does, run between libraries in files and libraries in the engine."""
