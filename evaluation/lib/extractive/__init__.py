"""Parts of the study of quoted answers."""
