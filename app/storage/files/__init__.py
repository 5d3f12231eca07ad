"""Files: durable writes, named steps, the directory's lock, uploaded originals."""
