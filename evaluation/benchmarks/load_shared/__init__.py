"""Questions and uploads to the embedded server and to the shared mode, in one run."""
