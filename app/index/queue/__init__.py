"""Jobs of several processes, in PostgreSQL by Procrastinate; needs the extra `shared`."""
